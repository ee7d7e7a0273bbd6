#include "server/shard/transforming.h"

#include <assert.h>
#include <string.h>

#include "server/replication/chain_wait.h"
#include "server/shard/apply.h"
#include "server/shard/apply_rows.h"
#include "server/shard/reply.h"
#include "server/shard/second_table.h"
#include "table/table_transform.h"
#include "wire/transform_body.h"

/* keys | values | values of the second table */
struct rows {
    uint64_t *keys;
    uint8_t *vals, *x;
    size_t n, bytes;
};

static paramo_err rows_make(struct shard *s, const struct shard_table *t, const struct transform *what,
                            const struct wire_head *h, const struct van_seg *seg, struct rows *rows)
{
    size_t row = (size_t)t->row_values * t->value_bytes, vals = (h->count * row + 7) & ~(size_t)7;
    *rows = (struct rows){.n = h->count, .bytes = 8 * (size_t)h->count + vals + (what->two ? vals : 0)};
    rows->keys = bufpool_get(&s->pool, rows->bytes);
    if (!rows->keys)
        return err_memory(rows->bytes);
    memcpy(rows->keys, seg[WIRE_SEG_KEYS].data, 8 * (size_t)h->count);
    rows->vals = (uint8_t *)(rows->keys + h->count);
    rows->x = what->two ? rows->vals + vals : NULL;
    assert(rows->vals + vals * (what->two ? 2 : 1) == (uint8_t *)rows->keys + rows->bytes);
    assert(!rows->x || rows->x == rows->vals + vals);
    return PARAMO_OK;
}

/* The same request as a PUT. */
static paramo_err put(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                      const struct rows *rows)
{
    struct van_seg seg[VAN_SEGS] = {{0}};
    struct wire_head head = *h;
    assert(rows->n <= h->count && t->table);
    if (!rows->n) { /* no key has a result: a PUT of no rows would mean all */
        applied_window_record(&peer->sender->applied_window, h->number);
        if (!chain_pending(peer->sender, h)) /* copies may still lack what was done of it before */
            reply_status(peer, h, PARAMO_OK, NULL);
        return PARAMO_OK;
    }
    head.kind = WIRE_PUT;
    head.count = (uint32_t)rows->n;
    seg[WIRE_SEG_KEYS] = (struct van_seg){.data = rows->keys, .len = 8 * rows->n};
    seg[WIRE_SEG_VALS] =
        (struct van_seg){.data = rows->vals, .len = rows->n * t->row_values * t->value_bytes};
    return apply_slice(peer, t, &head, seg, WIRE_SEG_VALS + 1, false);
}

paramo_err transforming_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                              const struct van_seg *seg, unsigned nseg)
{
    struct shard *s = peer->shard;
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    struct shard_table *other = NULL;
    struct transform what;
    struct rows rows;
    paramo_err err = transform_decode(seg[WIRE_SEG_BODY].data, data_seg_len(seg, nseg, WIRE_SEG_BODY), &what);
    if (err)
        return err;
    if (h->flags)
        return err_set(PARAMO_E_PROTOCOL, "TRANSFORM has flags 0x%x, but takes none", h->flags);
    err = apply_check_keys(s, t, keys, h->count);
    if (!err)
        err = apply_check_lost(s, t, h, keys);
    if (!err && what.two)
        err = second_table(s, t, h, keys, what.other, &other);
    if (!err)
        err = table_transform_check(t->table, other ? other->table : NULL, &what);
    if (!err)
        err = rows_make(s, t, &what, h, seg, &rows);
    if (err) {
        reply_status(peer, h, err, err_text());
        return PARAMO_OK;
    }
    err = table_transform_rows(t->table, other ? other->table : NULL, &what, rows.keys, &rows.n, rows.vals,
                               rows.x);
    if (err)
        reply_status(peer, h, err, err_text());
    else
        err = put(peer, t, h, &rows);
    bufpool_put(&s->pool, rows.keys, rows.bytes);
    return err == PARAMO_E_PROTOCOL ? err : PARAMO_OK;
}
