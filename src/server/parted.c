/* A chunk's piece on arcs with different records (clocks.h): part of its keys may have been done where their
 * arcs came from. Those are left out, whatever is new is done, and the number is then recorded for all. */
#include <stdlib.h>
#include <string.h>

#include "server/shard_impl.h"

/* By set: is the number new there? */
static uint64_t new_sets(const struct shard *s, const struct clock *clock, uint64_t number)
{
    uint64_t sets = 0;
    _Static_assert(CLOCK_SETS <= 64, "one bit for each set");
    for (unsigned set = 0; set < CLOCK_SETS; set++)
        if (s->clocks.arcs[set] && clock_look(clock, set, number) == DEDUP_NEW)
            sets |= UINT64_C(1) << set;
    return sets;
}

static bool key_new(const struct shard *s, const struct shard_table *t, uint64_t sets, uint64_t key)
{
    unsigned arc = ring_arc(ring_position(&t->placement, key));
    return sets >> s->clocks.set_of[arc] & 1;
}

static size_t row_bytes(const struct shard_table *t, const struct wire_head *h)
{
    if (h->kind == WIRE_DELETE || t->options.kind == PARAMO_TABLE_VAR)
        return 0;
    return (t->row_values + (h->kind == WIRE_PUT && (h->flags & WIRE_STATE) ? t->state_values : 0)) *
           (size_t)t->value_bytes;
}

/* The new ones of a request's rows, gathered in one buffer: keys | lens, padded to 8 | values. */
static paramo_err change_some(struct shard *s, struct shard_table *t, const struct wire_head *h,
                              const struct van_seg *seg, unsigned nseg, uint64_t sets)
{
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    const uint32_t *lens = h->flags & WIRE_LENS ? seg[WIRE_SEG_LENS].data : NULL;
    size_t n = h->count, row = row_bytes(t, h), lens_at = 8 * n, count = 0, vals = 0;
    size_t vals_at = lens_at + (lens ? (4 * n + 7) & ~(size_t)7 : 0);
    size_t bytes = vals_at + data_seg_len(seg, nseg, WIRE_SEG_VALS);
    uint8_t *some = bufpool_get(&s->pool, bytes);
    if (!some)
        return err_memory(bytes);
    const uint8_t *from = row || lens ? seg[WIRE_SEG_VALS].data : NULL;
    for (size_t i = 0; i < n; i++) {
        size_t len = lens ? lens[i] * (size_t)t->value_bytes : row;
        if (key_new(s, t, sets, keys[i])) {
            memcpy(some + 8 * count, &keys[i], 8);
            if (lens)
                memcpy(some + lens_at + 4 * count, &lens[i], 4);
            if (len)
                memcpy(some + vals_at + vals, from, len);
            vals += len;
            count++;
        }
        from += len;
    }
    struct wire_head head = *h;
    head.count = (uint32_t)count;
    struct van_seg part[VAN_SEGS] = {{.data = some, .len = 8 * count},
                                     {.data = lens ? some + lens_at : NULL, .len = lens ? 4 * count : 0},
                                     {.data = some + vals_at, .len = vals}};
    paramo_err err = count ? apply_change(s, t, &head, part, NULL) : PARAMO_OK;
    bufpool_put(&s->pool, some, bytes);
    return err;
}

/* All rows on arcs where the number is new. */
static paramo_err clear_some(struct shard *s, struct shard_table *t, const struct wire_head *h, uint64_t sets)
{
    uint64_t *keys;
    size_t n, count = 0;
    paramo_err err = table_sorted_keys(t->table, &keys, &n);
    if (err)
        return err;
    for (size_t i = 0; i < n; i++)
        if (key_new(s, t, sets, keys[i]))
            keys[count++] = keys[i];
    struct wire_head head = *h;
    head.kind = WIRE_DELETE;
    head.count = (uint32_t)count;
    const struct van_seg seg[VAN_SEGS] = {{.data = keys, .len = 8 * count}};
    err = count ? apply_change(s, t, &head, seg, NULL) : PARAMO_OK;
    free(keys);
    return err;
}

paramo_err parted_change(struct shard *s, struct shard_table *t, const struct clock *clock,
                         const struct wire_head *h, const struct van_seg *seg, unsigned nseg, uint32_t *known)
{
    uint64_t sets = new_sets(s, clock, h->number);
    if (h->kind == WIRE_CLEAR) {
        for (unsigned set = 0; set < CLOCK_SETS; set++)
            if (s->clocks.arcs[set] && !(sets >> set & 1))
                return clear_some(s, t, h, sets);
        return apply_change(s, t, h, seg, known);
    }
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    size_t fresh = 0;
    for (size_t i = 0; i < h->count; i++)
        fresh += key_new(s, t, sets, keys[i]);
    if (fresh == 0)
        return PARAMO_OK;
    if (fresh == h->count)
        return apply_change(s, t, h, seg, known);
    return change_some(s, t, h, seg, nseg, sets);
}
