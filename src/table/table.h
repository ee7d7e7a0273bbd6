/*
 * One shard's part of one parameter table: rows of values by 64-bit key, with the optimizer that a push
 * applies.
 *
 *     table.h --- table_sparse (any keys) --- keyindex (key -> row number) + rowslab (rows that never move)
 *             \-- table_small  (any keys, rows of 4 or 12 bytes) --- keyindex (key -> row that moves)
 *             \-- table_dense  (runs of 0 .. rows-1, kept contiguous)
 *             \-- table_var    (rows of any length) --- keyindex + rowslab
 *     optimizer: what a push does to values; rowinit: what a row holds at first; tablemem: memory, counted
 *
 * A table is a pure data structure: no I/O, no threads, no clock, no randomness; the lane of its shard is the
 * only one to touch it. It must never know who pushes, where other keys live, or what an epoch is. The shard
 * checks that keys ascend without repeats: the table stays sound if they do not, but what becomes of repeats
 * is not said. Values are n * dim of the table's dtype, aligned to it. Each changing call either does all or,
 * with an error, nothing. Tests: test/table/.
 */
#ifndef TABLE_TABLE_H
#define TABLE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "paramo/types.h"
#include "table/table_clear.h"
#include "table/table_options.h"
#include "table/tablemem.h"

struct table;

/* A key without a row (table_resolve). */
#define TABLE_NO_ROW UINT32_MAX

struct table_stats {
    uint64_t rows;
    size_t bytes; /* all memory of the table, its index, spare room and what is to be freed included */
};

/* ---- life ---- */

/* Checks the options (table_options_check) and builds an empty table; a USER table is refused, it has no
 * storage. hash_seed places keys in the index only: draw it at random so that no client can aim at
 * collisions; results never depend on it. alloc may be NULL. A dense table holds no rows before
 * table_dense_own. */
MUST_USE paramo_err table_create(const paramo_table_options *options, uint64_t hash_seed,
                                 const struct table_alloc *alloc, struct table **table);
void table_destroy(struct table *t);
const paramo_table_options *table_get_options(const struct table *t);
/* DENSE: this shard holds the rows first .. first+count-1 from now on, at their initial values, in one
 * contiguous piece. They may not be held already. */
MUST_USE paramo_err table_dense_own(struct table *t, uint64_t first, uint64_t count);

/* ---- push and pull (SPARSE and DENSE) ---- */

/* Applies the optimizer to each key's row. SPARSE: missing rows are created at their initial values first.
 * DENSE: a key >= rows is KEY_RANGE, a key of another shard MOVED. A value that is not finite is NUMERIC (for
 * assign any value goes; for the gradient optimizers see OPTIMIZER_GRADIENT_MAX). */
MUST_USE paramo_err table_push(struct table *t, const uint64_t *keys, size_t n, const void *vals);
/* Reads parameters. A missing row of a sparse table is created if `create`, else its initial values are
 * computed. */
MUST_USE paramo_err table_pull(struct table *t, const uint64_t *keys, size_t n, void *vals, bool create);
/* The parameters of these rows (DENSE; or columns from col on of the only one) where they lie one after the
 * other, until the table changes; NULL if they do not, or are not all here. */
const void *table_span(const struct table *t, const uint64_t *keys, size_t n, uint32_t col);
/* Columns col .. col+ncols-1 of one row: a chunk cut inside a row. Only where table_options_cuttable. */
MUST_USE paramo_err table_push_columns(struct table *t, uint64_t key, uint32_t col, uint32_t ncols,
                                       const void *vals);
MUST_USE paramo_err table_pull_columns(struct table *t, uint64_t key, uint32_t col, uint32_t ncols,
                                       void *vals, bool create);

/* ---- rows that the shard remembers, so that a push after a pull costs no look-up (SPARSE; DENSE goes by
 * key) ---- Row numbers are valid while table_generation stays the same: table_delete and table_clear end
 * them, and in a table of small rows (table_small.h) growth does. Never hand over numbers of an older
 * generation. */
uint64_t table_generation(const struct table *t);
/* table_push and table_pull that write down the row numbers as well, as table_resolve does after them:
 * SPARSE. */
