#include "server/replication/routing.h"

#include <assert.h>

#include "server/replication/chain_stream.h"
#include "server/replication/chain_wait.h"
#include "server/replication/entry.h"
#include "server/replication/gate.h"
#include "server/replication/splitting.h"
#include "server/shard/shard_tables.h"

/* What routing an entry costs, in units of RECORDS_TURN: ROUTE_COST, and 1 for each ROUTE_KEYS of its keys. */
enum { ROUTE_COST = 8, ROUTE_KEYS = 8 };

/* Changes that members before us sent are no longer acknowledged to them where no chain has us. */
static void leave(const struct chain *c, const struct shard_table *t, const struct chain_entry *e)
{
    if (e->wait && e->wait->source && chain_touches(t, &e->m, e->seg, c->routing.left))
        e->wait->elsewhere = true;
}

static void route_to(struct chain *c, struct chain_stream *st, struct chain_entry *e)
{
    const struct shard_config *own = &c->shard->config;
    chain_append(st, e);
    assert(e->to == st && e->m.seq == st->seq && !e->acked);
    if (e->m.what == CHAIN_TAKEOVER && e->m.origin.node == own->node && e->m.origin.shard == own->index)
        st->gate = st->seq;
    assert(st->gate <= st->seq);
}

unsigned chain_route(struct chain *c)
{
    assert(chain_routes(c));
    struct chain_entry *e = container_of(queue_pop(&c->routing.entries), struct chain_entry, node);
    const struct shard_table *t =
        chain_changes(&e->m) ? shard_table_find(c->shard, e->m.request.table) : NULL;
    unsigned cost = ROUTE_COST + e->m.request.count / ROUTE_KEYS;
    struct queue parts = {0};
    struct chain_stream *whole = NULL;
    assert(!e->migration.what); /* of a migration nothing is sent on */
    if (e->acked) {
        chain_entry_free(e);
        return 1;
    }
    leave(c, t, e);
    for (struct chain_stream *st = c->streams; st && !whole; st = st->next)
        if (!e->out && !st->migration_source &&
            chain_within(t, &e->m, e->seg, chain_stream_partitions(st, t)))
            whole = st;
    if (whole) {
        route_to(c, whole, e);
        return cost;
    }
    struct chain_wait *wait = e->wait;
    paramo_err err = chain_split(c, t, &e->m, e->seg, WIRE_SEG_BODY, NULL, false, wait, &parts);
    if (err)
        chain_fail(c, err);
    for (struct qnode *node; (node = queue_pop(&parts));) {
        struct chain_entry *part = container_of(node, struct chain_entry, node);
        route_to(c, part->to, part);
    }
    if (c->failed) { /* a change that followers lack must not be answered */
        queue_push(&c->stranded, &e->node);
        return cost;
    }
    chain_entry_free(e);
    chain_wait_done(wait);
    return cost;
}

paramo_err chain_route_behind(struct chain *c, const struct chain_message *m)
{
    struct chain_entry *e = chain_entry_make(NULL, m, NULL, 0, NULL);
    if (!e)
        return err_memory(sizeof *e);
    queue_push(&c->routing.entries, &e->node);
    return PARAMO_OK;
}
