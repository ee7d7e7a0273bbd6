/*
 * Checks that a request may read the rows of two tables together. It never knows what the request does with them.
 * Tests: test/worker/test_reduction_request.c.
 */
#ifndef WORKER_CHECK_OTHER_H
#define WORKER_CHECK_OTHER_H

#include "worker/client_types.h"

/* SIZE_MISMATCH: they differ, and the message says in what. UNSUPPORTED: rows of no fixed length. */
MUST_USE paramo_err check_other(const struct client_table *table, const struct client_table *other);

#endif
