#include "server/shard/apply_rows.h"

#include <assert.h>
#include <inttypes.h>

bool apply_owned(const struct shard *s, const struct ring_placement *placement, const uint64_t *keys,
                 size_t n)
{
    const uint16_t *owner = view_ring(s->view)->owner;
    if (s->place->owns_all || !n)
        return true;
    if (placement->kind != PARAMO_PLACE_MIXED) {
        unsigned first = ring_partition(ring_position(placement, keys[0]));
        unsigned last = ring_partition(ring_position(placement, keys[n - 1]));
        unsigned a = first;
        while (a <= last && owner[a] == (unsigned)s->self)
            a++;
        if (a > last)
            return true;
    }
    for (size_t i = 0; i < n; i++) {
        if (owner[ring_partition(ring_position(placement, keys[i]))] != (unsigned)s->self)
            return false;
    }
    return true;
}

/* Clients make the same checks, but send from the caller's arrays, which the caller may have changed since.
 * This ends the request: another connection would bring the same bytes again. */
paramo_err apply_check_order(const struct shard_table *t, const uint64_t *keys, size_t n)
{
    size_t bad = data_keys_ascend(keys, n);
    if (bad < n)
        return err_set(keys[bad] == keys[bad - 1] ? PARAMO_E_KEYS_REPEATED : PARAMO_E_KEYS_UNSORTED,
                       "table %s: key %" PRIu64 " came after %" PRIu64 "%s", t->name, keys[bad],
                       keys[bad - 1], APPLY_CHANGED);
    if (t->options.kind == PARAMO_TABLE_DENSE && n && keys[n - 1] >= t->options.rows)
        return err_set(PARAMO_E_KEY_RANGE, "row %" PRIu64 " is not in table %s, which has %" PRIu64 " rows%s",
                       keys[n - 1], t->name, t->options.rows, APPLY_CHANGED);
    return PARAMO_OK;
}

paramo_err apply_check_keys(const struct shard *s, const struct shard_table *t, const uint64_t *keys,
                            size_t n)
{
    paramo_err err = apply_check_order(t, keys, n);
    if (err)
        return err;
    if (!apply_owned(s, &t->placement, keys, n))
        return err_set(PARAMO_E_INVALID, "table %s: a key belongs to another shard%s", t->name,
                       APPLY_CHANGED);
    return PARAMO_OK;
}

static paramo_err check_len(const struct shard_table *t, const char *what, uint64_t got, uint64_t want)
{
    if (got != want)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s has %" PRIu64 " bytes of values, not %" PRIu64,
                       what, t->name, got, want);
    return PARAMO_OK;
}

/* The bytes of values that a request must have (with lens: that it has). */
static paramo_err check_vals(const struct shard_table *t, const struct wire_head *h,
                             const struct van_seg *seg, unsigned nseg)
{
    uint64_t vals = data_seg_len(seg, nseg, WIRE_SEG_VALS), sum = 0;
    const char *what = wire_kind_name(h->kind);
    if (t->options.kind == PARAMO_TABLE_VAR) {
        if (!(h->flags & WIRE_LENS))
            return err_set(PARAMO_E_PROTOCOL, "%s to table %s has no lens", what, t->name);
        const uint32_t *lens = seg[WIRE_SEG_LENS].data;
        for (uint32_t i = 0; i < h->count; i++)
            sum += lens[i];
        if (vals != sum * t->value_bytes)
            return err_set(PARAMO_E_SIZE_MISMATCH,
                           "table %s: lens that add up to %" PRIu64 " came with %" PRIu64 " values%s",
                           t->name, sum, vals / t->value_bytes, APPLY_CHANGED);
        return PARAMO_OK;
    }
    if (h->flags & WIRE_LENS)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s has lens, but rows of a fixed length have none",
                       what, t->name);
    uint64_t row = t->row_values;
    if (h->flags & WIRE_COLUMNS)
        row = h->columns.count;
    else if (h->kind == WIRE_PUT && (h->flags & WIRE_STATE))
        row += t->state_values;
    return check_len(t, what, vals, h->count * row * t->value_bytes);
}

