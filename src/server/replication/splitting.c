#include "server/replication/splitting.h"

#include <assert.h>

#include "server/migration/source.h"
#include "server/replication/entry.h"

const uint64_t *chain_stream_partitions(const struct chain_stream *st, const struct shard_table *t)
{
    static const uint64_t none[CHAIN_WORDS];
    if (st->migration_source && t && !migration_source_sends_table(st->migration_source, t))
        return none;
    return st->migration_source || !t || t->replicas >= RING_REPLICAS_MAX ? st->partitions
                                                                          : st->some[t->replicas];
}

bool chain_touches(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                   const uint64_t *partitions)
{
    for (unsigned i = 0; chain_has_partitions(m) && i < CHAIN_WORDS; i++)
        if (m->partitions[i] & partitions[i])
            return true;
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < m->request.count; i++)
        if (partition_set_has(partitions, ring_partition(ring_position(&t->placement, keys[i]))))
            return true;
    return false;
}

bool chain_within(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                  const uint64_t *partitions)
{
    for (unsigned i = 0; chain_has_partitions(m) && i < CHAIN_WORDS; i++)
        if (m->partitions[i] & ~partitions[i])
            return false;
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < m->request.count; i++)
        if (!partition_set_has(partitions, ring_partition(ring_position(&t->placement, keys[i]))))
            return false;
    return true;
}

paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                       const struct van_seg *seg, unsigned nseg, const uint64_t *only, bool to_target,
                       struct chain_wait *wait, struct queue *entries)
{
    assert(wait || !to_target);
    uint64_t partitions[CHAIN_WORDS];
    for (struct chain_stream *st = c->streams; st; st = st->next) {
        const uint64_t *has = chain_stream_partitions(st, t);
        assert(st->shard == c->shard);
        if (st->migration_source && !to_target)
            continue;
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            partitions[i] = has[i] & (only ? only[i] : UINT64_MAX);
        if (!chain_touches(t, m, seg, partitions))
            continue;
        struct chain_entry *e = chain_entry_make(t, m, seg, nseg, partitions);
        if (!e)
            return err_memory(sizeof *e);
        e->to = st;
        e->wait = st->migration_source && !migration_source_needs_ack(st->migration_source) ? NULL : wait;
        if (e->wait)
            wait->entries++;
        queue_push(entries, &e->node);
    }
    return PARAMO_OK;
}
