#include "sim/island.h"

#include <string.h>

#include "ring/chains.h"
#include "server/migration/source.h"
#include "server/replication/chain_impl.h"
#include "sim/judge.h"
#include "sim/machine.h"
#include "sim/sides.h"
#include "sim/world.h"

enum { LOOK_EVERY = 8 /* events */ };

/* How long an island in the middle of a migration waits for the commit. */
#define COMMIT_MOST (500 * ENV_MS)

/* What the fault says. */
struct plan {
    struct dice dice;
    uint64_t ns;
    bool still;     /* the list of faults waits as long as it lasts */
    unsigned depth; /* the island has the members of its owner's chains at the levels below */
    bool paused;    /* it begins in the middle of a migration */
};

static struct plan plan_of(const struct fault *f)
{
    struct plan p = {.dice = dice_of(f->n, 23), .paused = f->to == 1};
    p.ns = (p.paused ? 13 * ENV_SEC : 10 * ENV_SEC + 500 * ENV_MS) + dice_draw(&p.dice, 4 * ENV_SEC);
    p.still = dice_draw(&p.dice, 4) != 0;
    p.depth = dice_draw(&p.dice, 2) ? RING_REPLICAS_MAX : 1 + (unsigned)dice_draw(&p.dice, RING_REPLICAS_MAX);
    return p;
}

/* The machine of a shard of the newest view that works. */
static struct machine *server_of(struct world *w, unsigned shard)
{
    for (uint32_t k = 1; k <= w->schedule->servers; k++) {
        struct machine *m = &w->machines[k];
        if (machine_joined(m) && !m->declared_dead && !m->drains && m->place >= 0 &&
            (unsigned)m->place == shard / w->schedule->shards &&
            sim_host_paused_until(m->host) <= sim_now(w->sim))
            return m;
    }
    return NULL;
}

static uint64_t bit(unsigned shard)
{
    return UINT64_C(1) << shard;
}

/* The members of a partition's chain at these levels, as bits. */
static uint64_t members(const struct ring_chains *chains, unsigned partition, unsigned from, unsigned end)
{
    uint64_t set = 0;
    for (unsigned level = from; level < end && level <= chains->replicas; level++)
        if (chains->level[level].owner[partition] != RING_NONE)
            set |= bit(chains->level[level].owner[partition]);
    return set;
}

/* All shards of the servers that these are of. */
static uint64_t with_neighbours(const struct world *w, uint64_t shards)
{
    uint64_t all = 0;
    for (unsigned shard = 0; shard < w->ring_shards; shard++)
        if (shards & bit(shard))
            all |= ((bit(w->schedule->shards) - 1) << shard / w->schedule->shards * w->schedule->shards);
    return all;
}

/* Rows that clients of both sides use: these partitions of the shard, where another side's member has a copy. */
static bool keys_find(struct world *w, const uint64_t partitions[PARTITION_WORDS], uint64_t shards,
                      struct island *island)
{
    bool any = false;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        island->keys[t] = 0;
        if (t == SIM_USER || judge_replicas(w, (enum sim_table)t) < w->schedule->replicas)
            continue;
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            unsigned partition = w->ledger[t].keys[i].partition;
            if (partition_set_has(partitions, partition) &&
                (members(&w->chains, partition, 0, RING_LEVELS) & ~shards))
                island->keys[t] |= bit(i);
        }
        any = any || island->keys[t];
    }
    return any;
}

/* The client and the servers of the island; enough others of both kinds are on the other side. */
static bool nodes_find(struct world *w, struct plan *p, uint64_t shards, struct island *island)
{
    const struct schedule *s = w->schedule;
    unsigned writers = 0;
    island->nodes = 0;
    for (unsigned shard = 0; shard < w->ring_shards; shard += s->shards) {
        if (!(shards & bit(shard)))
            continue;
        const struct machine *m = server_of(w, shard);
        if (!m)
            return false;
        island->nodes |= 1u << m->node;
    }
    uint32_t first = (uint32_t)dice_draw(&p->dice, s->workers);
    island->reader = 0;
    for (uint32_t i = 0; i < s->workers; i++) {
        const struct machine *m = &w->workers[(first + i) % s->workers];
        bool stands = sim_host_paused_until(m->host) > sim_now(w->sim);
        if (!machine_joined(m) || m->declared_dead || stands || !m->world->app->works(m))
            continue;
        if (!island->reader)
            island->reader = m->node;
        else
            writers++;
    }
    island->nodes |= 1u << island->reader;
    return island->reader && writers;
}

