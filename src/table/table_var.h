/*
 * Store of a variable-length table: keyindex gives a key's row number, rowslab a small record that points to
 * the row's values, which have their own memory. table.h has the contract of the functions. It never knows snapshots,
 * only marks. Tests: test/table/test_table_var.c.
 */
#ifndef TABLE_TABLE_VAR_H
#define TABLE_TABLE_VAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/keyindex.h"
#include "table/rowslab.h"
#include "table/rowspec.h"
#include "table/tablemem.h"

struct table_var {
    const struct rowspec *spec; /* dim is not used */
    struct tablemem *mem;
    struct keyindex index;
    struct rowslab slab; /* rows of struct var_row */
};

void table_var_init(struct table_var *v, const struct rowspec *spec, struct tablemem *mem,
                    uint64_t hash_seed);
void table_var_clear(struct table_var *v);
/* Frees the values of about that many rows of a store that will be cleared. *cursor is 0 at first. True: all are freed.
 * After the first call rows point to freed values: call only this function until it returns true, and then only clear
 * `index` and `slab`. table_var_clear would free the values again. */
bool table_var_free_step(struct table_var *v, uint64_t *cursor, uint64_t rows);
/* assign: replaces rows, for any optimizer. Keys must ascend: a repeated key would break "all or nothing". */
MUST_USE paramo_err table_var_store(struct table_var *v, const uint64_t *keys, size_t n, const void *vals,
                                    const uint32_t *lens, bool assign);
void table_var_read_lens(const struct table_var *v, const uint64_t *keys, size_t n, uint32_t *lens,
                         size_t *total);
void table_var_read(const struct table_var *v, const uint64_t *keys, size_t n, void *vals);
/* A row by its number. */
const void *table_var_row(const struct table_var *v, uint32_t row, uint32_t *len);
size_t table_var_delete(struct table_var *v, const uint64_t *keys, size_t n);

#endif
