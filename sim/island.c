#include "sim/island.h"

#include <string.h>

#include "server/replication/chain_impl.h"
#include "sim/sides.h"
#include "sim/world.h"

enum { LOOK_EVERY = 8 /* events */ };

/* What the fault's number says. */
struct plan {
    struct dice dice;
    uint64_t ns;
    bool still;     /* the list of faults stands still as long as it lasts */
    unsigned depth; /* the island has the members of its owner's chains at the levels below */
};

static struct plan plan_of(uint64_t n)
{
    struct plan p = {.dice = dice_of(n, 23)};
    p.ns = 10 * ENV_SEC + 500 * ENV_MS + dice_draw(&p.dice, 4 * ENV_SEC);
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
        if (!machine_joined(m) || m->declared_dead || stands || !script_works(m))
            continue;
        if (!island->reader)
            island->reader = m->node;
        else
            writers++;
    }
    island->nodes |= 1u << island->reader;
    return island->reader && writers;
}

static void begin(struct world *w, const struct plan *p, struct island *found, size_t fault)
{
    struct island *island = &w->island;
    memcpy(island->keys, found->keys, sizeof island->keys);
    island->nodes = found->nodes;
    island->reader = found->reader;
    island->until = sim_now(w->sim) + p->ns;
    island->still = p->still;
    island->began = w->events;
    w->amid_source = found->reader;
    sides_cut(w, island->nodes, p->ns, fault);
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        script_wake(&w->workers[i]);
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
    struct plan p = plan_of(w->schedule->faults[fault].n);
    struct island found = {0};
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

void island_strike(struct world *w, size_t fault)
{
    if (w->island.count < SIM_ISLANDS)
        w->island.waiting[w->island.count++] = fault;
}

void island_step(struct world *w)
{
    struct island *island = &w->island;
    if (!island->count || island_lasts(w) || w->calm || !w->complete || w->scheduler_lost || w->loading ||
        w->restoring || w->events % LOOK_EVERY || !judge_enough(w, w->gone + 1)) /* at least one is cut off */
        return;
    for (unsigned i = 0; i < island->count; i++)
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
    /* a change that waits for the other side's members may hold back what comes behind it */
    bool reads = reader == often || (reader && m->customers[op->customer].open);
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
    w->island.until = 0;
}
