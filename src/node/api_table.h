/*
 * Tables of the public API: opened by name, and requests for a whole table. It must never know how a request travels,
 * or how a worker is opened. Tests: test/node/test_node.c, test/node/test_snapshot.c.
 */
#ifndef NODE_API_TABLE_H
#define NODE_API_TABLE_H

#include "node/node.h"

/* The name by which the job knows the table: with the worker's namespace. INVALID: too long, or empty. */
MUST_USE paramo_err table_name(const paramo_worker *worker, const char *name, char full[VIEW_NAME_MAX]);
/* paramo_table_open by the name of table_name(). */
MUST_USE paramo_err table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                               paramo_table **table);
/* Like table_open(), with what a view says of the table; the worker may have it open already. MEMORY. */
MUST_USE paramo_err table_take(paramo_worker *worker, const struct view_table *found, paramo_table **table);
/* The worker's open table of this name; NULL: it has none. */
paramo_table *table_by_name(const paramo_worker *worker, const char *name);

#endif
