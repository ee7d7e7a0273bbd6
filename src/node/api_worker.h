/*
 * Workers of the public API: opened, closed, told of a new view and of their node's end. It must never know tables or
 * requests (api_table.h, api_request.h), nor connections. Tests: test/node/test_node.c.
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
/* paramo_customer_open, also for the library's own apps; with `reads` paramo_reader_open. */
MUST_USE paramo_err customer_open(paramo_node *node, uint32_t app, uint32_t customer, bool reads,
                                  paramo_worker **worker);
/* Sends the rows that filters hold back, and waits for some seconds until they are acknowledged. Not on a lane. */
void filters_close(paramo_worker *worker);

#endif
