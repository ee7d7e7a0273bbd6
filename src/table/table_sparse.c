#include "table/table_sparse.h"

#include <assert.h>
#include <string.h>

enum {
    BATCH = 64,         /* rows whose cache misses overlap */
    INSERT_AHEAD = 16,  /* keys from prefetch to insertion: what the search fetched has left the cache */
    LONG_ROW = 256,     /* bytes; longer rows are prefetched and used one at a time */
    LONG_AHEAD = 8192,  /* bytes of long rows from a prefetch to the use; measured with rows of 1,248 bytes */
    PREFETCH_MAX = 4096 /* bytes of a row that are prefetched: the processor's own prefetch continues there */
};

void table_sparse_init(struct table_sparse *s, const struct rowspec *spec, struct tablemem *mem,
                       uint64_t hash_seed)
{
    s->spec = spec;
    s->mem = mem;
    keyindex_init(&s->index, mem, hash_seed, sizeof(uint32_t));
    size_t row_bytes = spec->param_bytes + spec->state_bytes;
    rowslab_init(&s->slab, mem, row_bytes, spec->value_bytes == 8 ? 8 : 4);
}

void table_sparse_clear(struct table_sparse *s)
{
    keyindex_clear(&s->index);
    rowslab_clear(&s->slab);
}

static float *state_plane(const struct rowspec *spec, void *row, unsigned plane)
{
    return (float *)((char *)row + spec->param_bytes) + (size_t)plane * spec->dim;
}

/* Sets the state of a row that has its parameters. */
static void start_row(const struct rowspec *spec, void *row)
{
    optimizer_start(&spec->optimizer, row, state_plane(spec, row, 0), state_plane(spec, row, 1), spec->dim);
    if (spec->counts)
        *state_plane(spec, row, 2) = 0;
    if (spec->aggregate)
        aggregate_start(spec, row);
}

/* Creates the missing rows; after an error none is created. 1. the list to undo, 2. rows and index
 * entries, 3. initial values. */
static paramo_err create_missing(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n)
{
    const struct rowspec *spec = s->spec;
    size_t missing = 0;
    for (size_t i = 0; i < n; i++)
        missing += rows[i] == KEYINDEX_NONE;
    if (missing == 0)
        return PARAMO_OK;
    assert(missing <= n && s->slab.used == s->index.count);
    size_t *undo = tablemem_get(s->mem, sizeof *undo, missing * sizeof *undo);
    if (!undo)
        return err_memory(missing * sizeof *undo);
    paramo_err err = PARAMO_OK;
    size_t done = 0;
    for (size_t i = 0; i < n && i < INSERT_AHEAD; i++)
        keyindex_prefetch(&s->index, keys[i]);
    for (size_t i = 0; done < missing; i++) {
        if (i + INSERT_AHEAD < n)
            keyindex_prefetch(&s->index, keys[i + INSERT_AHEAD]);
        if (rows[i] != KEYINDEX_NONE)
            continue;
        uint32_t fresh;
        err = rowslab_alloc(&s->slab, &fresh);
        if (err)
            break;
        void *number;
        bool added;
        err = keyindex_insert(&s->index, keys[i], &number, &added);
        if (err) {
            rowslab_free(&s->slab, fresh);
            break;
        }
        undo[done++] = i;
        if (!added) { /* the key occurs twice in the request */
            rowslab_free(&s->slab, fresh);
            memcpy(&rows[i], number, sizeof rows[i]);
            continue;
        }
        memcpy(number, &fresh, sizeof fresh);
        rows[i] = fresh;
        void *row = rowslab_row(&s->slab, fresh);
        rowinit_fill(&spec->init, keys[i], 0, spec->dim, row);
        start_row(spec, row);
    }
    if (err) {
        while (done > 0) {
            size_t i = undo[--done];
            if (keyindex_remove(&s->index, keys[i], NULL))
                rowslab_free(&s->slab, rows[i]);
            rows[i] = KEYINDEX_NONE;
        }
    }
    tablemem_put(s->mem, undo, missing * sizeof *undo);
    assert(s->slab.used == s->index.count); /* a row for each key */
    return err;
}

