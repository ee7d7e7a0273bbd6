#include "shard_views.h"

#include <stdlib.h>
#include <string.h>

#include "ring/chains.h"
#include "table/table_options.h"

static void table_view(struct view_table *t, unsigned id)
{
    static const paramo_table_kind kinds[] = {0,
                                              PARAMO_TABLE_DENSE,
                                              PARAMO_TABLE_SPARSE,
                                              PARAMO_TABLE_SPARSE,
                                              PARAMO_TABLE_VAR,
                                              PARAMO_TABLE_SPARSE};
    t->id = id;
    t->since = 1;
    t->name[0] = (char)('a' + id);
    table_options_default(&t->options);
    t->options.kind = kinds[id];
    t->options.rows = id == DENSE ? RING_PARTITIONS : 0;
    t->options.placement = id == DENSE ? PARAMO_PLACE_DENSE : PARAMO_PLACE_UNIFORM;
    t->options.aggregate = id == AGGREGATED ? PARAMO_AGGREGATE_SUM : PARAMO_AGGREGATE_NONE;
    t->options.replicas = id == ALONE ? 0 : PARAMO_REPLICAS_OF_JOB;
}

bool shard_views_alive(const struct shard_views *x, unsigned bit)
{
    return !(x->dead >> bit & 1);
}

void shard_views_next(struct shard_views *x, bool term)
{
    struct view *v = calloc(1, sizeof *v);
    CHECK(v);
    atomic_init(&v->refs, 1);
    x->number = term ? ((x->number >> 32) + 1) << 32 | 1 : x->number + 1;
    uint8_t touched[SERVERS];
    ring_touched(&x->old, &x->chains, touched, SERVERS);
    if (touched[SELF] & RING_TOUCHED_PARTITIONS)
        x->changed_partitions = x->number;
    if (touched[SELF] & RING_TOUCHED_CHAIN)
        x->changed_chain = x->number;
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t before = x->old.level[0].owner[a];
        if (before != x->chains.level[0].owner[a] && before < SERVERS && !shard_views_alive(x, before))
            x->owner_gone[a] = x->number;
    }
    x->old = x->chains;
    v->job = 7;
    v->number = x->number;
    v->complete = true;
    v->num_servers = SERVERS;
    v->num_workers = WORKERS;
    v->nodes_count = SERVERS + WORKERS;
    v->nodes = calloc(v->nodes_count, sizeof *v->nodes);
    v->shards_count = SERVERS;
    v->shards = calloc(SERVERS, sizeof *v->shards);
    v->tables_count = TABLES_ALL;
    v->tables = calloc(TABLES_ALL, sizeof *v->tables);
    CHECK(v->nodes && v->shards && v->tables);
    unsigned at = 0;
    for (uint32_t id = PARAMO_ID_SERVER(0); at < v->nodes_count;
         id++) { /* servers 8, 10 ..., workers 9, 11 */
        bool server = id % 2 == 0;
        unsigned rank = (id - PARAMO_ID_SERVER(0)) / 2;
        if (!server && rank >= WORKERS)
            continue;
        struct view_node *n = &v->nodes[at++];
        n->id = id;
        n->role = server ? PARAMO_ROLE_SERVER : PARAMO_ROLE_WORKER;
        n->incarnation = INCARNATION + id;
        n->alive = shard_views_alive(x, server ? rank : SERVERS + rank);
        n->port = (uint16_t)(server ? 100 + rank : 0);
        n->shards = server;
        n->weight = server;
        n->host[0] = n->domain[0] = (char)('a' + rank);
    }
    for (unsigned i = 0; i < SERVERS; i++)
        v->shards[i] = (struct view_shard){.node = PARAMO_ID_SERVER(i),
                                           .partitions_changed = x->changed_partitions,
                                           .chain_changed = x->changed_chain,
                                           .last_migration = i == SELF ? x->moved : 0};
    for (unsigned t = 0; t < TABLES_ALL; t++)
        table_view(&v->tables[t], t + 1);
    v->chains = x->chains;
    v->chains.apart = v->chains.present = 0;
    memcpy(v->owner_gone, x->owner_gone, sizeof v->owner_gone);
    view_unref(x->view);
    x->view = v;
    shard_set_view(x->shard, v);
}

void shard_views_draw(struct shard_views *x, unsigned block, unsigned draw)
{
    unsigned chain[SERVERS], n = 0;
    for (unsigned i = 0; i < SERVERS; i++)
        if (shard_views_alive(x, (i + draw) % SERVERS))
            chain[n++] = (i + draw) % SERVERS;
    if (draw & 4 && n > 1) {
        unsigned first = chain[0];
        chain[0] = chain[1], chain[1] = first;
    }
    for (unsigned a = block * BLOCK_PARTITIONS; a < (block + 1) * BLOCK_PARTITIONS && n; a++)
        for (unsigned level = 0; level < RING_LEVELS; level++)
            x->chains.level[level].owner[a] =
                level <= REPLICAS && level < n ? (uint16_t)chain[level] : (uint16_t)RING_NONE;
}

void shard_views_deaths(struct shard_views *x, struct source *s)
{
    bool gone[SERVERS];
    unsigned which = draw_u8(s);
    x->dead |= 1U << which % (SERVERS + WORKERS);
    if (which & 64)
        x->dead = 0;
    if (!(which & 32))
        x->dead &= ~(1U << SELF); /* seldom ourselves */
    for (unsigned i = 0; i < SERVERS; i++)
        gone[i] = !shard_views_alive(x, i);
    struct ring_ends ends = {{0}};
    ring_ends_add(&ends, 0, REPLICAS);
    (void)ring_promote(&x->chains, &ends, gone, SERVERS, true, NULL);
}

void shard_views_commit(struct shard_views *x, bool front)
{
    unsigned to = (x->migration.to.node - PARAMO_ID_SERVER(0)) / 2;
    if (!x->migration.id || to >= SERVERS || !shard_views_alive(x, to))
        return;
    for (unsigned a = x->migration.first; a < (unsigned)x->migration.first + x->migration.partitions; a++) {
        uint16_t chain[RING_LEVELS], n = 0;
        if (front)
            chain[n++] = (uint16_t)to;
        for (unsigned level = 0; level <= REPLICAS; level++) {
            uint16_t member = x->chains.level[level].owner[a];
            if (member != RING_NONE && member != to && n < RING_LEVELS)
                chain[n++] = member;
        }
        if (!front && n < RING_LEVELS)
            chain[n++] = (uint16_t)to;
        for (unsigned level = 0; level <= REPLICAS; level++)
            x->chains.level[level].owner[a] = level < n ? chain[level] : (uint16_t)RING_NONE;
    }
    if (to == SELF)
        x->moved = x->migration.id;
}
