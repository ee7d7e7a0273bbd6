/*
 * The client: one customer's side of push and pull, a state machine on its own lane. It checks a request in
 * the caller's thread (check.h), slices it by the present view, sends the slices over connections that it
 * opens at first use, places answers into the caller's arrays, and sends again what was moved or lost. So a
 * push is applied exactly once (docs/ARCHITECTURE.md), and every request completes exactly once.
 *
 *     any thread   client_issue --> check --> tracker (timestamp)
 *                                                |
 *     the lane                                   v
 *                    slicing --> chunks --> links --> van
 *                                             ^
 *                    complete <-- answers, probes, deadlines
 *
 * It never knows what a server does with a push, which other nodes exist, or where views come from. Tests:
 * test/worker/, test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_CLIENT_H
#define WORKER_CLIENT_H

#include "worker/client_types.h"
#include "worker/clock_gate.h"
#include "worker/route.h"
#include "worker/waiting.h"

void client_table_init(struct client_table *t, const struct view_table *from);

/* ---- life ---- */

/* Not on the lane. */
MUST_USE paramo_err client_create(const struct client_config *config, struct client **client);
/* Any thread, not on a lane: ends requests in flight with CLOSED, runs or waits for their callbacks, closes
 * the connections. Later calls answer CLOSED. */
void client_close(struct client *client);
/* After client_close, when no thread is inside a call. */
void client_free(struct client *client);

/* On the lane. No server will answer this client again: requests in flight end with this status, and so does
 * each later one. The first call counts. */
void client_fail(struct client *client, paramo_err status, const char *text);

/* ---- requests: any thread ---- */

/* Checks, takes a timestamp, and begins. When the queue is full: drives the lane until there is room, or the
 * request's timeout (TIMEOUT); AGAIN at once with PARAMO_NOWAIT, in a callback, or on a lane. */
MUST_USE paramo_err client_issue(struct client *client, const struct client_call *call, uint64_t *ts);
bool client_has_room(struct client *client);
/* On the lane. Sets the chain of filters of a table and direction, for frames that leave from now on. MEMORY;
 * UNSUPPORTED: a filter does not fit the table. */
MUST_USE paramo_err client_filter(struct client *client, const struct client_table *table,
                                  enum filter_direction direction, const struct filter_chain *chain);

/* On the lane. Adds what the client's filters have done. */
void client_filter_counts(const struct client *client, struct filter_counts *sum);

#endif
