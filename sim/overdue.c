#include "sim/overdue.h"

#include <string.h>

#include "cluster/view/view.h"
#include "server/replication/chain_impl.h"
#include "sim/world.h"

void overdue_mark(struct world *w, const uint64_t partitions[PARTITION_WORDS],
                  const uint64_t begins[PARTITION_WORDS])
{
    if (!w->overdue_until)
        w->overdue_from = w->moment;
    w->overdue_until = w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            const struct ledger_key *k = &w->ledger[t].keys[i];
            if (!partition_set_has(partitions, k->partition))
                continue;
            if (partition_set_has(begins, k->partition)) {
                k->past->overdue_from = w->moment;
                k->past->overdue_must = k->must;
            }
            k->past->overdue_until = w->moment;
        }
}

/* Does the shard answer reads by a lease? *stood: only because its clock stood still. */
static bool leased(const struct shard *shard, struct sim_host *host, bool *stood)
{
    const uint64_t lease = CHAIN_LEASE_MS * ENV_MS;
    bool any = false;
    *stood = false;
    for (const struct chain_stream *st = shard->chain ? shard->chain->streams : NULL; st; st = st->next) {
        uint64_t age = lane_now(shard->lane) - st->heard_at;
        bool is = st->heard_at && age <= lease;
        if (!is && !st->migration_source)
            return false;
        any = any || is;
        *stood = *stood || (is && age + sim_host_stood(host, st->heard_at) > lease);
    }
    return any;
}

/* Has the shard stopped waiting for the leases that it gave only because its clock has jumped since then? */
static bool is_hasty(const struct shard *shard, const struct sim_host *host)
{
    uint64_t until = shard->chain ? shard->chain->leased_until : 0, now = lane_now(shard->lane);
    return until && now >= until && now - sim_host_jumped(host, until - CHAIN_LEASE_WAIT_MS * ENV_MS) < until;
}

/* Adds the partitions of the shard that a newer view gives to such a shard of another server. */
static void hasty_add(const struct machine *server, const struct shard *shard,
                      uint64_t hasty[PARTITION_WORDS])
{
    const struct world *w = server->world;
    for (uint32_t k = 1; k <= w->schedule->servers; k++) {
        const struct machine *m = &w->machines[k];
        const struct member_slot *slot = m != server && m->up ? m->made->own : NULL;
        for (unsigned i = 0; slot && i < slot->shards_count; i++) {
            const struct shard *other = slot->shards[i].shard;
            if (!other || !other->view || other->view->number <= shard->view->number ||
                !is_hasty(other, m->host))
                continue;
            for (unsigned word = 0; word < PARTITION_WORDS; word++)
                hasty[word] |= shard->chain->mine[word] & other->chain->mine[word];
        }
    }
}

void overdue_watch(struct machine *server)
{
    for (unsigned i = 0; i < server->made->own->shards_count; i++) {
        const struct shard *shard = server->made->own->shards[i].shard;
        struct overdue *before = &server->overdue[i], is = {0};
        uint64_t begins[PARTITION_WORDS], any = 0;
        bool stood;
        if (shard && shard->view && leased(shard, server->host, &stood)) {
            /* The next owner may die, and what it has acknowledged stays. */
            memcpy(is.hasty, before->hasty, sizeof is.hasty);
            hasty_add(server, shard, is.hasty);
            memcpy(is.partitions, stood ? shard->chain->mine : is.hasty, sizeof is.partitions);
        }
        for (unsigned word = 0; word < PARTITION_WORDS; word++) {
            begins[word] = is.partitions[word] & ~before->partitions[word];
            any |= is.partitions[word];
        }
        if (any)
            overdue_mark(server->world, is.partitions, begins);
        *before = is;
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
