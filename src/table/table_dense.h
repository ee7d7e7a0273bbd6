/*
 * Store of a dense table: the runs of 0 .. rows-1 that this shard has. A run keeps its parameters in one
 * array and each plane of state in another, so that a push of consecutive keys is one vector loop for every
 * optimizer.
 *
 *     runs, ascending:   [first, count) -> w:  count * dim values
 *                                          s0: count * dim floats
 *                                          s1: count * dim floats
 *                                          t:  count floats
 *
 * table.h has the contract of the functions. It never knows snapshots. Tests: test/table/test_table_dense.c,
 * test_table_model.c.
 */
#ifndef TABLE_TABLE_DENSE_H
#define TABLE_TABLE_DENSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/rowspec.h"
#include "table/tablemem.h"

struct dense_run {
    uint64_t first, count;
    char *w;
    float *s0, *s1; /* NULL if the optimizer has no such plane */
    float *t;
};

struct table_dense {
    const struct rowspec *spec;
    struct tablemem *mem;
    uint64_t limit; /* keys are below it */
    struct dense_run *runs;
    size_t count, room;
};

void table_dense_init(struct table_dense *d, const struct rowspec *spec, struct tablemem *mem, uint64_t rows);
void table_dense_fini(struct table_dense *d);
/* values: the rows get their initial values. */
MUST_USE paramo_err table_dense_add_run(struct table_dense *d, uint64_t first, uint64_t count, bool values);
/* KEY_RANGE or MOVED for the first key without a row here. */
MUST_USE paramo_err table_dense_check(const struct table_dense *d, const uint64_t *keys, size_t n);
MUST_USE paramo_err table_dense_push(struct table_dense *d, const uint64_t *keys, size_t n, const void *vals);
MUST_USE paramo_err table_dense_pull(const struct table_dense *d, const uint64_t *keys, size_t n, void *vals);
/* NULL: the rows are not contiguous, or not here. */
const void *table_dense_span(const struct table_dense *d, const uint64_t *keys, size_t n);
MUST_USE paramo_err table_dense_push_columns(struct table_dense *d, const uint64_t *keys, size_t n,
                                             uint32_t col, uint32_t ncols, const void *vals);
MUST_USE paramo_err table_dense_pull_columns(const struct table_dense *d, const uint64_t *keys, size_t n,
                                             uint32_t col, uint32_t ncols, void *vals);
MUST_USE paramo_err table_dense_get(const struct table_dense *d, const uint64_t *keys, size_t n,
                                    bool with_state, void *out);
MUST_USE paramo_err table_dense_put(struct table_dense *d, const uint64_t *keys, size_t n, bool with_state,
                                    const void *in);
/* The first run of rows at or after `from`: first .. end-1. False: there is none. */
bool table_dense_next(const struct table_dense *d, uint64_t from, uint64_t *first, uint64_t *end);
/* Sets all rows to their initial values. */
void table_dense_reset(struct table_dense *d);
/* Sets these rows to their initial values. */
MUST_USE paramo_err table_dense_reset_rows(struct table_dense *d, const uint64_t *keys, size_t n);
uint64_t table_dense_rows(const struct table_dense *d);
/* Writes all keys in ascending order. */
void table_dense_keys(const struct table_dense *d, uint64_t *keys);
/* The parameters of these rows, which are in one run. */
const char *table_dense_at(const struct table_dense *d, uint64_t first, uint64_t count);
/* The number of parameters that are not zero in these rows, which are in one run. */
uint64_t table_dense_nonzero(const struct table_dense *d, uint64_t first, uint64_t count);

#endif
