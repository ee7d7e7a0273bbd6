/*
 * Reductions over the rows of a table, or over the rows that two tables have, in steps while the tables change. As in
 * table_page.h, a row that exists from the first step to the last is taken once, any other row at most once. The
 * rows of a dense table are taken in order, and long ones in parts. It never knows shards or messages.
 * Tests: test/table/test_table_reduce.c.
 */
#ifndef TABLE_TABLE_REDUCE_H
#define TABLE_TABLE_REDUCE_H

#include "base/reduction.h"
#include "table/table_page.h"

/* The progress of a reduction. Zero-initialised at first. Rows that are too long for a step are taken in parts. */
struct table_reducing {
    uint64_t cursor; /* DENSE: a row; otherwise a hash */
    uint32_t column; /* of a long row */
    bool done;
    /* Not DENSE: a step takes the short rows of a range of hashes. Their long rows follow, one by one, by hash. */
    bool in_row;    /* the next part is of the long row at the cursor, ... */
    uint64_t key;   /* ... which is this key's */
    uint64_t taken; /* the short rows with hashes below this are taken; all of them, if ... */
    bool all_taken;
};

/* UNSUPPORTED, SIZE_MISMATCH: the rows of these tables cannot be combined. other may be NULL. */
MUST_USE paramo_err table_reduce_check(const struct table *t, const struct table *other);
/* Handles about that many values of the range of found->of. wants NULL: all keys. other: the second
 * table, or NULL, as the function needs. */
void table_reduce_step(const struct table *t, const struct table *other, struct table_reducing *at,
                       size_t values, struct reduced *found, table_wants wants, void *arg);

#endif