paramo_err table_sparse_resolve(struct table_sparse *s, const uint64_t *keys, size_t n, uint32_t *rows,
                                bool create)
{
    size_t found = keyindex_find(&s->index, keys, n, rows);
    return create && found < n ? create_missing(s, keys, rows, n) : PARAMO_OK;
}

/*
 * A walk over the rows of a request. It takes `step` rows at a time, and fetches each `ahead` rows before its use. The
 * processor holds a limited number of lines in flight: a burst of more prefetches waits for memory itself. So long rows
 * are fetched one by one, between the uses of others.
 */
struct walk {
    const struct table_sparse *s;
    const uint32_t *rows;
    size_t n, step, ahead, bytes; /* bytes: those of a row that are fetched */
};

/* Inlined always: gcc 12 takes a function that only prefetches for one without effects, and removes calls of it. */
static inline __attribute__((always_inline)) void prefetch_rows(const struct walk *w, size_t from, size_t to)
{
    for (size_t i = from; i < to && i < w->n; i++) {
        if (w->rows[i] == KEYINDEX_NONE)
            continue;
        const char *row = rowslab_row(&w->s->slab, w->rows[i]);
        for (size_t at = 0; at < w->bytes; at += 64)
            __builtin_prefetch(row + at);
        __builtin_prefetch(row + w->bytes - 1);
    }
}

/* bytes: how many bytes of each row are used, from its start on. */
static struct walk walk_begin(const struct table_sparse *s, const uint32_t *rows, size_t n, size_t bytes)
{
    struct walk w = {.s = s, .rows = rows, .n = n, .step = BATCH, .ahead = BATCH, .bytes = bytes};
    if (w.bytes > PREFETCH_MAX)
        w.bytes = PREFETCH_MAX;
    if (bytes > LONG_ROW) {
        w.step = 1;
        w.ahead = LONG_AHEAD / w.bytes;
    }
    prefetch_rows(&w, 0, w.ahead);
    return w;
}

/* Returns how many rows from `done` on to use next, and fetches rows after them. */
static size_t walk_next(const struct walk *w, size_t done)
{
    size_t m = w->n - done < w->step ? w->n - done : w->step;
    prefetch_rows(w, done + w->ahead, done + w->ahead + m);
    return m;
}

/* Fetches rows as walk_next() does. Call it before each row i in a loop over single rows. */
static void walk_to(const struct walk *w, size_t i)
{
    if (i % w->step == 0)
        (void)walk_next(w, i);
}

/* Adds checked values, or sums; the other one is NULL. */
static paramo_err add_aggregated(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                                 const void *vals, const struct aggregate_sum *sums, struct rowmarks *marks)
{
    const struct rowspec *spec = s->spec;
    paramo_err err = PARAMO_OK;
    assert(spec->aggregate && s->now.workers);
    assert(!vals != !sums);
    for (size_t i = 0; i < n && !err; i++)
        if (rows[i] != KEYINDEX_NONE &&
            aggregate_is_later(spec, rowslab_row(&s->slab, rows[i]), s->now.clock))
            err =
                err_set(PARAMO_E_INVALID,
                        "key %llu has pushes of later clocks than %llu: this worker does not count any more",
                        (unsigned long long)keys[i], (unsigned long long)s->now.clock);
    if (err || (err = create_missing(s, keys, rows, n)) != PARAMO_OK)
        return err;
    if (marks)
        rowmarks_change_all(marks, keys, rows, n);
    struct walk walk = walk_begin(s, rows, n, s->slab.row_bytes);
    for (size_t i = 0; i < n; i++) {
        walk_to(&walk, i);
        void *row = rowslab_row(&s->slab, rows[i]);
        if (vals)
            aggregate_add(spec, row, &s->now, (const char *)vals + i * spec->param_bytes);
        else
            aggregate_add_sums(spec, row, &s->now, sums + i * spec->dim);
    }
    return PARAMO_OK;
}

