/*
 * Store of a sparse table whose rows are not small (table_small.h): keyindex gives a key's row number,
 * rowslab the row. A row has parameters, then state (dim values per plane, then Adam's count, then what aggregate.h
 * keeps). table.h has the contract of the functions, and checks their arguments. It never knows snapshots, only marks.
 * Tests: test/table/test_table_sparse.c, test_table_model.c.
 */
#ifndef TABLE_TABLE_SPARSE_H
#define TABLE_TABLE_SPARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/aggregate.h"
#include "table/keyindex.h"
#include "table/rowslab.h"
#include "table/rowspec.h"
#include "table/tablemem.h"

/* What is read of a row, or put. STORED: with what aggregate.h keeps, as it is. Otherwise a row that is read has its
 * pushes applied, and one that is put has none. */
enum row_part { ROW_PARAMETERS, ROW_STATE, ROW_STORED };

struct table_sparse {
    const struct rowspec *spec;
    struct tablemem *mem;
    struct keyindex index;
    struct rowslab slab;
    struct aggregate_now now; /* aggregated: of the pushes and pulls that follow (table_at_clock) */
};

void table_sparse_init(struct table_sparse *s, const struct rowspec *spec, struct tablemem *mem,
                       uint64_t hash_seed);
void table_sparse_clear(struct table_sparse *s);
MUST_USE paramo_err table_sparse_resolve(struct table_sparse *s, const uint64_t *keys, size_t n,
                                         uint32_t *rows, bool create);
/* marks: the slab's. NULL: existing rows have this epoch's mark already. */
MUST_USE paramo_err table_sparse_push(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                                      const void *vals, struct rowmarks *marks);
/* Like table_sparse_push(), with sums (aggregate.h): dim for each key. */
MUST_USE paramo_err table_sparse_push_sums(struct table_sparse *s, const uint64_t *keys, uint32_t *rows,
                                           size_t n, const struct aggregate_sum *sums);
void table_sparse_pull(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows, size_t n,
                       void *vals);
/* All rows exist, and the values are checked. */
void table_sparse_push_columns(struct table_sparse *s, const uint32_t *rows, size_t n, uint32_t col,
                               uint32_t ncols, const void *vals);
/* rows may contain TABLE_NO_ROW. */
void table_sparse_pull_columns(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows,
                               size_t n, uint32_t col, uint32_t ncols, void *vals);
MUST_USE paramo_err table_sparse_get(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows,
                                     size_t n, enum row_part part, void *out);
MUST_USE paramo_err table_sparse_put(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                                     enum row_part part, const void *in);
size_t table_sparse_delete(struct table_sparse *s, const uint64_t *keys, size_t n);

#endif
