/*
 * One shard's part of one parameter table: rows of values by 64-bit key, and the optimizer that a push
 * applies.
 *
 *     table.h --- table_sparse (any keys) --- keyindex (key -> row number) + rowslab (rows that never move)
 *             \-- table_small  (any keys, rows of 4 or 12 bytes) --- keyindex (key -> row that moves)
 *             \-- table_dense  (runs of 0 .. rows-1, kept contiguous)
 *             \-- table_var    (rows of any length) --- keyindex + rowslab
 *     optimizer: what a push does to values; rowinit: what a row holds at first; tablemem: memory, counted
 *
 * A table is a pure data structure: no I/O, no threads, no time, no randomness. Only the lane of its shard
 * uses it. It must never know which worker pushes, which shards have other keys, or what a view is. The
 * shard checks that keys ascend without repeats. If they do not, the table stays valid, but the result for
 * repeated keys is unspecified. Values are n * dim of the table's dtype, aligned to it. A call that changes
 * the table does everything or, with an error, nothing. Tests: test/table/.
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
    size_t bytes; /* all memory of the table: with its index, spare room and memory still to be freed */
};

/* ---- life ---- */

/* Checks the options (table_options_check) and makes an empty table. A USER table is refused, since it
 * has no storage. hash_seed affects only the places of keys in the index, never results: draw it at
 * random, so that no client can cause collisions. alloc may be NULL. A dense table has no rows before
 * table_dense_own. */
MUST_USE paramo_err table_create(const paramo_table_options *options, uint64_t hash_seed,
                                 const struct table_alloc *alloc, struct table **table);
void table_destroy(struct table *t);
const paramo_table_options *table_get_options(const struct table *t);
/* DENSE: adds the rows first .. first+count-1 at their initial values, contiguously. The table must not
 * have any of them already. */
MUST_USE paramo_err table_dense_own(struct table *t, uint64_t first, uint64_t count);
/* Like table_dense_own(), without values, in a time that does not depend on the count: table_delete gives the rows
 * their initial values. Until then do nothing else with them. */
MUST_USE paramo_err table_dense_own_bare(struct table *t, uint64_t first, uint64_t count);

/* Of an aggregated table (options.aggregate): the clock of the pushes and pulls that follow, and the number of workers
 * for a mean, at least 1. A push is added to those of the same clock; INVALID: a row has one of a later clock. A pull
 * gives what the optimizer makes of all pushes up to the clock; UINT64_MAX: of all, as table_get_rows without state and
 * table_scan_rows do. Set it back to UINT64_MAX afterwards, since other calls read, too. */
void table_at_clock(struct table *t, uint64_t clock, uint32_t workers);
struct aggregate_sum;
/* Of an aggregated table: checks the values of n keys. NUMERIC: some cannot be pushed. */
MUST_USE paramo_err table_sums_check(const struct table *t, const void *vals, size_t n);
/* Adds one key's checked values to dim sums (aggregate.h). */
void table_sums_add(const struct table *t, const void *vals, struct aggregate_sum *sums);
/* Pushes sums of pushes of one clock, dim for each of n > 0 keys. The rows are as after these pushes. */
MUST_USE paramo_err table_push_sums(struct table *t, const uint64_t *keys, size_t n,
                                    const struct aggregate_sum *sums);

/* ---- push and pull (SPARSE and DENSE) ---- */

/* Applies the optimizer to each key's row. SPARSE: missing rows are first created at their initial
 * values. DENSE: a key >= rows is KEY_RANGE, a key of another shard MOVED. A value that is not finite is
 * NUMERIC (assign takes any value; gradient optimizers: see OPTIMIZER_GRADIENT_MAX). */
MUST_USE paramo_err table_push(struct table *t, const uint64_t *keys, size_t n, const void *vals);
/* Reads parameters. With `create` a missing row of a sparse table is created, otherwise its initial values
 * are computed. */
MUST_USE paramo_err table_pull(struct table *t, const uint64_t *keys, size_t n, void *vals, bool create);
/* DENSE: the contiguous parameters of these rows (or the columns from col on of a single row), valid
 * until the table changes. NULL: they are not contiguous, or some are not here. */
const void *table_span(const struct table *t, const uint64_t *keys, size_t n, uint32_t col);
/* table_push and table_pull of the columns col .. col+ncols-1 of each row; vals has n * ncols values. The row's other
 * parameters and their state do not change. Push: only where table_options_splittable. */
MUST_USE paramo_err table_push_columns(struct table *t, const uint64_t *keys, size_t n, uint32_t col,
                                       uint32_t ncols, const void *vals);
MUST_USE paramo_err table_pull_columns(struct table *t, const uint64_t *keys, size_t n, uint32_t col,
                                       uint32_t ncols, void *vals, bool create);

/* ---- rows that the shard remembers, so that a push after a pull costs no look-up (SPARSE; DENSE goes by
 * key) ---- Row numbers are valid while table_generation stays the same: table_delete and table_clear end
 * them, and in a table of small rows (table_small.h) growth does. Never pass numbers of an older
 * generation. */
