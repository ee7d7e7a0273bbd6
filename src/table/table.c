#include "table/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "table/keyset.h"
#include "table/keysort.h"
#include "table/table_changes.h"
#include "table/table_snapshot.h"
#include "table/table_state.h"

_Static_assert(TABLE_NO_ROW == KEYINDEX_NONE, "row numbers are the index's");

/* The memory for the row numbers of a call is kept, up to this number (1 MiB). */
#define SCRATCH_KEPT ((size_t)256 << 10)

/* Called before rows of a dense table change; the other stores do this themselves. */
static void touch(struct table *t, const uint64_t *keys, size_t n)
{
    if (t->changes.marking)
        table_snapshot_touch(t, keys, n);
}

/* ---- life ---- */

paramo_err table_create(const paramo_table_options *options, uint64_t hash_seed,
                        const struct table_alloc *alloc, struct table **table)
{
    paramo_err err = table_options_check(options);
    if (err)
        return err;
    if (options->kind == PARAMO_TABLE_USER)
        return err_set(PARAMO_E_INVALID, "a table of kind user has no storage: its handler answers requests");
    struct tablemem mem;
    tablemem_init(&mem, alloc);
    struct table *t = tablemem_get(&mem, 64, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    *t = (struct table){.mem = mem, .options = *options, .generation = 1, .owner = keyset_owner_new()};
    rowspec_setup(&t->spec, options);
    rowmarks_init(&t->changes.marks, &t->mem);
    if (is_dense(t))
        table_dense_init(&t->dense, &t->spec, &t->mem, options->rows);
    else if (is_var(t))
        table_var_init(&t->var, &t->spec, &t->mem, hash_seed);
    else if (is_small(t))
        table_small_init(&t->small, &t->spec, &t->mem, hash_seed);
    else
        table_sparse_init(&t->sparse, &t->spec, &t->mem, hash_seed);
    if (t->spec.aggregate)
        table_at_clock(t, UINT64_MAX, 1);
    *table = t;
    return PARAMO_OK;
}

void table_destroy(struct table *t)
{
    if (!t)
        return;
    if (is_dense(t))
        table_dense_fini(&t->dense);
    else if (is_var(t))
        table_var_clear(&t->var);
    else if (is_small(t))
        table_small_clear(&t->small);
    else
        table_sparse_clear(&t->sparse);
    table_remains_free(t);
    tablemem_put(&t->mem, t->scratch, t->scratch_room * sizeof *t->scratch);
    table_changes_forget(t);
    struct tablemem mem = t->mem;
    tablemem_put(&mem, t, sizeof *t);
    assert(mem.bytes == 0);
}

const paramo_table_options *table_get_options(const struct table *t)
{
    return &t->options;
}

static paramo_err own(struct table *t, uint64_t first, uint64_t count, bool values)
{
    if (!is_dense(t))
        return err_set(PARAMO_E_UNSUPPORTED, "only a dense table has ranges of rows");
    if (t->changes.marking)
        table_snapshot_touch_range(t, first, count);
    return table_dense_add_run(&t->dense, first, count, values);
}

paramo_err table_dense_own(struct table *t, uint64_t first, uint64_t count)
{
    return own(t, first, count, true);
}

paramo_err table_dense_own_bare(struct table *t, uint64_t first, uint64_t count)
{
    return own(t, first, count, false);
}

uint64_t table_owner(const struct table *t)
{
    return t->owner;
}

uint64_t table_generation(const struct table *t)
{
    return t->generation + (is_small(t) ? t->small.index.moves : 0);
}

void table_at_clock(struct table *t, uint64_t clock, uint32_t workers)
{
    assert(t->spec.aggregate);
    t->sparse.now = (struct aggregate_now){.clock = clock, .workers = workers};
}

paramo_err table_sums_check(const struct table *t, const void *vals, size_t n)
{
    return aggregate_check(&t->spec, vals, n * t->spec.dim);
}

void table_sums_add(const struct table *t, const void *vals, struct aggregate_sum *sums)
{
    aggregate_collect(&t->spec, sums, vals);
}

/* ---- row numbers of one call ---- */

static paramo_err scratch_get(struct table *t, size_t n, uint32_t **rows)
{
    if (n <= t->scratch_room) {
        *rows = t->scratch;
        return PARAMO_OK;
    }
    assert(!t->scratch == !t->scratch_room);
    size_t room = n;
    if (n <= SCRATCH_KEPT) {
        for (room = 256; room < n; room *= 2) {
        }
    }
    *rows = tablemem_get(&t->mem, 64, room * sizeof **rows);
    if (!*rows)
        return err_memory(room * sizeof **rows);
    if (n <= SCRATCH_KEPT) {
        tablemem_put(&t->mem, t->scratch, t->scratch_room * sizeof *t->scratch);
        t->scratch = *rows;
        t->scratch_room = room;
        assert(t->scratch_room >= n);
    }
    return PARAMO_OK;
}

static void scratch_put(struct table *t, uint32_t *rows, size_t n)
{
    if (rows != t->scratch)
        tablemem_put(&t->mem, rows, n * sizeof *rows);
}

static paramo_err check_fixed(const struct table *t, size_t n)
{
    if (is_var(t)) {
        return err_set(PARAMO_E_UNSUPPORTED,
                       "rows of a variable-length table are read and written with lens");
    }
    if (n >= TABLE_NO_ROW)
        return err_set(PARAMO_E_TOO_LARGE, "%zu keys are too many for one call", n);
    return PARAMO_OK;
}

/* ---- push and pull ---- */

paramo_err table_resolve(struct table *t, const uint64_t *keys, size_t n, uint32_t *rows, bool create)
{
    paramo_err err = check_fixed(t, n);
    if (err)
        return err;
    if (is_dense(t)) {
        err = table_dense_check(&t->dense, keys, n);
        if (err == PARAMO_OK)
            memset(rows, 0, n * sizeof *rows);
        return err;
    }
    if (is_small(t))
        return table_small_visit(&t->small, keys, n, NULL, NULL, create, rows);
    return table_sparse_resolve(&t->sparse, keys, n, rows, create);
}

static bool all_there(const uint32_t *rows, size_t n)
{
    uint32_t missing = 0; /* as wide as rows[], so that the loop becomes vector code */
    for (size_t i = 0; i < n; i++)
        missing |= rows[i] == TABLE_NO_ROW;
    return !missing;
}

paramo_err table_push_rows(struct table *t, const uint64_t *keys, uint32_t *rows, size_t n, const void *vals,
                           uint64_t *epoch)
{
    paramo_err err = check_fixed(t, n);
    if (err)
        return err;
    if (is_dense(t)) {
        touch(t, keys, n);
        return table_dense_push(&t->dense, keys, n, vals);
    }
    bool marked = !t->changes.marking || (epoch && *epoch == t->changes.epoch);
    if (!is_small(t))
        err = table_sparse_push(&t->sparse, keys, rows, n, vals, marked ? NULL : &t->changes.marks);
    else if (all_there(rows, n))
        err = table_small_push_rows(&t->small, keys, rows, n, vals, marked);
    else
        err = table_small_visit(&t->small, keys, n, vals, NULL, true, rows);
    if (epoch && !err)
        *epoch = t->changes.epoch;
    return err;
}

paramo_err table_pull_rows(struct table *t, const uint64_t *keys, const uint32_t *rows, size_t n, void *vals)
{
    paramo_err err = check_fixed(t, n);
    if (err)
        return err;
    if (is_dense(t))
        return table_dense_pull(&t->dense, keys, n, vals);
    if (is_small(t)) {
        table_small_pull_rows(&t->small, keys, rows, n, vals);
        return PARAMO_OK;
    }
    table_sparse_pull(&t->sparse, keys, rows, n, vals);
    return PARAMO_OK;
}

enum { PUSH = 1, PULL = 2, CREATE = 4 };

/* Finds rows, creates them, pushes and pulls: `what` says which. */
static paramo_err push_pull(struct table *t, const uint64_t *keys, size_t n, const void *in, void *out,
                            unsigned what, uint32_t *noted)
{
    paramo_err err = check_fixed(t, n);
    if (err || n == 0)
        return err;
    if (is_dense(t)) {
        if (what & PUSH) {
            touch(t, keys, n);
            err = table_dense_push(&t->dense, keys, n, in);
        }
        return !err && (what & PULL) ? table_dense_pull(&t->dense, keys, n, out) : err;
    }
    if (is_small(t)) {
        return table_small_visit(&t->small, keys, n, what & PUSH ? in : NULL, what & PULL ? out : NULL,
                                 what & CREATE, noted);
    }
    uint32_t *rows = noted;
    if (!noted && (err = scratch_get(t, n, &rows)) != PARAMO_OK)
        return err;
    err = table_sparse_resolve(&t->sparse, keys, n, rows, what & CREATE);
    if (!err && (what & PUSH))
        err = table_sparse_push(&t->sparse, keys, rows, n, in, t->sparse.slab.marks);
    if (!err && (what & PULL))
        table_sparse_pull(&t->sparse, keys, rows, n, out);
    if (!noted)
        scratch_put(t, rows, n);
    return err;
}

paramo_err table_push_sums(struct table *t, const uint64_t *keys, size_t n, const struct aggregate_sum *sums)
{
    uint32_t *rows;
    paramo_err err = scratch_get(t, n, &rows);
    assert(t->spec.aggregate && n);
    if (err)
        return err;
    err = table_sparse_resolve(&t->sparse, keys, n, rows, false);
    if (!err)
        err = table_sparse_push_sums(&t->sparse, keys, rows, n, sums);
    scratch_put(t, rows, n);
    return err;
}

const void *table_span(const struct table *t, const uint64_t *keys, size_t n, uint32_t col)
{
    const char *rows = is_dense(t) && n ? table_dense_span(&t->dense, keys, n) : NULL;
    return rows ? rows + col * t->spec.value_bytes : NULL;
}

paramo_err table_push(struct table *t, const uint64_t *keys, size_t n, const void *vals)
{
    return push_pull(t, keys, n, vals, NULL, PUSH, NULL);
}

paramo_err table_pull(struct table *t, const uint64_t *keys, size_t n, void *vals, bool create)
{
    return push_pull(t, keys, n, NULL, vals, PULL | (create ? CREATE : 0), NULL);
}

paramo_err table_push_noting(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                             uint32_t *rows)
{
    assert(t->options.kind == PARAMO_TABLE_SPARSE);
    return push_pull(t, keys, n, vals, NULL, PUSH, rows);
}

paramo_err table_pull_noting(struct table *t, const uint64_t *keys, size_t n, void *vals, bool create,
                             uint32_t *rows)
{
    assert(t->options.kind == PARAMO_TABLE_SPARSE);
    return push_pull(t, keys, n, NULL, vals, PULL | (create ? CREATE : 0), rows);
}

static paramo_err check_columns(const struct table *t, size_t n, uint32_t col, uint32_t ncols)
{
    paramo_err err = check_fixed(t, n);
    if (!err && (ncols == 0 || col >= t->options.dim || ncols > t->options.dim - col))
        err = err_set(PARAMO_E_SIZE_MISMATCH, "first column %u and %u columns from it do not fit a row of %u",
                      col, ncols, t->options.dim);
    return err;
}

paramo_err table_push_columns(struct table *t, const uint64_t *keys, size_t n, uint32_t col, uint32_t ncols,
                              const void *vals)
{
    if (!table_options_splittable(&t->options))
        return err_set(PARAMO_E_UNSUPPORTED, "rows of this table cannot be pushed in parts: push whole rows");
    paramo_err err = check_columns(t, n, col, ncols);
    if (err || n == 0)
        return err;
    if (ncols == t->options.dim)
        return table_push(t, keys, n, vals);
    if (is_dense(t)) {
        touch(t, keys, n);
        return table_dense_push_columns(&t->dense, keys, n, col, ncols, vals);
    }
    if (is_small(t))
        return table_small_push_columns(&t->small, keys, n, col, ncols, vals);
    uint32_t *rows;
    if ((err = optimizer_check(&t->spec.optimizer, vals, n * ncols)) != PARAMO_OK ||
        (err = scratch_get(t, n, &rows)) != PARAMO_OK)
        return err;
    err = table_sparse_resolve(&t->sparse, keys, n, rows, true);
    if (!err && t->sparse.slab.marks)
        rowmarks_change_all(t->sparse.slab.marks, keys, rows, n);
    if (!err)
        table_sparse_push_columns(&t->sparse, rows, n, col, ncols, vals);
    scratch_put(t, rows, n);
    return err;
}

paramo_err table_pull_columns(struct table *t, const uint64_t *keys, size_t n, uint32_t col, uint32_t ncols,
                              void *vals, bool create)
{
    paramo_err err = check_columns(t, n, col, ncols);
    if (err || n == 0)
        return err;
    if (is_dense(t))
        return table_dense_pull_columns(&t->dense, keys, n, col, ncols, vals);
    if (is_small(t))
        return table_small_pull_columns(&t->small, keys, n, col, ncols, vals, create);
    uint32_t *rows;
    err = scratch_get(t, n, &rows);
    if (err)
        return err;
    err = table_sparse_resolve(&t->sparse, keys, n, rows, create);
    if (!err)
        table_sparse_pull_columns(&t->sparse, keys, rows, n, col, ncols, vals);
    scratch_put(t, rows, n);
    return err;
}

/* ---- variable-length rows ---- */

static paramo_err check_var(const struct table *t, size_t n)
{
    if (!is_var(t))
        return err_set(PARAMO_E_UNSUPPORTED, "rows of this table have a fixed length: send no lens");
    if (n >= TABLE_NO_ROW)
        return err_set(PARAMO_E_TOO_LARGE, "%zu keys are too many for one call", n);
    return PARAMO_OK;
}

paramo_err table_var_push(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                          const uint32_t *lens)
{
    paramo_err err = check_var(t, n);
    bool assign = t->options.optimizer == PARAMO_OPT_ASSIGN;
    return err ? err : table_var_store(&t->var, keys, n, vals, lens, assign);
}

paramo_err table_var_put(struct table *t, const uint64_t *keys, size_t n, const void *vals,
                         const uint32_t *lens)
{
    paramo_err err = check_var(t, n);
    return err ? err : table_var_store(&t->var, keys, n, vals, lens, true);
}

void table_var_lens(const struct table *t, const uint64_t *keys, size_t n, uint32_t *lens, size_t *total)
{
    assert(is_var(t));
    table_var_read_lens(&t->var, keys, n, lens, total);
}

void table_var_pull(const struct table *t, const uint64_t *keys, size_t n, void *vals)
{
    assert(is_var(t));
    table_var_read(&t->var, keys, n, vals);
}

/* ---- whole rows ---- */

static void collect_key(void *ctx, uint64_t key, void *payload)
{
    (void)payload;
    uint64_t **end = ctx;
    *(*end)++ = key;
}

uint64_t table_rows(const struct table *t)
{
    return rows_of(t);
}

paramo_err table_sorted_keys(const struct table *t, uint64_t **keys, size_t *n)
{
    size_t rows = (size_t)table_rows(t);
    if (rows == 0) {
        *keys = NULL;
        *n = 0;
        return PARAMO_OK;
    }
    uint64_t *all = malloc(rows * sizeof *all);
    if (!all)
        return err_memory(rows * sizeof *all);
    if (is_dense(t)) {
        table_dense_keys(&t->dense, all);
    } else {
        uint64_t *scratch = malloc(rows * sizeof *scratch);
        if (!scratch) {
            free(all);
            return err_memory(rows * sizeof *scratch);
        }
        uint64_t *end = all;
        keyindex_walk(index_of(t), collect_key, &end);
        assert(end == all + rows);
        keysort(all, scratch, rows);
        free(scratch);
    }
    *keys = all;
    *n = rows;
    return PARAMO_OK;
}

static paramo_err rows_get(const struct table *t, const uint64_t *keys, size_t n, enum row_part part,
                           void *out)
{
    paramo_err err = check_fixed(t, n);
    if (err || n == 0)
        return err;
    if (is_dense(t))
        return table_dense_get(&t->dense, keys, n, part != ROW_PARAMETERS, out);
    if (is_small(t))
        return table_small_get(&t->small, keys, n, part != ROW_PARAMETERS, out);
    uint32_t *rows = malloc(n * sizeof *rows);
    if (!rows)
        return err_memory(n * sizeof *rows);
    keyindex_find(&t->sparse.index, keys, n, rows);
    err = table_sparse_get(&t->sparse, keys, rows, n, part, out);
    free(rows);
    return err;
}

paramo_err table_get_rows(const struct table *t, const uint64_t *keys, size_t n, bool with_state, void *out)
{
    return rows_get(t, keys, n, with_state ? ROW_STATE : ROW_PARAMETERS, out);
}

paramo_err table_get_stored(const struct table *t, const uint64_t *keys, size_t n, void *out)
{
    return rows_get(t, keys, n, ROW_STORED, out);
}

size_t table_dense_list(const struct table *t, uint64_t *cursor, uint64_t end, size_t most, uint64_t *keys)
{
    uint64_t first, last;
    size_t n = 0;
    while (n < most && *cursor < end && table_dense_next(&t->dense, *cursor, &first, &last) && first < end) {
        last = last < end ? last : end;
        for (; n < most && first < last; first++)
            keys[n++] = first;
        *cursor = first;
    }
    *cursor = n < most ? end : *cursor;
    return n;
}

enum { SCAN_AT_ONCE = 512 }; /* keys; arbitrary */

/* Moves the keys of keys[0 .. n) that have a row to the front; rows: their row numbers. */
static size_t find_existing(const struct table *t, uint64_t *keys, size_t n, uint32_t rows[SCAN_AT_ONCE])
{
    size_t kept = 0;
    keyindex_find(&t->sparse.index, keys, n, rows);
    for (size_t i = 0; i < n; i++) {
        keys[kept] = keys[i];
        rows[kept] = rows[i];
        kept += rows[i] != KEYINDEX_NONE;
    }
    return kept;
}

static size_t scan_sparse(const struct table *t, uint64_t *keys, size_t n, bool with_state, char *out)
{
    uint32_t rows[SCAN_AT_ONCE];
    size_t kept = find_existing(t, keys, n, rows);
    paramo_err err =
        table_sparse_get(&t->sparse, keys, rows, kept, with_state ? ROW_STATE : ROW_PARAMETERS, out);
    assert(!err);
    (void)err;
    return kept;
}

static size_t scan_var(const struct table *t, uint64_t *keys, size_t n)
{
    uint32_t rows[SCAN_AT_ONCE];
    size_t kept = 0;
    keyindex_find(&t->var.index, keys, n, rows);
    for (size_t i = 0; i < n; i++) {
        keys[kept] = keys[i];
        kept += rows[i] != KEYINDEX_NONE;
    }
    return kept;
}

size_t table_scan_rows(const struct table *t, uint64_t *keys, size_t n, bool with_state, void *out)
{
    size_t bytes = t->spec.param_bytes + (with_state ? t->spec.state_values * sizeof(float) : 0), kept = 0;
    char *to = out;
    assert(!is_dense(t));
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < SCAN_AT_ONCE ? n - i : SCAN_AT_ONCE;
        memmove(keys + kept, keys + i, some * sizeof *keys);
        size_t found = is_var(t)     ? scan_var(t, keys + kept, some)
                       : is_small(t) ? table_small_scan(&t->small, keys + kept, some, bytes, to)
                                     : scan_sparse(t, keys + kept, some, with_state, to);
        kept += found;
        to = is_var(t) ? NULL : to + found * bytes;
    }
    assert(kept <= n);
    return kept;
}