static paramo_err check_columns(const struct shard_table *t, const struct wire_head *h)
{
    if (!(h->flags & WIRE_COLUMNS))
        return PARAMO_OK;
    bool changes = h->kind != WIRE_PULL && h->kind != WIRE_SCAN;
    struct wire_columns c = h->kind == WIRE_SCAN ? h->scan_columns : h->columns;
    if (!t->row_values || (changes && !table_options_splittable(&t->options)) || c.first >= t->row_values ||
        c.count > t->row_values - c.first)
        return err_set(PARAMO_E_PROTOCOL, "columns %u to %" PRIu64 " do not fit table %s", c.first,
                       (uint64_t)c.first + c.count, t->name);
    return PARAMO_OK;
}

static paramo_err check_clock(const struct shard_table *t, const struct wire_head *h)
{
    bool clocked = h->flags & WIRE_CLOCKED;
    if (t->options.aggregate ? h->kind == WIRE_PUSHPULL || (h->kind == WIRE_PUSH && !clocked) : clocked)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s %s a clock", wire_kind_name(h->kind), t->name,
                       clocked ? "has" : "has no");
    return PARAMO_OK;
}

paramo_err apply_check_rows(const struct shard_table *t, const struct wire_head *h, const struct van_seg *seg,
                            unsigned nseg)
{
    bool brings = h->kind == WIRE_PUSH || h->kind == WIRE_PUSHPULL || h->kind == WIRE_PUT;
    paramo_err err = check_columns(t, h);
    if (!err)
        err = check_clock(t, h);
    if (!err && brings)
        err = check_vals(t, h, seg, nseg);
    return err;
}

/* Does the request touch lost rows? A request for all rows means all that this shard owns. The owner answers
 * for rows of partitions that this shard follows or will get. */
static bool asks_for_lost(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                          const uint64_t *keys)
{
    if (!t->lost || h->kind == WIRE_CLEAR)
        return false;
    bool all = !h->count || h->kind == WIRE_SCAN;
    for (size_t i = 0; i < h->count && !all; i++) {
        unsigned partition = ring_partition(ring_position(&t->placement, keys[i]));
        if (partition_set_has(t->lost_partitions, partition))
            return true;
    }
    for (unsigned a = 0; a < RING_PARTITIONS && all; a++)
        if (partition_set_has(t->lost_partitions, a) && view_ring(s->view)->owner[a] == (unsigned)s->self)
            return true;
    return false;
}

paramo_err apply_check_lost(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                            const uint64_t *keys)
{
    if (!asks_for_lost(s, t, h, keys))
        return PARAMO_OK;
    return err_set(
        PARAMO_E_DATA_LOST,
        "table %s: a server died with the only copy of some rows; clear the table, or load a checkpoint",
        t->name);
}

/* ---- rows that are remembered ---- */

_Static_assert(KEYSET_NO_ROW == TABLE_NO_ROW, "a keyset holds row numbers");

static bool all_there(const uint32_t *rows, size_t n)
{
    uint32_t missing = 0; /* as wide as rows[], so that it is done several rows at a time */
    for (size_t i = 0; i < n; i++)
        missing |= rows[i] == TABLE_NO_ROW;
    return !missing;
}

/* Both offer lists that were not remembered. A list is not kept if a key has no row even then. */
static void offer_end(struct shard_table *t, const uint32_t *rows, size_t n, paramo_err err)
{
    if (!err && all_there(rows, n))
        rowcache_keep(&t->rows, table_generation(t->table));
    else
        rowcache_drop(&t->rows);
}

struct rowcache_list *apply_rows_known(struct shard_table *t, const struct wire_head *h, const uint64_t *keys)
{
    bool whole = (h->kind == WIRE_PUSH || h->kind == WIRE_PULL || h->kind == WIRE_PUSHPULL) &&
                 !(h->flags & WIRE_COLUMNS) && t->options.kind == PARAMO_TABLE_SPARSE;
    return whole ? rowcache_find(&t->rows, table_generation(t->table), keys, h->count) : NULL;
}

