/*
 * A lane drives single-threaded state machines. It has an inbox, timers, descriptors to poll, and the right
 * to run, which one thread holds at a time. Usually that is its own thread. A thread that waits (lane_wait)
 * drives the lane instead. A thread that posts to an idle lane from inside another lane's step runs it after
 * its own step has returned. docs/THREADS.md has the states and the proof that no wake-up is lost.
 *
 *            post                     enter / thread / borrower (compare-and-swap)
 *     IDLE ---------> a wake-up is sent ------------------------> RUNNING --post--> RUNNING_MAIL
 *       ^                                                            |  ^               |
 *       +------------ leave (compare-and-swap from RUNNING) ---------+  +--- takes mail +
 *
 * "On the lane" below means: called by the thread that holds it, that is, from a task, timer, source or end
 * hook of this lane, or between lane_enter and lane_leave. A lane never knows what its state machines are.
 * Tests: test/env/test_lane.c.
 */
#ifndef ENV_LANE_H
#define ENV_LANE_H

#include "env/lane_types.h"

/* A real environment starts the lane's thread. */
MUST_USE paramo_err lane_create(struct env *env, const char *name, unsigned flags, struct lane **lane);
/* Stops and joins the thread, runs what is still in the inbox, and frees the lane. No source may be left,
 * and no other thread may be inside. Not on a lane. */
void lane_destroy(struct lane *lane);

struct env *lane_env(struct lane *lane);
const char *lane_name(const struct lane *lane);
uint64_t lane_now(struct lane *lane);
/* True if the calling thread holds this lane. */
bool lane_held(const struct lane *lane);
/* Any thread: the number of tasks, timers and events handled so far, and whether something waits to be
 * handled. */
void lane_progress(struct lane *lane, uint64_t *handled, bool *waiting);
/* On the lane: a frame was received. Whether a real lane polls before it sleeps depends on the rate of frames. */
void lane_count(struct lane *lane);
/* True if the calling thread holds any lane or is inside a completion: it must not wait. */
bool lane_inside(void);

/* Any thread. */
void lane_post(struct lane *lane, struct lane_task *task);
/* lane_post, but within completions of this lane the tasks are posted together, after the last completion that is
 * due. That delays nothing: a thread that borrows the lane would run it only after the completions. */
void lane_post_late(struct lane *lane, struct lane_task *task);
/* The calling thread will be in lane_wait of this lane again soon (NULL: of none). While threads come and go
 * there, its posts wake no other thread; a real lane's thread looks within half a millisecond. */
void lane_returns(struct lane *lane);
/* Takes the lane if it is idle, and drains the inbox first, so that earlier posts run earlier. Never
 * blocks, and never succeeds inside a step. */
bool lane_enter(struct lane *lane);
void lane_leave(struct lane *lane);

/* On the lane. Arming an armed timer changes its time. Timers that are due at the same time fire in the
 * order of arming. */
MUST_USE paramo_err lane_timer_arm(struct lane *lane, struct lane_timer *timer, uint64_t at);
void lane_timer_cancel(struct lane *lane, struct lane_timer *timer);

/* On the lane. A source's memory must stay until the current round ends (free it in a task given to
 * lane_at_end). */
MUST_USE paramo_err lane_source_add(struct lane *lane, struct lane_source *source);
MUST_USE paramo_err lane_source_change(struct lane *lane, struct lane_source *source, uint32_t events);
void lane_source_remove(struct lane *lane, struct lane_source *source);

/* On the lane. NULL removes the hook. */
void lane_hook_set(struct lane *lane, struct lane_hook *hook);
struct lane_hook *lane_hook(const struct lane *lane);

/* On the lane: runs the task at the end of this round, before the lane is released (to flush, or to free). */
void lane_at_end(struct lane *lane, struct lane_task *task);
/* On the lane: runs the task, a completion, after the lane is released. Completions of one lane run one
 * at a time, in this order. Inside one lane_inside() is true, and requests may be issued. */
void lane_complete(struct lane *lane, struct lane_task *task);
/* Any thread, after it has handed the lane a request that completes by a callback. While another thread
 * has more of this lane's completions to run, the caller yields the processor to it, a bounded number of times.
 * Otherwise each callback would make room for one request, and cost two wake-ups. */
void lane_give_way(struct lane *lane);
/* Called around callbacks that a thread runs outside of any lane: lane_inside() is true between the two. Any
 * thread. The calls nest. */
void lane_callbacks_begin(void);
void lane_callbacks_end(void);
/* Any thread, in a callback that may block: other threads run the idle lanes that this one would have run. */
void lane_unborrow(void);
/* On the lane: the condition of a waiter may have become true. */
void lane_notify(struct lane *lane);

/* Any thread. Between the two calls the lane expects an event for which no thread waits in lane_wait, and
 * which must not be late. A real lane's thread then watches the descriptors, even while callers come and
 * go. Call lane_expect before handing the lane the request whose answer is expected. */
void lane_expect(struct lane *lane);
void lane_expected(struct lane *lane);

/* Drives the lane, or waits for the thread that does, until done(arg) is true. done is called without the
 * lane, so it reads atomics. TIMEOUT at the deadline (lane_now's clock); IN_CALLBACK if lane_inside().
 * Any number of threads. */
MUST_USE paramo_err lane_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline);

#endif
