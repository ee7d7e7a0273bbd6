#include "server/shard/partial_apply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/shard/apply_rows.h"
#include "server/shard/clearing.h"

static unsigned partition_of(const struct shard_table *t, uint64_t key)
{
    return ring_partition(ring_position(&t->placement, key));
}

/* ---- some of a request's rows ---- */

static size_t row_bytes(const struct shard_table *t, const struct wire_head *h)
{
    if (h->kind == WIRE_DELETE || t->options.kind == PARAMO_TABLE_VAR)
        return 0;
    if (h->flags & WIRE_COLUMNS)
        return h->columns.count * (size_t)t->value_bytes;
    return (t->row_values + (h->kind == WIRE_PUT && (h->flags & WIRE_STATE) ? t->state_values : 0)) *
           (size_t)t->value_bytes;
}

static size_t lens_room(const struct wire_head *h)
{
    return data_has_lens(h) ? (4 * (size_t)h->count + 7) & ~(size_t)7 : 0;
}

size_t rows_some_bytes(const struct wire_head *h, const struct van_seg *seg, unsigned nseg)
{
    return 8 * (size_t)h->count + lens_room(h) + data_seg_len(seg, nseg, WIRE_SEG_VALS);
}

void rows_some(const struct shard_table *t, const struct wire_head *h, const struct van_seg *seg,
               const uint64_t *partitions, uint8_t *buffer, struct wire_head *head, struct van_seg some[3])
{
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    const uint32_t *lens = data_has_lens(h) ? seg[WIRE_SEG_LENS].data : NULL;
    size_t row = row_bytes(t, h), count = 0, vals = 0;
    uint8_t *lens_at = buffer + 8 * (size_t)h->count, *vals_at = lens_at + lens_room(h);
    const uint8_t *from = row || lens ? seg[WIRE_SEG_VALS].data : NULL;
    for (size_t i = 0; i < h->count; i++) {
        size_t len = lens ? lens[i] * (size_t)t->value_bytes : row;
        if (!partitions || partition_set_has(partitions, partition_of(t, keys[i]))) {
            memcpy(buffer + 8 * count, &keys[i], 8);
            if (lens)
                memcpy(lens_at + 4 * count, &lens[i], 4);
            if (len)
                memcpy(vals_at + vals, from, len);
            vals += len;
            count++;
        }
        if (len)
            from += len;
    }
    assert(count <= h->count);
    *head = *h;
    head->count = (uint32_t)count;
    some[WIRE_SEG_KEYS] = (struct van_seg){.data = buffer, .len = 8 * count};
    some[WIRE_SEG_LENS] = (struct van_seg){.data = lens_at, .len = lens ? 4 * count : 0};
    some[WIRE_SEG_VALS] = (struct van_seg){.data = vals_at, .len = vals};
}

static paramo_err change_some(struct shard *s, struct shard_table *t, const struct wire_head *h,
                              const struct van_seg *seg, unsigned nseg, const uint64_t *partitions)
{
    size_t bytes = rows_some_bytes(h, seg, nseg);
    uint8_t *buffer = bufpool_get(&s->pool, bytes);
    if (!buffer)
        return err_memory(bytes);
    struct wire_head head;
    struct van_seg some[VAN_SEGS] = {{0}};
    rows_some(t, h, seg, partitions, buffer, &head, some);
    assert(some[WIRE_SEG_KEYS].len + some[WIRE_SEG_VALS].len <= bytes);
    paramo_err err = head.count ? apply_change(t, &head, some, NULL) : PARAMO_OK;
    bufpool_put(&s->pool, buffer, bytes);
    return err;
}

paramo_err partial_apply(struct shard *s, struct shard_table *t, const struct wire_head *h,
                         const struct van_seg *seg, unsigned nseg,
                         const uint64_t partitions[RING_PARTITIONS / 64])
{
    if (h->kind == WIRE_CLEAR) {
        clearing_begin(s, t, partitions);
        return PARAMO_OK;
    }
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    size_t fresh = 0;
    for (size_t i = 0; i < h->count; i++)
        fresh += partition_set_has(partitions, partition_of(t, keys[i]));
    if (fresh == 0)
        return PARAMO_OK;
    paramo_err err =
        fresh == h->count ? apply_change(t, h, seg, NULL) : change_some(s, t, h, seg, nseg, partitions);
    if (h->kind == WIRE_DELETE)
        clearing_update(s, t);
    return err;
}