/* known: the result of rows_known. */
static paramo_err push_rows(struct shard_table *t, const uint64_t *keys, size_t n,
                            struct rowcache_list *known, const void *vals)
{
    assert(!known || (known->n == n && known->generation == table_generation(t->table)));
    if (known)
        return table_push_rows(t->table, keys, known->rows, n, vals, &known->epoch);
    uint32_t *rows = t->options.kind == PARAMO_TABLE_SPARSE ? rowcache_offer(&t->rows, keys, n) : NULL;
    if (!rows)
        return table_push(t->table, keys, n, vals);
    paramo_err err = table_push_noting(t->table, keys, n, vals, rows);
    offer_end(t, rows, n, err);
    return err;
}

paramo_err apply_pull_rows(struct shard_table *t, const uint64_t *keys, size_t n,
                           const struct rowcache_list *known, const struct keyset_part *part, void *vals,
                           bool create)
{
    const uint64_t owner = table_owner(t->table);
    assert(!known || (known->n == n && known->generation == table_generation(t->table)));
    if (known)
        return table_pull_rows(t->table, keys, known->rows, n, vals);
    if (part && part->n != n)
        part = NULL;
    uint32_t *rows = t->options.kind == PARAMO_TABLE_SPARSE ? rowcache_offer(&t->rows, keys, n) : NULL;
    if (!rows)
        return table_pull(t->table, keys, n, vals, create);
    if (part && keyset_find(part, owner, table_generation(t->table), rows)) {
        rowcache_keep(&t->rows, table_generation(t->table));
        return table_pull_rows(t->table, keys, rows, n, vals);
    }
    paramo_err err = table_pull_noting(t->table, keys, n, vals, create, rows);
    if (part && !err)
        keyset_note(part, owner, table_generation(t->table), rows);
    offer_end(t, rows, n, err);
    return err;
}

/* ---- changing ---- */

static paramo_err push_clocked(struct shard_table *t, const struct wire_head *h, const uint64_t *keys,
                               struct rowcache_list *known, const void *vals)
{
    table_at_clock(t->table, h->clock, h->workers);
    paramo_err err = push_rows(t, keys, h->count, known, vals);
    table_at_clock(t->table, UINT64_MAX, 1);
    return err;
}

paramo_err apply_change(struct shard_table *t, const struct wire_head *h, const struct van_seg *seg,
                        struct rowcache_list *known)
{
    struct table *table = t->table;
    size_t n = h->count;
    assert(table);
    assert(t->options.kind != PARAMO_TABLE_USER && !t->lacks);
    const uint64_t *keys = n ? seg[WIRE_SEG_KEYS].data : NULL;
    bool var = t->options.kind == PARAMO_TABLE_VAR;
    switch (h->kind) {
    case WIRE_PUSH:
    case WIRE_PUSHPULL:
        t->pushes += n;
        if (var)
            return table_var_push(table, keys, n, seg[WIRE_SEG_VALS].data, seg[WIRE_SEG_LENS].data);
        if (h->flags & WIRE_COLUMNS)
            return table_push_columns(table, keys, n, h->columns.first, h->columns.count,
                                      seg[WIRE_SEG_VALS].data);
        return h->flags & WIRE_CLOCKED ? push_clocked(t, h, keys, known, seg[WIRE_SEG_VALS].data)
                                       : push_rows(t, keys, n, known, seg[WIRE_SEG_VALS].data);
    case WIRE_PUT:
        if (var)
            return table_var_put(table, keys, n, seg[WIRE_SEG_VALS].data, seg[WIRE_SEG_LENS].data);
        return table_put_rows(table, keys, n, h->flags & WIRE_STATE, seg[WIRE_SEG_VALS].data);
    default: /* a DELETE */
        return table_delete(table, keys, n, NULL);
    }
}
