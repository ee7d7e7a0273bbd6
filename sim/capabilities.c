#include "sim/capabilities.h"

#include "base/hash.h"
#include "server/replication/chain_impl.h"
#include "server/shard/peers.h"
#include "sim/judge.h"
#include "sim/world.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/links.h"

uint64_t capabilities_draw(const struct world *w, uint32_t node)
{
    uint64_t r = mix64(w->schedule->seed ^ mix64(sim_now(w->sim) ^ (uint64_t)node << 56));
    const uint64_t functions = CAPABILITY_REDUCE | CAPABILITY_TRANSFORM | CAPABILITY_RANGE |
                               CAPABILITY_FUNCTIONS | CAPABILITY_COLUMNS | CAPABILITY_READERS;
    uint64_t some = r % 4 == 0 ? 0 : r % 4 == 1 ? mix64(r) : UINT64_MAX;
    some |= (r >> 16) % 8 ? CAPABILITY_AGGREGATE : 0; /* of a chain, all must have it */
    /* most processes have the capabilities without which a request would be refused */
    return (r >> 8) % 16 ? some | functions : some & ~functions;
}

uint64_t capabilities_lacked(const struct machine *m, uint32_t servers)
{
    const struct world *w = m->world;
    uint64_t lacked = ~m->van->capabilities;
    for (unsigned p = 0; p < SIM_SERVERS;
         p++) /* clients and chains may not know yet that a process has ended */
        lacked |= servers >> p & 1 ? w->lacked[p] : 0;
    return lacked;
}

static const struct machine *machine_of(const struct world *w, uint64_t incarnation)
{
    for (uint32_t k = 1; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (m->up && m->made->own && m->made->own->incarnation == incarnation)
            return m;
    }
    return NULL;
}

/* m's end of a connection to the process of that incarnation. */
static void end_check(struct world *w, const struct machine *m, const struct van_conn *conn,
                      uint64_t incarnation)
{
    const struct machine *peer = conn ? machine_of(w, incarnation) : NULL;
    if (peer && conn->capabilities != (m->van->capabilities & peer->van->capabilities))
        judge_broken(w, "%s has capabilities %016llx with %s, not %016llx", m->name,
                     (unsigned long long)conn->capabilities, peer->name,
                     (unsigned long long)(m->van->capabilities & peer->van->capabilities));
}

static void shard_check(struct world *w, const struct machine *m, const struct shard *s)
{
    for (const struct peer *p = peers_first(s); p; p = p->next)
        end_check(w, m, p->conn, p->sender->id.incarnation);
    for (const struct chain_stream *st = s->chain ? s->chain->streams : NULL; st; st = st->next)
        end_check(w, m, st->conn, st->incarnation);
    for (const struct chain_source *x = s->chain ? s->chain->sources : NULL; x; x = x->next)
        end_check(w, m, x->conn, x->incarnation);
}

void capabilities_check(struct world *w)
{
    for (uint32_t k = 1; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (!m->up || m->role == PARAMO_ROLE_SCHEDULER)
            continue;
        for (unsigned i = 0; i < m->made->own->shards_count; i++)
            shard_check(w, m, m->made->own->shards[i].shard);
        for (const paramo_worker *worker = m->made->workers; worker; worker = worker->next)
            for (size_t i = 0; worker->client && i < links_count(worker->client); i++) {
                const struct link *l = links_at(worker->client, i);
                end_check(w, m, l->state == LINK_UP ? l->conn : NULL, l->incarnation);
            }
    }
}