uint64_t table_generation(const struct table *t);
/* A number that no other table of the process has (keyset.h). */
uint64_t table_owner(const struct table *t);
/* SPARSE: table_push and table_pull that also write the row numbers, as table_resolve would afterwards. */
MUST_USE paramo_err table_push_noting(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                      uint32_t *rows);
MUST_USE paramo_err table_pull_noting(struct table *t, const uint64_t *keys, size_t n, void *vals,
                                      bool create, uint32_t *rows);
/* Sets rows[i] to key i's row number. Without `create` a missing row is TABLE_NO_ROW. DENSE: checks the
 * keys and sets rows to 0. */
MUST_USE paramo_err table_resolve(struct table *t, const uint64_t *keys, size_t n, uint32_t *rows,
                                  bool create);
/* table_push and table_pull by resolved rows. For TABLE_NO_ROW push creates the row and writes its number
 * to rows, and pull computes the initial values. *epoch (or NULL) belongs to the array of rows and is 0
 * at first. A table with an open snapshot, or whose changes are noted (table_snapshot.h), sees in it that
 * all these rows are noted already. */
MUST_USE paramo_err table_push_rows(struct table *t, const uint64_t *keys, uint32_t *rows, size_t n,
                                    const void *vals, uint64_t *epoch);
MUST_USE paramo_err table_pull_rows(struct table *t, const uint64_t *keys, const uint32_t *rows, size_t n,
                                    void *vals);

/* ---- variable-length rows (VAR) ---- */

/* Key i's values are the next lens[i] of vals. assign replaces a row. add adds to a row of the same length
 * (SIZE_MISMATCH otherwise), or stores a missing row. */
MUST_USE paramo_err table_var_push(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                   const uint32_t *lens);
/* The rows' lengths (0 for a missing row) and their sum. */
void table_var_lens(const struct table *t, const uint64_t *keys, size_t n, uint32_t *lens, size_t *total);
/* Reads the rows' values, one after the other; vals has room for table_var_lens' total. */
void table_var_pull(const struct table *t, const uint64_t *keys, size_t n, void *vals);

/* ---- whole rows: save, load, iterate, delete, clear ---- */

uint64_t table_rows(const struct table *t);
/* All keys in ascending order, in memory from malloc, which the caller frees (NULL: no keys). */
MUST_USE paramo_err table_sorted_keys(const struct table *t, uint64_t **keys, size_t *n);
/* Reads rows of table_row_values values each: dim parameters and, with_state, the optimizer's state in
 * the order of optimizer.h. Rows of an aggregated table are as if all pushes were applied. NOT_FOUND: a row is missing.
 * Not for VAR (table_var_lens, table_var_pull). */
MUST_USE paramo_err table_get_rows(const struct table *t, const uint64_t *keys, size_t n, bool with_state,
                                   void *out);
/* table_get_rows for the keys that have a row. It moves these to the front of keys and returns how many
 * there are. VAR: nothing is written, and out may be NULL. Not for DENSE. */
size_t table_scan_rows(const struct table *t, uint64_t *keys, size_t n, bool with_state, void *out);
/* Like table_scan_rows(), for the columns col .. col+ncols-1, which the rows have; out has ncols values for each
 * key. Not for VAR. */
size_t table_scan_columns(const struct table *t, uint64_t *keys, size_t n, uint32_t col, uint32_t ncols,
                          void *out);
/* Writes rows, and creates missing ones. Without state a row starts with these parameters as its initial
 * values. Not for VAR (table_var_put). */
MUST_USE paramo_err table_put_rows(struct table *t, const uint64_t *keys, size_t n, bool with_state,
                                   const void *in);
/* table_get_rows and table_put_rows for rows that move to another table of the same options, with all that a row
 * holds: table_stored_values. */
MUST_USE paramo_err table_get_stored(const struct table *t, const uint64_t *keys, size_t n, void *out);
MUST_USE paramo_err table_put_stored(struct table *t, const uint64_t *keys, size_t n, const void *in);
/* table_var_push with assign, for any optimizer of the table. */
MUST_USE paramo_err table_var_put(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                                  const uint32_t *lens);
/* DENSE: lists at most `most` rows of the table from *cursor on and before `end`, and moves *cursor
 * after them. */
size_t table_dense_list(const struct table *t, uint64_t *cursor, uint64_t end, size_t most, uint64_t *keys);
/* Removes rows; needs no memory. A missing row is no error. removed may be NULL. The rows of a DENSE
 * table stay, and return to their initial values; a key that the table does not have is KEY_RANGE or
 * MOVED. */
MUST_USE paramo_err table_delete(struct table *t, const uint64_t *keys, size_t n, size_t *removed);
struct table_stats table_get_stats(const struct table *t);
/* Not for DENSE. Calls `each` for the next keys from *cursor (0 at first) on, about `rows` or fewer, and
 * moves *cursor. False: there are no more. Each key that has a row from the first call to the last is
 * visited. The table may change between calls. */
bool table_sweep(const struct table *t, uint64_t *cursor, uint64_t rows,
                 void (*each)(void *ctx, uint64_t key), void *ctx);

#endif