static size_t scan_small_columns(const struct table *t, uint64_t *keys, size_t n, uint32_t col,
                                 uint32_t ncols, char *out)
{
    char rows[SCAN_AT_ONCE * TABLE_SMALL_ROW];
    size_t row = t->spec.param_bytes, value = t->spec.value_bytes;
    assert(n <= SCAN_AT_ONCE);
    size_t kept = table_small_scan(&t->small, keys, n, row, rows);
    assert(row <= TABLE_SMALL_ROW);
    for (size_t i = 0; i < kept; i++)
        memcpy(out + i * ncols * value, rows + i * row + col * value, ncols * value);
    return kept;
}

size_t table_scan_columns(const struct table *t, uint64_t *keys, size_t n, uint32_t col, uint32_t ncols,
                          void *out)
{
    uint32_t rows[SCAN_AT_ONCE];
    size_t kept = 0;
    char *to = out;
    assert(!is_dense(t) && !is_var(t) && col < t->spec.dim && ncols <= t->spec.dim - col);
    for (size_t i = 0, some; i < n; i += some) {
        some = n - i < SCAN_AT_ONCE ? n - i : SCAN_AT_ONCE;
        memmove(keys + kept, keys + i, some * sizeof *keys);
        size_t found = is_small(t) ? scan_small_columns(t, keys + kept, some, col, ncols, to)
                                   : find_existing(t, keys + kept, some, rows);
        if (!is_small(t))
            table_sparse_pull_columns(&t->sparse, keys + kept, rows, found, col, ncols, to);
        kept += found;
        to += found * ncols * t->spec.value_bytes;
    }
    assert(kept <= n);
    return kept;
}

