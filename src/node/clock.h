/*
 * A worker's clock: it ends an iteration when all requests before have ended, and tells the scheduler. At most one
 * CLOCK_TELL is in flight; it brings the highest number. The public functions that wait are in api_clock.c. It
 * never knows what an iteration is, or which other workers there are. docs/CONSISTENCY.md.
 *
 *     any thread        clock_end(): issued++ --fence--> the client's lane: the requests before have ended
 *                                                           |
 *     the control lane                                      v
 *                       reached --CLOCK_TELL--> scheduler --answer--> told, minimum
 *
 * Requests with at_clock are held by the client until the minimum is there (worker/clock_gate.h). One CLOCK_WAIT at a
 * time asks for the lowest clock that they need:
 *
 *     the client's lane   clock_needed(): demand                 news: client_clock_reached(), _behind(), _lost()
 *                              |                                    ^
 *     the control lane         v                                    |
 *                         CLOCK_WAIT --> scheduler --answer--> minimum
 *
 * Tests: test/node/test_clock.c; the simulator (sim/clocks.c).
 */
#ifndef NODE_CLOCK_H
#define NODE_CLOCK_H

#include "node/node.h"

enum { CLOCK_AHEAD_MAX = 1024 /* iterations ended whose requests are in flight; arbitrary */ };
#define CLOCK_AGELESS UINT64_MAX

/* Control lane. The scheduler counts the worker from now on, or no longer. */
void clock_joined(paramo_worker *worker, uint64_t session, const struct clock_result *result);
void clock_left(paramo_worker *worker);
/* Control lane. Takes in the result of a wait. */
void clock_heard(paramo_worker *worker, const struct clock_result *result);
/* Any thread. *clock: the number that the worker has reached when all its requests before have ended. INVALID: it
 * does not count. AGAIN: CLOCK_AHEAD_MAX iterations are in flight. MEMORY. Or the cause for which it no longer
 * counts. */
MUST_USE paramo_err clock_end(paramo_worker *worker, uint64_t *clock);
/* Any thread. OK: the worker can wait for this clock. INVALID: it has no clock, or has itself ended fewer
 * iterations. */
MUST_USE paramo_err clock_demand_check(const paramo_worker *worker, uint64_t clock);
/* Any thread. A push or pull of an aggregated table is of the worker's present iteration, if it counts. */
void clock_of_call(const paramo_worker *worker, struct client_call *call);
/* Any thread. By how much the worker's clock is ahead of the minimum, as far as it knows, or of the clock that a
 * request demands (0: none). CLOCK_AGELESS: it does not count. */
uint64_t clock_age(const paramo_worker *worker, uint64_t demanded);
/* The client's lane (client_config.need_clock, with the worker as arg). */
void clock_needed(void *worker, uint64_t clock);
/* OK while it counts. */
MUST_USE paramo_err clock_check(const paramo_worker *worker);
/* Control lane. Tells the scheduler that the worker no longer counts by this session. No thread waits for the answer;
 * a scheduler that cannot be reached is told later. */
void clock_goodbye(paramo_worker *worker, uint64_t session);
/* Control lane; the client is closed, and its tasks have run. Tells the scheduler that the worker is gone. */
void clock_close(paramo_worker *worker);

#endif
