/*
 * A lane: what drives single-threaded state machines. It has an inbox, timers, descriptors to poll, and the
 * right to run, which one thread holds at a time. Its own thread usually does; a thread that waits
 * (lane_wait) drives it instead, and a thread that posts to an idle lane from inside another lane's step runs
 * it after its own step has returned (docs/THREADS.md). docs/THREADS.md has the states and the proof that no
 * wake-up is lost.
 *
 *            post                     enter / thread / borrower (compare-and-swap)
 *     IDLE ---------> someone summoned -------------------------> RUNNING --post--> RUNNING_MAIL
 *       ^                                                            |  ^               |
 *       +------------ leave (compare-and-swap from RUNNING) ---------+  +--- takes mail +
 *
 * "On the lane" below means: called by the thread that holds it, that is, from a task, timer, source or end
 * hook of this lane, or between lane_enter and lane_leave. A lane never knows what its state machines are.
 * Tests: test/env/test_lane.c.
 */
#ifndef ENV_LANE_H
#define ENV_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/queue.h"
#include "env/env.h"

/* A task is run once per post; its memory is the poster's and is free again when run is called. It must not
 * be posted again before that. */
struct lane_task {
    struct qnode node;
    void (*run)(struct lane_task *task);
};

/* Zero-initialised: not armed. */
struct lane_timer {
    uint64_t at;
    uint64_t seq; /* order of arming */
    size_t slot;  /* position in the lane's heap from 1; 0: not armed */
    void (*fire)(struct lane_timer *timer);
};

/* A descriptor; real environments only. events are EPOLLIN, EPOLLOUT ... (level-triggered). */
struct lane_source {
    int fd;
    uint32_t events;
    void (*ready)(struct lane_source *source, uint32_t events);
    bool dead;  /* removed during the current round: its pending event is dropped */
    bool quiet; /* only wakes: what it announces is counted as work by who finds it (a hook) */
    struct qnode node;
};

/* What must be asked in every round, since a descriptor alone does not tell (a transport that is polled);
 * real environments only, one for a lane. Both are called on the lane. docs/THREADS.md says why no wake-up is
 * lost. */
struct lane_hook {
    /* Once a round, after the descriptors; true if something was handled. */
    bool (*progress)(struct lane_hook *hook);
    /* Before the lane's driver sleeps: true if whatever comes from now on makes one of the lane's quiet
     * sources ready, or a timer of the lane is set for it; false: another round comes first. */
    bool (*arm)(struct lane_hook *hook);
};

enum lane_flags {
    LANE_NO_BORROW =
        1, /* its thread never runs foreign steps (the control lane: heartbeats must leave on time) */
    LANE_NO_SPIN = 2 /* never polls before it sleeps */
};

/* In a real environment starts the lane's thread. */
MUST_USE paramo_err lane_create(struct env *env, const char *name, unsigned flags, struct lane **lane);
/* Stops and joins the thread, runs what is still in the inbox, frees. No source may be left, no other thread
 * inside; not on a lane. */
void lane_destroy(struct lane *lane);

struct env *lane_env(struct lane *lane);
const char *lane_name(const struct lane *lane);
uint64_t lane_now(struct lane *lane);
/* True if the calling thread holds this lane. */
bool lane_held(const struct lane *lane);
/* Any thread: tasks, timers and events handled so far, and whether something waits to be handled. */
void lane_progress(struct lane *lane, uint64_t *handled, bool *waiting);
/* True if the calling thread holds any lane or is inside a completion: it must not wait. */
bool lane_inside(void);

/* Any thread. */
void lane_post(struct lane *lane, struct lane_task *task);
/* Takes the lane if it is idle (the inbox is drained first, so that what was posted earlier comes earlier).
 * Never blocks, never succeeds inside a step. */
bool lane_enter(struct lane *lane);
void lane_leave(struct lane *lane);

/* On the lane. Arming an armed timer moves it. Timers that are due at the same time fire in the order of
 * arming. */
MUST_USE paramo_err lane_timer_arm(struct lane *lane, struct lane_timer *timer, uint64_t at);
void lane_timer_cancel(struct lane *lane, struct lane_timer *timer);

/* On the lane. A source's memory must stay until the current round ends (free it in a task given to
 * lane_at_end). */
MUST_USE paramo_err lane_source_add(struct lane *lane, struct lane_source *source);
MUST_USE paramo_err lane_source_change(struct lane *lane, struct lane_source *source, uint32_t events);
void lane_source_remove(struct lane *lane, struct lane_source *source);

/* On the lane; NULL takes it away. */
void lane_hook_set(struct lane *lane, struct lane_hook *hook);
struct lane_hook *lane_hook(const struct lane *lane);

/* On the lane: run at the end of this round, before the lane is released (flushing what gathered, freeing).
 */
void lane_at_end(struct lane *lane, struct lane_task *task);
/* On the lane: run after the lane is released; those of one lane one at a time, in this order. In one,
 * lane_inside() is true, and requests may be issued. */
void lane_complete(struct lane *lane, struct lane_task *task);
/* Any thread, after it has handed something to the lane that completes by a callback. While another thread is
 * in the middle of this lane's completions it gives that one the processor, for a bounded number of times: a
 * thread that each callback wakes anew, for the one place that it has made, would cost two wake-ups for each.
 */
void lane_give_way(struct lane *lane);
/* Around callbacks that a thread runs outside of any lane: lane_inside() is true between the two. Any thread;
 * they nest. */
void lane_callbacks_begin(void);
void lane_callbacks_end(void);
/* On the lane: what a waiter waits for may have become true. */
void lane_notify(struct lane *lane);

/* Any thread. Between the two something is to come for which nobody waits in lane_wait, and which is not to
 * be late: a real lane's thread watches the descriptors then, also while callers come and go. The first is
 * called before what it speaks of is handed to the lane; they may be counted in any order. */
void lane_expect(struct lane *lane);
void lane_expected(struct lane *lane);

/* Drives the lane, or waits for whoever does, until done(arg) is true. done is called without the lane: it
 * reads atomics. TIMEOUT at the deadline (lane_now's clock); IN_CALLBACK if lane_inside(). Any number of
 * threads. */
MUST_USE paramo_err lane_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline);

#endif