static paramo_err push_aggregated(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                                  const void *vals, struct rowmarks *marks)
{
    paramo_err err = aggregate_check(s->spec, vals, n * s->spec->dim);
    return err ? err : add_aggregated(s, keys, rows, n, vals, NULL, marks);
}

paramo_err table_sparse_push_sums(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                                  const struct aggregate_sum *sums)
{
    assert(s->spec->aggregate);
    return add_aggregated(s, keys, rows, n, NULL, sums, s->slab.marks);
}

paramo_err table_sparse_push(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                             const void *vals, struct rowmarks *marks)
{
    const struct rowspec *spec = s->spec;
    if (spec->aggregate)
        return push_aggregated(s, keys, rows, n, vals, marks);
    paramo_err err = optimizer_check(&spec->optimizer, vals, n * spec->dim);
    if (err || (err = create_missing(s, keys, rows, n)) != PARAMO_OK)
        return err;
    struct walk walk = walk_begin(s, rows, n, s->slab.row_bytes);
    for (size_t done = 0, m; done < n; done += m) {
        void *batch[BATCH];
        m = walk_next(&walk, done);
        if (marks)
            rowmarks_change_all(marks, keys + done, rows + done, m);
        for (size_t i = 0; i < m; i++)
            batch[i] = rowslab_row(&s->slab, rows[done + i]);
        spec->optimizer.rows(&spec->optimizer, batch, m, spec->dim,
                             (const char *)vals + done * spec->param_bytes);
    }
    return PARAMO_OK;
}

/* The bytes of a row that a pull reads. */
static size_t pulled_bytes(const struct table_sparse *s)
{
    return s->spec->aggregate ? s->slab.row_bytes : s->spec->param_bytes;
}

void table_sparse_pull(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows, size_t n,
                       void *vals)
{
    const struct rowspec *spec = s->spec;
    size_t bytes = spec->param_bytes;
    char *out = vals;
    struct walk walk = walk_begin(s, rows, n, pulled_bytes(s));
    for (size_t done = 0, m; done < n; done += m) {
        m = walk_next(&walk, done);
        for (size_t i = done; i < done + m; i++, out += bytes)
            if (rows[i] == KEYINDEX_NONE)
                rowspec_initial(spec, keys[i], 0, spec->dim, out);
            else if (spec->aggregate)
                aggregate_read(spec, rowslab_row(&s->slab, rows[i]), s->now.clock, 0, spec->dim, out);
            else if (bytes == 4)
                memcpy(out, rowslab_row(&s->slab, rows[i]), 4);
            else if (bytes == 16)
                memcpy(out, rowslab_row(&s->slab, rows[i]), 16);
            else
                memcpy(out, rowslab_row(&s->slab, rows[i]), bytes);
    }
}

void table_sparse_push_columns(struct table_sparse *s, const uint32_t *rows, size_t n, uint32_t col,
                               uint32_t ncols, const void *vals)
{
    const struct rowspec *spec = s->spec;
    const char *from = vals;
    assert(col + ncols <= spec->dim);
    struct walk walk = walk_begin(s, rows, n, s->slab.row_bytes);
    for (size_t i = 0; i < n; i++, from += ncols * spec->value_bytes) {
        walk_to(&walk, i);
        char *w = rowslab_row(&s->slab, rows[i]);
        spec->optimizer.span(&spec->optimizer, w + col * spec->value_bytes, state_plane(spec, w, 0) + col,
                             state_plane(spec, w, 1) + col, 0, from, ncols);
    }
}

