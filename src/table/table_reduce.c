#include "table/table_reduce.h"

#include <assert.h>
#include <string.h>

#include "table/table.h"
#include "table/table_state.h"

enum {
    SWEEP_KEYS = 16384, /* of one sweep; more than a segment has, which a sweep reads as a whole */
    LOOK_UP = 8,        /* what a row costs beside its values, in values; ... */
    LOOK_UP_OTHER = 32, /* ... and its row in a second table */
    AGGREGATED = 64     /* columns of an aggregated row that are computed at a time; arbitrary */
};

paramo_err table_reduce_check(const struct table *t, const struct table *other)
{
    if (!other)
        return PARAMO_OK;
    if (is_var(t) || is_var(other))
        return err_set(PARAMO_E_UNSUPPORTED,
                       "rows of variable length cannot be combined with those of a second table");
    if (t->spec.dim != other->spec.dim)
        return err_set(PARAMO_E_SIZE_MISMATCH, "rows of %u values cannot be combined with rows of %u values",
                       t->spec.dim, other->spec.dim);
    return PARAMO_OK;
}

struct reducing {
    const struct table *table, *other;
    struct reduced *found;
    table_wants wants;
    void *arg;
    /* of tables that are not dense */
    const struct table_reducing *at;
    size_t values; /* of a step: a row with more is long */
    bool is_long;  /* a sweep has met a long row; the one with the lowest hash: */
    uint64_t long_hash, long_key;
};

/* The parameters of a key's row, in an aggregated table without its pending pushes. NULL: the key has no row. */
static const char *row_of(const struct table *t, uint64_t key)
{
    if (is_dense(t))
        return table_dense_span(&t->dense, &key, 1);
    const void *payload = keyindex_payload(index_of(t), key);
    uint32_t number;
    if (!payload || is_small(t))
        return payload;
    memcpy(&number, payload, sizeof number);
    return rowslab_row(&t->sparse.slab, number);
}

/* Adds n columns of a row, with those of the second table's row. A key without such a row is left out. */
static void take(struct reducing *r, uint64_t key, uint32_t column, const void *values, size_t n)
{
    paramo_dtype other_dtype = PARAMO_F32;
    const char *other = NULL;
    double room[AGGREGATED];
    if (r->other) {
        const struct rowspec *spec = &r->other->spec;
        other = row_of(r->other, key);
        if (!other)
            return;
        other_dtype = r->other->options.dtype;
        for (; spec->aggregate && n > AGGREGATED; n -= AGGREGATED, column += AGGREGATED) {
            aggregate_read(spec, other, UINT64_MAX, column, AGGREGATED, room);
            r->found->rows += column == 0;
            reduced_add(r->found, key, column, r->table->options.dtype, values, other_dtype, room,
                        AGGREGATED);
            values = (const char *)values + AGGREGATED * r->table->spec.value_bytes;
        }
        if (spec->aggregate)
            aggregate_read(spec, other, UINT64_MAX, column, (uint32_t)n, room);
        other = spec->aggregate ? (const char *)room : other + column * spec->value_bytes;
    }
    r->found->rows += column == 0;
    reduced_add(r->found, key, column, r->table->options.dtype, values, other_dtype, other, n);
}

/* Like take(), for a row of an aggregated table, as a read sees it. */
static void take_aggregated(struct reducing *r, uint64_t key, const void *row, uint32_t column,
                            uint32_t count)
{
    const struct rowspec *spec = &r->table->spec;
    double values[AGGREGATED];
    for (uint32_t col = column, end = column + count, n; col < end; col += n) {
        n = end - col < AGGREGATED ? end - col : AGGREGATED;
        aggregate_read(spec, row, UINT64_MAX, col, n, values);
        take(r, key, col, values, n);
    }
}

/* The row of a payload, and how many values it has. NULL: it has none. */
static const char *payload_row(const struct table *t, const void *payload, uint32_t *len)
{
    uint32_t number;
    *len = t->spec.dim;
    if (is_small(t))
        return payload;
    memcpy(&number, payload, sizeof number);
    return is_var(t) ? table_var_row(&t->var, number, len) : rowslab_row(&t->sparse.slab, number);
}

/* row: NULL if it is empty. */
static void take_columns(struct reducing *r, uint64_t key, const char *row, uint32_t column, uint32_t n)
{
    if (r->table->spec.aggregate)
        take_aggregated(r, key, row, column, n);
    else
        take(r, key, column, column ? row + (size_t)column * r->table->spec.value_bytes : row, n);
}

static void take_key(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    struct reducing *r = ctx;
    uint32_t len;
    if (!reduction_has(r->found->of, key) || (r->wants && !r->wants(r->arg, key)))
        return;
    const char *row = payload_row(r->table, payload, &len);
    if (len > r->values) {
        if (!r->is_long || hash < r->long_hash) {
            r->long_hash = hash;
            r->long_key = key;
        }
        r->is_long = true;
    } else if (!r->at->all_taken && hash >= r->at->taken) {
        take_columns(r, key, row, 0, len);
    }
}

