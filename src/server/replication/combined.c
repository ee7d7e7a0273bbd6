#include "server/replication/combined.h"

#include <assert.h>
#include <string.h>

#include "table/packed_sums.h"

static unsigned partition_of(const struct shard_table *t, uint64_t key)
{
    return ring_partition(ring_position(&t->placement, key));
}

bool combined_get(struct shard *s, const struct shard_table *t, size_t room, size_t pushes,
                  struct combined *x)
{
    *x = (struct combined){.room = room, .dim = t->row_values, .pushes_bytes = pushes * CHAIN_PUSH_BYTES};
    size_t values = room * x->dim;
    x->bytes = room * sizeof *x->keys + values * (sizeof *x->sums + PACKED_SUM_MAX) + x->pushes_bytes;
    uint8_t *memory = bufpool_get(&s->pool, x->bytes);
    if (!memory)
        return false;
    x->sums = (struct aggregate_sum *)(void *)memory;
    x->keys = (uint64_t *)(void *)(memory + values * sizeof *x->sums);
    x->pushes = (uint8_t *)(x->keys + room);
    x->packed = x->pushes + x->pushes_bytes;
    assert(x->packed + values * PACKED_SUM_MAX == memory + x->bytes);
    assert((size_t)((uint8_t *)x->keys - memory) == values * sizeof *x->sums);
    return true;
}

void combined_put(struct shard *s, struct combined *x)
{
    assert(x->sums && x->n <= x->room);
    bufpool_put(&s->pool, x->sums, x->bytes);
}

paramo_err combined_check(const struct shard_table *t, const struct chain_message *m,
                          const struct van_seg *seg, unsigned nseg)
{
    uint64_t bytes = data_seg_len(seg, nseg, WIRE_SEG_VALS);
    size_t values = (size_t)m->request.count * t->row_values;
    if (!t->options.aggregate || !bytes ||
        packed_sums_bytes(seg[WIRE_SEG_VALS].data, (size_t)bytes, values) != bytes)
        return err_set(PARAMO_E_PROTOCOL, "CHAIN to table %s: its sums do not fit the table", t->name);
    return PARAMO_OK;
}

paramo_err combined_apply(struct shard *s, struct shard_table *t, const struct chain_message *m,
                          const struct van_seg *seg, const uint64_t partitions[CHAIN_WORDS])
{
    struct combined x;
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    const uint8_t *packed = seg[WIRE_SEG_VALS].data;
    if (!combined_get(s, t, m->request.count, 0, &x))
        return err_memory(m->request.count);
    for (size_t i = 0; i < m->request.count; i++) {
        packed += packed_sums_get(packed, x.dim, x.sums + x.n * x.dim);
        if (partition_set_has(partitions, partition_of(t, keys[i])))
            x.keys[x.n++] = keys[i];
    }
    assert(x.n <= x.room);
    table_at_clock(t->table, m->request.clock, m->request.workers);
    paramo_err err = x.n ? table_push_sums(t->table, x.keys, x.n, x.sums) : PARAMO_OK;
    table_at_clock(t->table, UINT64_MAX, 1);
    combined_put(s, &x);
    return err;
}

size_t combined_some_bytes(const struct van_seg *seg)
{
    return (size_t)(seg[WIRE_SEG_KEYS].len + seg[WIRE_SEG_LENS].len + seg[WIRE_SEG_VALS].len);
}

void combined_some(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                   const uint64_t *partitions, uint8_t *buffer, struct wire_head *head,
                   struct van_seg some[3])
{
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    const uint8_t *packed = seg[WIRE_SEG_VALS].data;
    size_t pushes_bytes = (size_t)seg[WIRE_SEG_LENS].len, left = (size_t)seg[WIRE_SEG_VALS].len, count = 0,
           used = 0;
    uint8_t *pushes_at = buffer + seg[WIRE_SEG_KEYS].len, *packed_at = pushes_at + pushes_bytes;
    memcpy(pushes_at, seg[WIRE_SEG_LENS].data, pushes_bytes);
    for (size_t i = 0; i < m->request.count; i++) {
        size_t bytes = packed_sums_bytes(packed, left, t->row_values);
        if (!partitions || partition_set_has(partitions, partition_of(t, keys[i]))) {
            memcpy(buffer + 8 * count++, &keys[i], 8);
            memcpy(packed_at + used, packed, bytes);
            used += bytes;
        }
        packed += bytes;
        left -= bytes;
    }
    assert(count <= m->request.count);
    assert(used <= (size_t)seg[WIRE_SEG_VALS].len);
    *head = m->request;
    head->count = (uint32_t)count;
    some[WIRE_SEG_KEYS] = (struct van_seg){.data = buffer, .len = 8 * count};
    some[WIRE_SEG_LENS] = (struct van_seg){.data = pushes_at, .len = pushes_bytes};
    some[WIRE_SEG_VALS] = (struct van_seg){.data = packed_at, .len = used};
}