void table_sparse_pull_columns(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows,
                               size_t n, uint32_t col, uint32_t ncols, void *vals)
{
    const struct rowspec *spec = s->spec;
    size_t bytes = ncols * spec->value_bytes;
    char *out = vals;
    struct walk walk = walk_begin(s, rows, n, pulled_bytes(s));
    for (size_t i = 0; i < n; i++, out += bytes) {
        walk_to(&walk, i);
        if (rows[i] == KEYINDEX_NONE)
            rowspec_initial(spec, keys[i], col, ncols, out);
        else if (spec->aggregate)
            aggregate_read(spec, rowslab_row(&s->slab, rows[i]), s->now.clock, col, ncols, out);
        else
            memcpy(out, (const char *)rowslab_row(&s->slab, rows[i]) + col * spec->value_bytes, bytes);
    }
}

static size_t part_bytes(const struct rowspec *spec, enum row_part part)
{
    return spec->param_bytes + (part == ROW_STORED  ? spec->state_bytes
                                : part == ROW_STATE ? spec->state_values * sizeof(float)
                                                    : 0);
}

static void row_get(const struct rowspec *spec, const void *row, enum row_part part, void *out)
{
    if (!spec->aggregate || part == ROW_STORED)
        memcpy(out, row, part_bytes(spec, part));
    else if (part == ROW_STATE)
        aggregate_copy(spec, row, out);
    else
        aggregate_read(spec, row, UINT64_MAX, 0, spec->dim, out);
}

paramo_err table_sparse_get(const struct table_sparse *s, const uint64_t *keys, const uint32_t *rows,
                            size_t n, enum row_part part, void *out)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i] == KEYINDEX_NONE) {
            return err_set(PARAMO_E_NOT_FOUND, "the table has no row of key %llu",
                           (unsigned long long)keys[i]);
        }
    }
    size_t bytes = part_bytes(s->spec, part);
    char *to = out;
    struct walk walk = walk_begin(s, rows, n, s->slab.row_bytes);
    for (size_t i = 0; i < n; i++) {
        walk_to(&walk, i);
        row_get(s->spec, rowslab_row(&s->slab, rows[i]), part, to + i * bytes);
    }
    return PARAMO_OK;
}

paramo_err table_sparse_put(struct table_sparse *s, const uint64_t *keys, uint32_t *rows, size_t n,
                            enum row_part part, const void *in)
{
    const struct rowspec *spec = s->spec;
    size_t bytes = part_bytes(spec, part);
    const char *from = in;
    for (size_t i = 0; i < n; i++) {
        const float *w = (const float *)(const void *)(from + i * bytes);
        bool state = part != ROW_PARAMETERS && spec->state_values > 0;
        float t = state && spec->counts ? w[3 * (size_t)spec->dim] : 0;
        paramo_err err = optimizer_check_state(&spec->optimizer, w, state ? w + spec->dim : NULL,
                                               state ? w + 2 * (size_t)spec->dim : NULL, t, spec->dim);
        if (err)
            return err_prefix(err, "key %llu", (unsigned long long)keys[i]);
    }
    paramo_err err = create_missing(s, keys, rows, n);
    if (err)
        return err;
    assert(s->slab.used == s->index.count);
    if (s->slab.marks)
        rowmarks_change_all(s->slab.marks, keys, rows, n);
    for (size_t i = 0; i < n; i++) {
        void *row = rowslab_row(&s->slab, rows[i]);
        memcpy(row, from + i * bytes, bytes);
        if (part == ROW_PARAMETERS)
            start_row(spec, row);
        else if (spec->aggregate && part == ROW_STATE)
            aggregate_start(spec, row);
    }
    return PARAMO_OK;
}

size_t table_sparse_delete(struct table_sparse *s, const uint64_t *keys, size_t n)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row;
        if (keyindex_remove(&s->index, keys[i], &row)) {
            rowslab_free(&s->slab, row);
            removed++;
        }
    }
    assert(s->slab.used == s->index.count);
    return removed;
}
