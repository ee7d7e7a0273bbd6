/*
 * Blocking jobs: functions that may block (an fsync), run beside the lanes, one after the other, in the order
 * posted; the end of each is a task on the lane that it names. So a disk that stands still stops no state
 * machine. In a real environment they have a thread; in a simulated one each is an event, some virtual
 * milliseconds later.
 *
 * A blocking job's memory is the poster's until done is called. Never knows what they do. Tests:
 * test/env/test_blocking_job.c.
 */
#ifndef ENV_BLOCKING_JOB_H
#define ENV_BLOCKING_JOB_H

#include "env/lane.h"

struct blocking_jobs;

/* Nothing of it may be touched by the poster between blocking_jobs_post and done. */
struct blocking_job {
    struct lane *lane;
    void (*work)(struct blocking_job *blocking_job); /* off the lane: it touches nothing that the lane does */
    void (*done)(struct blocking_job *blocking_job); /* on the lane; may free it or post it again */
    struct lane_task end;                            /* from here: env's */
    struct qnode node;
};

MUST_USE paramo_err blocking_jobs_create(struct env *env, const char *name,
                                         struct blocking_jobs **blocking_jobs);
/* Any thread. */
void blocking_jobs_post(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job);
/* Does what was posted and waits for it; the ends are in the lanes' inboxes then. NULL is allowed. */
void blocking_jobs_destroy(struct blocking_jobs *blocking_jobs);

#endif
