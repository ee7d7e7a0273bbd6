/*
 * Requests of the public API: push, pull, and waiting for their end, by a thread or by polling. It must never know
 * how a request travels. Tests: test/node/test_node.c.
 */
#ifndef NODE_API_REQUEST_H
#define NODE_API_REQUEST_H

#include "node/node.h"

/* The table can be used by this worker. */
MUST_USE paramo_err table_check(const paramo_worker *worker, const paramo_table *table);
/* Issues a request whose call lacks only its options. ts NULL: allowed with a callback. */
MUST_USE paramo_err request_issue(paramo_worker *worker, struct client_call *call,
                                  const paramo_request_options *options, uint64_t *ts);
/* The given options or, if their struct is an older and shorter one, `whole`, filled from them. NULL stays NULL. */
const paramo_request_options *request_options(const paramo_request_options *options,
                                              paramo_request_options *whole);
/* The status of a request: if the request ended because its node did, the status of the node. */
MUST_USE paramo_err request_cause(const paramo_worker *worker, paramo_err err);

#endif
