#include "sim/overdue.h"

#include "ring/partition_set.h"
#include "server/replication/chain_impl.h"
#include "sim/world.h"

void overdue_mark(struct world *w, const uint64_t *partitions, bool begins)
{
    if (!w->overdue_until)
        w->overdue_from = w->moment;
    w->overdue_until = w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            const struct ledger_key *k = &w->ledger[t].keys[i];
            if (!partition_set_has(partitions, k->partition))
                continue;
            if (begins) {
                k->past->overdue_from = w->moment;
                k->past->overdue_must = k->must;
            }
            k->past->overdue_until = w->moment;
        }
}

/* Does the shard answer reads only because its clock stood still? */
static bool overdue(const struct shard *shard, struct sim_host *host)
{
    const uint64_t lease = CHAIN_LEASE_MS * ENV_MS;
    bool is = false;
    for (const struct chain_stream *st = shard->chain ? shard->chain->streams : NULL; st; st = st->next) {
        uint64_t age = lane_now(shard->lane) - st->heard_at;
        bool leased = st->heard_at && age <= lease;
        if (!leased && !st->migration_source)
            return false;
        is = is || (leased && age + sim_host_stood(host, st->heard_at) > lease);
    }
    return is;
}

void overdue_watch(struct machine *server)
{
    for (unsigned i = 0; i < server->made->own->shards_count; i++) {
        const struct shard *shard = server->made->own->shards[i].shard;
        bool is = shard && overdue(shard, server->host);
        if (is)
            overdue_mark(server->world, shard->chain->mine, !server->overdue[i]);
        server->overdue[i] = is;
    }
}

void overdue_read(const struct ledger_key *k, uint64_t *from, uint64_t *must)
{
    if (*from <= k->past->overdue_from || *from > k->past->overdue_until)
        return;
    *from = k->past->overdue_from;
    *must &= k->past->overdue_must;
}

uint64_t overdue_oldest(const struct world *w, uint64_t oldest)
{
    return oldest > w->overdue_from && oldest <= w->overdue_until ? w->overdue_from : oldest;
}
