/*
 * Chores: functions that may block (an fsync), run beside the lanes, one after the other, in the order
 * posted; the end of each is a task on the lane that it names. So a disk that stands still stops no state
 * machine. In a real environment they have a thread; in a simulated one each is an event, some virtual
 * milliseconds later.
 *
 * A chore's memory is the poster's until done is called. Never knows what they do. Tests:
 * test/env/test_chore.c.
 */
#ifndef ENV_CHORE_H
#define ENV_CHORE_H

#include "env/lane.h"

struct chores;

/* Nothing of it may be touched by the poster between chores_post and done. */
struct chore {
    struct lane *lane;
    void (*work)(struct chore *chore); /* off the lane: it touches nothing that the lane does */
    void (*done)(struct chore *chore); /* on the lane; may free it or post it again */
    struct lane_task end;              /* from here: env's */
    struct qnode node;
};

MUST_USE paramo_err chores_create(struct env *env, const char *name, struct chores **chores);
/* Any thread. */
void chores_post(struct chores *chores, struct chore *chore);
/* Does what was posted and waits for it; the ends are in the lanes' inboxes then. NULL is allowed. */
void chores_destroy(struct chores *chores);

#endif