MUST_USE paramo_err table_push_noting(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                      uint32_t *rows);
MUST_USE paramo_err table_pull_noting(struct table *t, const uint64_t *keys, size_t n, void *vals,
                                      bool create, uint32_t *rows);
/* rows[i] is key i's row number, or TABLE_NO_ROW where there is none and not `create`. For a DENSE table the
 * keys are checked and rows is filled with 0. */
MUST_USE paramo_err table_resolve(struct table *t, const uint64_t *keys, size_t n, uint32_t *rows,
                                  bool create);
/* table_push and table_pull by resolved rows. push creates those that are TABLE_NO_ROW and writes their
 * numbers to rows; pull computes their initial values. *epoch (NULL: nobody remembers it) goes with the rows,
 * 0 at first: a table of which a cut is taken, or whose changes are noted (table_snapshot.h), knows by it
 * that it has noted all of them. */
MUST_USE paramo_err table_push_rows(struct table *t, const uint64_t *keys, uint32_t *rows, size_t n,
                                    const void *vals, uint64_t *epoch);
MUST_USE paramo_err table_pull_rows(struct table *t, const uint64_t *keys, const uint32_t *rows, size_t n,
                                    void *vals);

/* ---- variable-length rows (VAR) ---- */

/* Key i's values are the next lens[i] of vals. assign replaces a row; add adds to one of the same length
 * (SIZE_MISMATCH otherwise) and stores where there is none. */
MUST_USE paramo_err table_var_push(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                   const uint32_t *lens);
/* Lengths (0 where there is no row) and their sum. */
void table_var_lens(const struct table *t, const uint64_t *keys, size_t n, uint32_t *lens, size_t *total);
/* Values one after the other; vals has room for table_var_lens' total. */
void table_var_pull(const struct table *t, const uint64_t *keys, size_t n, void *vals);

/* ---- whole rows: save, load, iterate, delete, clear ---- */

uint64_t table_rows(const struct table *t);
/* All keys ascending, in memory from malloc that the caller frees (NULL for none). */
MUST_USE paramo_err table_sorted_keys(const struct table *t, uint64_t **keys, size_t *n);
/* Rows as table_row_values values each: dim parameters and, with_state, the optimizer's state in the order of
 * optimizer.h. A missing key is NOT_FOUND. Not for VAR (table_var_lens, table_var_pull). */
MUST_USE paramo_err table_get_rows(const struct table *t, const uint64_t *keys, size_t n, bool with_state,
                                   void *out);
/* The same of those that have a row, which are then the first of keys; returns how many. VAR: nothing is
 * written, and out may be NULL. Not for DENSE. */
size_t table_scan_rows(const struct table *t, uint64_t *keys, size_t n, bool with_state, void *out);
/* The other way; rows are created. Without state a row starts from these parameters as from initial values.
 * Not for VAR (table_var_put). */
MUST_USE paramo_err table_put_rows(struct table *t, const uint64_t *keys, size_t n, bool with_state,
                                   const void *in);
/* Like table_var_push with assign, whatever the table's optimizer. */
MUST_USE paramo_err table_var_put(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                  const uint32_t *lens);
/* DENSE: the rows held from *cursor on and before `end`, at most `most` of them, and moves *cursor behind
 * them. */
size_t table_dense_list(const struct table *t, uint64_t *cursor, uint64_t end, size_t most, uint64_t *keys);
/* Removes rows, needing no memory; keys without one are no error; *removed may be NULL. A DENSE table's rows
 * cannot go: they return to their initial values; a key that is not held is KEY_RANGE or MOVED. */
MUST_USE paramo_err table_delete(struct table *t, const uint64_t *keys, size_t n, size_t *removed);
struct table_stats table_get_stats(const struct table *t);
/* Not for DENSE. Calls `each` for some keys, about `rows` of them or fewer, from *cursor (0 at first) on, and
 * moves it; false: there are no more. Whatever has a row from the first call to the last is met; in between
 * the table may change. */
bool table_sweep(const struct table *t, uint64_t *cursor, uint64_t rows,
                 void (*each)(void *ctx, uint64_t key), void *ctx);

#endif
