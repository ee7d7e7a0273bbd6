/*
 * Computes new rows from rows with a function (base/transform.h). It changes no table: the caller stores the new rows
 * like any others. It never knows shards or messages. Tests: test/table/test_table_transform.c.
 */
#ifndef TABLE_TABLE_TRANSFORM_H
#define TABLE_TABLE_TRANSFORM_H

#include "base/transform.h"

struct table;

/* SIZE_MISMATCH, UNSUPPORTED: the rows of the tables cannot be combined, or have no fixed length. INVALID: as
 * transform_check. other: the second table, or NULL, as the function needs. */
MUST_USE paramo_err table_transform_check(const struct table *t, const struct table *other,
                                          const struct transform *what);
/* Computes the rows of *n keys into vals (dim values each). Moves the keys that have a result to the front, and sets
 * *n to their number: FILL, SCALE and ADD change rows that exist; AXPY and COPY have a result where the second table
 * has a row. x: room for as many rows of the second table; NULL without one. NUMERIC: a result is not finite. */
MUST_USE paramo_err table_transform_rows(struct table *t, struct table *other, const struct transform *what,
                                         uint64_t *keys, size_t *n, void *vals, void *x);

#endif
