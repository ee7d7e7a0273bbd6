/* Network partitions: two nodes, a host that vanishes, or any two sides do not reach each other. Some begin in the
 * middle of a migration, when its source has begun to hold changes back or the scheduler may commit it. */
#include "sim/sides.h"

#include "server/migration/source.h"
#include "server/replication/chain_impl.h"
#include "sim/world.h"

void sides_cut(struct world *w, uint32_t nodes, uint64_t ns, size_t fault)
{
    uint64_t until = sim_now(w->sim) + ns;
    for (uint32_t a = 0; a < w->count; a++)
        for (uint32_t b = 0; b < w->count; b++) {
            struct road *road = &w->links[a][b];
            if ((nodes >> a & 1) == (nodes >> b & 1) || road->cut_until > until)
                continue;
            road->cut_until = until;
            road->cut_by = fault;
        }
}

void sides_vanish(struct world *w, const struct machine *m, uint64_t ns, size_t fault)
{
    sides_cut(w, 1u << m->node, ns, fault);
}

void sides_strike(struct world *w, const struct fault *f, size_t fault)
{
    struct sides s = sides_of(f->n);
    if (f->kind == FAULT_split)
        sides_cut(w, 1u << f->from | 1u << f->to, f->n, fault);
    else if (f->kind == FAULT_netsplit)
        sides_cut(w, f->to ? 1u | 1u << f->to : s.nodes | 1u << f->from, s.ns, fault);
    else if (w->amid_count < SIM_AMIDS)
        w->amid[w->amid_count++] = fault;
}

void sides_heal(struct world *w)
{
    w->amid_count = 0;
}

/* A shard of the machine is the source of a migration, and has begun to pause. */
static bool pauses(const struct machine *m, uint32_t *target)
{
    uint64_t id;
    for (unsigned i = 0; m->up && m->role == PARAMO_ROLE_SERVER && i < m->made->own->shards_count; i++) {
        const struct shard *shard = m->made->own->shards[i].shard;
        const struct migration_source *g = shard && shard->chain ? shard->chain->migration_source : NULL;
        if (g && migration_source_state(g, &id) >= MIGRATION_SOURCE_PAUSING) {
            *target = migration_source_order(g)->to.node;
            return true;
        }
    }
    return false;
}

static uint32_t node_of(const struct world *w, uint32_t id)
{
    for (uint32_t k = 1; k <= w->schedule->servers; k++)
        if (w->machines[k].up && w->machines[k].place >= 0 &&
            PARAMO_ID_SERVER((uint32_t)w->machines[k].place) == id)
            return k;
    return 0;
}

void sides_step(struct world *w)
{
    uint32_t target = 0;
    for (uint32_t k = 1; k <= w->schedule->servers && w->amid_count; k++) {
        if (!pauses(&w->machines[k], &target))
            continue;
        size_t fault = w->amid[--w->amid_count];
        struct sides s = sides_of(w->schedule->faults[fault].n);
        uint32_t nodes = 1u << k;
        w->amid_source = k;
        if (s.scheduler)
            nodes |= 1u;
        if (s.client)
            nodes |= 1u << (1 + w->schedule->servers + s.worker % w->schedule->workers);
        if (s.target)
            nodes |= 1u << node_of(w, target);
        sides_cut(w, nodes, s.ns, fault);
        return;
    }
}