static paramo_err rows_put(struct table *t, const uint64_t *keys, size_t n, enum row_part part,
                           const void *in)
{
    paramo_err err = check_fixed(t, n);
    if (err || n == 0)
        return err;
    if (is_dense(t)) {
        touch(t, keys, n);
        return table_dense_put(&t->dense, keys, n, part != ROW_PARAMETERS, in);
    }
    if (is_small(t))
        return table_small_put(&t->small, keys, n, part != ROW_PARAMETERS, in);
    uint32_t *rows;
    err = scratch_get(t, n, &rows);
    if (err)
        return err;
    keyindex_find(&t->sparse.index, keys, n, rows);
    err = table_sparse_put(&t->sparse, keys, rows, n, part, in);
    scratch_put(t, rows, n);
    return err;
}

paramo_err table_put_rows(struct table *t, const uint64_t *keys, size_t n, bool with_state, const void *in)
{
    return rows_put(t, keys, n, with_state ? ROW_STATE : ROW_PARAMETERS, in);
}

paramo_err table_put_stored(struct table *t, const uint64_t *keys, size_t n, const void *in)
{
    return rows_put(t, keys, n, ROW_STORED, in);
}

paramo_err table_delete(struct table *t, const uint64_t *keys, size_t n, size_t *removed)
{
    if (is_dense(t)) {
        touch(t, keys, n);
        if (removed)
            *removed = 0;
        return table_dense_reset_rows(&t->dense, keys, n);
    }
    if (t->changes.marking)
        table_snapshot_remove(t, keys, n);
    uint64_t before = table_rows(t);
    size_t count = is_var(t)     ? table_var_delete(&t->var, keys, n)
                   : is_small(t) ? table_small_delete(&t->small, keys, n)
                                 : table_sparse_delete(&t->sparse, keys, n);
    assert(count <= n);
    assert(table_rows(t) + count == before);
    t->generation += count > 0;
    if (count > 0 && table_rows(t) == 0)
        table_emptied(t);
    if (removed)
        *removed = count;
    return PARAMO_OK;
}

struct sweep {
    void (*each)(void *ctx, uint64_t key);
    void *ctx;
};

static void sweep_key(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    const struct sweep *sweep = ctx;
    (void)hash;
    (void)payload;
    sweep->each(sweep->ctx, key);
}

bool table_sweep(const struct table *t, uint64_t *cursor, uint64_t rows,
                 void (*each)(void *ctx, uint64_t key), void *ctx)
{
    struct sweep sweep = {each, ctx};
    return keyindex_sweep(index_of(t), cursor, rows, sweep_key, &sweep);
}

struct table_stats table_get_stats(const struct table *t)
{
    return (struct table_stats){.rows = table_rows(t), .bytes = t->mem.bytes};
}
