/*
 * Store of a sparse table of small rows, 4 or 12 bytes (a float; a float with FTRL's state): a row is beside
 * its key in the index, in the same cache line. That saves the memory of a row number and the second cache
 * miss. The row number is the row's place in the index. Growth ends places, so generations count growth as
 * well. table.h has the contract of the functions, and checks their arguments. It never knows snapshots, only marks.
 * Tests: test/table/test_table_small.c, test_table_sparse.c, test_table_model.c.
 */
#ifndef TABLE_TABLE_SMALL_H
#define TABLE_TABLE_SMALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/keyindex.h"
#include "table/rowspec.h"
#include "table/tablemem.h"

struct table_small {
    const struct rowspec *spec;
    struct tablemem *mem;
    struct keyindex index;
    uint32_t row_bytes;
    float initial[3]; /* a new row, unless its values depend on the key */
};

/* Are rows of this kind small? */
bool table_small_fits(const struct rowspec *spec);
/* The most bytes of a small row. */
enum { TABLE_SMALL_ROW = 12 };

void table_small_init(struct table_small *s, const struct rowspec *spec, struct tablemem *mem,
                      uint64_t hash_seed);
void table_small_clear(struct table_small *s);
/* For each key's row: creates a missing row if `create`, pushes `in` if that is not NULL (which creates
 * as well), then writes parameters to `out` and row numbers to `rows` if these are not NULL. */
MUST_USE paramo_err table_small_visit(struct table_small *s, const uint64_t *keys, size_t n, const void *in,
                                      void *out, bool create, uint32_t *rows);
/* By row numbers. push: all rows exist. marked: they have the index's mark already. */
MUST_USE paramo_err table_small_push_rows(struct table_small *s, const uint64_t *keys, const uint32_t *rows,
                                          size_t n, const void *vals, bool marked);
void table_small_pull_rows(const struct table_small *s, const uint64_t *keys, const uint32_t *rows, size_t n,
                           void *vals);
MUST_USE paramo_err table_small_push_columns(struct table_small *s, const uint64_t *keys, size_t n,
                                             uint32_t col, uint32_t ncols, const void *vals);
MUST_USE paramo_err table_small_pull_columns(struct table_small *s, const uint64_t *keys, size_t n,
                                             uint32_t col, uint32_t ncols, void *vals, bool create);
MUST_USE paramo_err table_small_get(const struct table_small *s, const uint64_t *keys, size_t n,
                                    bool with_state, void *out);
/* Copies the first `bytes` of each existing row, moves their keys to the front of keys, and returns their
 * number. */
size_t table_small_scan(const struct table_small *s, uint64_t *keys, size_t n, size_t bytes, void *out);
MUST_USE paramo_err table_small_put(struct table_small *s, const uint64_t *keys, size_t n, bool with_state,
                                    const void *in);
size_t table_small_delete(struct table_small *s, const uint64_t *keys, size_t n);

#endif