/* Rows of one run are taken as one, unless entries, a second table or a function of USER need each key. */
static void take_run(struct reducing *r, uint64_t first, uint64_t count)
{
    const struct table *t = r->table;
    const struct reduction *of = r->found->of;
    const char *row = table_dense_at(&t->dense, first, count);
    if (!of->most && !r->other && !r->found->user) {
        r->found->rows += count;
        reduced_add(r->found, first, 0, t->options.dtype, row, PARAMO_F32, NULL, (size_t)count * t->spec.dim);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        take(r, first + i, 0, row + (size_t)i * t->spec.param_bytes, t->spec.dim);
}

/* A part of a row that is too long for one step. */
static void dense_part(struct reducing *r, struct table_reducing *at, size_t values)
{
    const struct table *t = r->table;
    uint32_t left = t->spec.dim - at->column, n = values < left ? (uint32_t)values : left;
    assert(at->column < t->spec.dim && n > 0); /* each step makes progress */
    const char *row = table_dense_at(&t->dense, at->cursor, 1);
    take(r, at->cursor, at->column, row + at->column * t->spec.value_bytes, n);
    at->column += n;
    if (at->column == t->spec.dim) {
        at->column = 0;
        at->cursor++;
    }
}

static void dense_step(struct reducing *r, struct table_reducing *at, size_t values)
{
    const struct table *t = r->table;
    const struct reduction *of = r->found->of;
    size_t cost = t->spec.dim + (r->other ? LOOK_UP_OTHER : 0), rows = values / cost;
    uint64_t first, end;
    do {
        if (at->cursor < of->begin)
            at->cursor = of->begin;
        if (!table_dense_next(&t->dense, at->cursor, &first, &end) || first > of->last) {
            at->done = true;
            return;
        }
        if (first != at->cursor) {
            at->cursor = first;
            at->column = 0;
        }
        if (r->wants && !r->wants(r->arg, first)) {
            at->cursor++;
            at->column = 0;
            rows -= rows > 0;
            continue;
        }
        if (!rows || at->column) { /* a long row */
            dense_part(r, at, values);
            return;
        }
        end = end - 1 > of->last ? of->last + 1 : end;
        end = end - first < rows ? end : first + rows;
        uint64_t stop = first + 1;
        while (stop < end && (!r->wants || r->wants(r->arg, stop)))
            stop++;
        assert(stop > first);
        assert(stop <= end);
        take_run(r, first, stop - first);
        rows -= (size_t)(stop - first);
        at->cursor = stop;
    } while (rows > 0);
}

/* The next part of the long row at the cursor. It may have gone, or have changed its length, since the part before. */
static void long_part(struct reducing *r, struct table_reducing *at)
{
    assert(at->in_row);
    assert(!at->done);
    const struct table *t = r->table;
    const void *payload = keyindex_payload(index_of(t), at->key);
    uint32_t len = 0;
    const char *row = payload ? payload_row(t, payload, &len) : NULL;
    if (len > at->column) {
        uint32_t left = len - at->column, n = r->values < left ? (uint32_t)r->values : left;
        take_columns(r, at->key, row, at->column, n);
        at->column += n;
    }
    if (at->column < len)
        return;
    at->in_row = false;
    at->column = 0;
    at->cursor++;
    at->done = !at->cursor;
}

static void sparse_step(struct reducing *r, struct table_reducing *at)
{
    const struct table *t = r->table;
    if (at->in_row) {
        long_part(r, at);
        return;
    }
    uint64_t count = rows_of(t), cursor = at->cursor;
    size_t bytes = is_var(t) ? (size_t)(count ? t->mem.bytes / count : 0) : t->spec.param_bytes;
    size_t rows = r->values / (bytes / t->spec.value_bytes + LOOK_UP + (r->other ? LOOK_UP_OTHER : 0)) + 1;
    bool more = true;
    for (size_t looked = 0; looked < rows && more && !r->is_long; looked += SWEEP_KEYS) {
        more = keyindex_sweep(index_of(t), &cursor, rows < SWEEP_KEYS ? rows : SWEEP_KEYS, take_key, r);
        if (!more)
            at->all_taken = true;
        else if (cursor > at->taken)
            at->taken = cursor;
    }
    at->in_row = r->is_long;
    at->cursor = r->is_long ? r->long_hash : cursor;
    at->key = r->long_key;
    at->done = !more && !r->is_long;
    assert(!at->done || (at->all_taken && !at->in_row));
}

void table_reduce_step(const struct table *t, const struct table *other, struct table_reducing *at,
                       size_t values, struct reduced *found, table_wants wants, void *arg)
{
    struct reducing r = {.table = t,
                         .other = other,
                         .found = found,
                         .wants = wants,
                         .arg = arg,
                         .at = at,
                         .values = values ? values : 1};
    assert(!table_reduce_check(t, other) && !found->of->two == !other);
    if (at->done)
        return;
    if (is_dense(t))
        dense_step(&r, at, r.values);
    else
        sparse_step(&r, at);
}