static void begin(struct world *w, const struct plan *p, const struct island *found, size_t fault)
{
    struct island *island = &w->island;
    memcpy(island->keys, found->keys, sizeof island->keys);
    island->nodes = found->nodes;
    island->reader = found->reader;
    island->only_reads = p->paused;
    island->until = sim_now(w->sim) + p->ns;
    island->still = p->still;
    island->began = w->events;
    w->amid_source = found->reader;
    sides_cut(w, island->nodes, p->ns, fault);
    struct machine *reader = &w->machines[island->reader];
    for (unsigned i = 0; i < w->schedule->customers && p->paused; i++)
        if (reader->customers[i].open) /* what the source holds back would hold back the reads */
            (void)machine_close_customer(reader, i, ENV_MS);
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        w->app->wake(&w->workers[i]);
}

/* An owner, and all members of its chains before this depth. */
static bool found_owner(struct world *w, struct plan *p, const struct shard *shard, struct island *found)
{
    uint64_t shards = 0;
    for (partition_set_runs(a, end, shard->chain->runs))
        if (shard->chain->level[a] == 0)
            shards |= members(&shard->view->chains, a, 0, p->depth);
    shards = with_neighbours(w, shards);
    return shards && keys_find(w, shard->chain->mine, shards, found) && nodes_find(w, p, shards, found) &&
           judge_enough(w, w->gone + (unsigned)__builtin_popcount(found->nodes) - 1);
}

static bool fits(struct world *w, size_t fault)
{
    struct plan p = plan_of(&w->schedule->faults[fault]);
    struct island found = {0};
    if (p.paused || !judge_enough(w, w->gone + 1)) /* at least one is cut off */
        return false;
    unsigned first = (unsigned)dice_draw(&p.dice, w->ring_shards);
    p.depth = p.depth < w->schedule->replicas ? p.depth : w->schedule->replicas;
    for (unsigned i = 0; i < w->ring_shards; i++) {
        unsigned index = (first + i) % w->ring_shards;
        struct machine *m = server_of(w, index);
        const struct shard *shard = m ? m->made->own->shards[index % w->schedule->shards].shard : NULL;
        if (!shard || !shard->view || !shard->chain || shard->view->number != w->newest_view)
            continue;
        if (found_owner(w, &p, shard, &found)) {
            begin(w, &p, &found, fault);
            return true;
        }
    }
    return false;
}

/* ---- in the middle of a migration ---- */

/* The source has reported that it has paused. Messages in flight arrive, also when a link is cut. So the island first
 * gets nothing from the scheduler, and begins when others have the view of the commit. */

/* Has each row a copy on a server that works outside the island? The target of the migration is outside. */
static bool rows_outside(struct world *w, uint32_t nodes, const uint64_t migrates[PARTITION_WORDS])
{
    uint64_t outside = 0, begins[PARTITION_WORDS] = {0};
    for (unsigned shard = 0; shard < w->ring_shards; shard++) {
        const struct machine *m = server_of(w, shard);
        if (m && !(nodes >> m->node & 1))
            outside |= bit(shard);
    }
    ring_begins(&w->chains, begins);
    partition_set_run_starts(migrates, begins);
    for (partition_set_runs(a, end, begins))
        if (!partition_set_has(migrates, a) && !(members(&w->chains, a, 0, 1 + judge_spare(w)) & outside))
            return false;
    return true;
}

/* The paused source, and what migrates from it to another server that is to become a member. NULL: none. */
static const struct shard *paused_source(struct world *w, uint32_t server, unsigned index,
                                         uint64_t partitions[PARTITION_WORDS])
{
    const struct machine *m = &w->machines[server];
    const struct shard *shard =
        m->up && index < m->made->own->shards_count ? m->made->own->shards[index].shard : NULL;
    const struct migration_source *g = shard && shard->chain ? shard->chain->migration_source : NULL;
    uint64_t id;
    if (!g || migration_source_state(g, &id) != MIGRATION_SOURCE_PAUSED)
        return NULL;
    const struct migration_order *order = migration_source_order(g);
    memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    partition_set_add_run(partitions, order->first, order->first + order->partitions);
    return order->takes_over || order->handover ? NULL : shard;
}

/* The members of the chains by the source's view, and a client. */
static bool found_paused(struct world *w, struct plan *p, const struct shard *shard,
                         const uint64_t partitions[PARTITION_WORDS], struct island *found)
{
    uint64_t shards = 0;
    for (partition_set_each(a, partitions))
        shards |= members(&shard->view->chains, a, 0, RING_LEVELS);
    for (const struct chain_stream *st = shard->chain->streams; st; st = st->next) {
        int to = view_shard_index(shard->view, st->to.node, st->to.shard);
        if (!st->migration_source && (to < 0 || !(shards & bit((unsigned)to))))
            return false; /* the source has no lease for another partition, and answers no read */
    }
    found->shards = with_neighbours(w, shards);
    return nodes_find(w, p, found->shards, found) && rows_outside(w, found->nodes, partitions);
}

