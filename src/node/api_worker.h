/*
 * What other files of the public API share with the one of workers, tables and requests (api_worker.c). It
 * never knows connections. Tests: test/node/test_node.c.
 */
#ifndef NODE_API_WORKER_H
#define NODE_API_WORKER_H

#include "node/node.h"

/* Control lane. Threads that wait for the worker's requests look again. */
void worker_nudge(paramo_worker *worker);
/* Control lane. The node's membership has ended with an error: waits end with it, and in a fenced node all
 * requests do. */
void worker_node_ended(paramo_worker *worker);
/* FORKED in a child, INVALID for NULL. */
MUST_USE paramo_err worker_check(const paramo_worker *worker);
/* The table can be used by this worker. */
MUST_USE paramo_err table_check(const paramo_worker *worker, const paramo_table *table);
/* paramo_customer_open for an app of the library's own, too. */
MUST_USE paramo_err customer_open(paramo_node *node, uint32_t app, uint32_t customer, bool reads,
                                  paramo_worker **worker);
/* The name by which the job knows the table: with the worker's namespace. INVALID: too long, or empty. */
MUST_USE paramo_err table_name(const paramo_worker *worker, const char *name, char full[VIEW_NAME_MAX]);
/* paramo_table_open by that name. */
MUST_USE paramo_err table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                               paramo_table **table);
/* The worker's open table of this name; NULL: it has none. */
paramo_table *table_by_name(const paramo_worker *worker, const char *name);
/* Sends what filters hold back, and waits for it for some seconds. Not on a lane. */
void filters_close(paramo_worker *worker);
/* Issues a request whose call lacks only its options. ts NULL: allowed with a callback. */
MUST_USE paramo_err request_issue(paramo_worker *worker, struct client_call *call,
                                  const paramo_request_options *options, uint64_t *ts);
/* The given options; or, if they are shorter than this program's, whole, completed from them. NULL stays. */
const paramo_request_options *request_options(const paramo_request_options *options,
                                              paramo_request_options *whole);

#endif