/* The commit's view is there, and the source does not have it. */
static void await_commit(struct world *w)
{
    struct island *island = &w->island, found = *island;
    uint64_t partitions[PARTITION_WORDS];
    const struct shard *shard = paused_source(w, island->source, island->index, partitions);
    if (!shard || sim_now(w->sim) >= island->commit_until) {
        island->commit_until = 0;
        return;
    }
    size_t fault = island->waiting[island->awaits];
    if (shard->view->number == w->newest_view || !keys_find(w, partitions, found.shards, &found) ||
        !rows_outside(w, found.nodes, partitions))
        return;
    struct plan p = plan_of(&w->schedule->faults[fault]);
    island->commit_until = 0;
    island->waiting[island->awaits] = island->waiting[--island->count];
    begin(w, &p, &found, fault);
}

/* No scheduler reaches the island until then. */
static void schedulers_silent(struct world *w, size_t fault)
{
    const struct island *island = &w->island;
    for (uint32_t from = 0; from < w->count; from++)
        for (uint32_t to = 0; to < w->count && w->machines[from].role == PARAMO_ROLE_SCHEDULER; to++) {
            struct road *road = &w->links[from][to];
            if (!(island->nodes >> to & 1) || road->cut_until > island->commit_until)
                continue;
            road->cut_until = island->commit_until;
            road->cut_by = fault;
        }
}

/* The process has taken a step. One of its shards may have paused for a migration. */
static void look_for_pause(struct world *w, uint32_t server, unsigned which)
{
    struct island *island = &w->island;
    size_t fault = island->waiting[which];
    if (w->schedule->faults[fault].to != 1)
        return; /* it waits for no pause */
    struct island found = *island;
    struct plan p = plan_of(&w->schedule->faults[fault]);
    for (unsigned i = 0; i < w->schedule->shards; i++) {
        uint64_t partitions[PARTITION_WORDS];
        const struct shard *shard = paused_source(w, server, i, partitions);
        if (!shard || shard->view->number != w->newest_view ||
            !found_paused(w, &p, shard, partitions, &found))
            continue;
        *island = found;
        island->source = server;
        island->index = i;
        island->awaits = which;
        island->commit_until = sim_now(w->sim) + COMMIT_MOST;
        w->amid_source = found.reader;
        schedulers_silent(w, fault);
        return;
    }
}

void island_strike(struct world *w, size_t fault)
{
    if (w->island.count < SIM_ISLANDS)
        w->island.waiting[w->island.count++] = fault;
}

void island_step(struct world *w)
{
    struct island *island = &w->island;
    if (!island->count || island_lasts(w) || w->calm || !w->complete || w->scheduler_lost || w->loading ||
        w->restoring)
        return;
    uint32_t ran = sim_lane_host(w->sim);
    if (island->commit_until) {
        await_commit(w);
        return;
    }
    for (unsigned i = 0; i < island->count && ran >= 1 && ran <= w->schedule->servers; i++) {
        look_for_pause(w, ran, i);
        if (island->commit_until)
            return;
    }
    for (unsigned i = 0; i < island->count && w->events % LOOK_EVERY == 0; i++)
        if (fits(w, island->waiting[i])) {
            island->waiting[i] = island->waiting[--island->count];
            return;
        }
}

bool island_lasts(const struct world *w)
{
    return sim_now(w->sim) < w->island.until;
}

bool island_still(const struct world *w)
{
    return island_lasts(w) && w->island.still && w->events - w->island.began < ISLAND_STILL;
}

bool island_needs(const struct world *w)
{
    return island_lasts(w) && !w->calm;
}

/* Mostly the client of the island reads and the others write, so that each reads what the other has written. */
bool island_draw(struct machine *m, struct op *op)
{
    struct world *w = m->world;
    const struct island *island = &w->island;
    bool reader = m->node == island->reader, often = dice_draw(&w->dice, 8);
    /* a change that waits for the other side's members, or for a migration's end, may hold back what comes after it */
    bool reads = reader == often || (reader && (island->only_reads || m->customers[op->customer].open));
    unsigned first = (unsigned)dice_draw(&w->dice, SIM_TABLES), t = first;
    while (!island->keys[t])
        if ((t = (t + 1) % SIM_TABLES) == first)
            return false;
    op->table = (enum sim_table)t;
    op->only = island->keys[t];
    op->kind = reads ? OP_PULL : t == SIM_CELLS ? OP_PUT : OP_PUSH;
    return true;
}

void island_heal(struct world *w)
{
    w->island.count = 0;
    w->island.until = w->island.commit_until = 0;
}
