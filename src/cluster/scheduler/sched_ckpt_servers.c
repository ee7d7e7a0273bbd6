#include "cluster/scheduler/sched_ckpt_servers.h"

#include <assert.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt_end.h"
#include "cluster/scheduler/sched_ckpt_manifest.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "wire/order.h"

static uint64_t partitions_changed(const struct scheduler *s)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < sched_ring_shards_count(s); i++) {
        uint64_t at = sched_ring_shard(s, i)->partitions_changed;
        last = at > last ? at : last;
    }
    return last;
}

/* Encodes the order's fields. */
static void all_done(struct sched_ckpt *c)
{
    assert(c->what && !c->orders_out && !c->err && !c->finished);
    paramo_err err = partitions_changed(c->sched) != c->partitions_changed
                         ? err_set(PARAMO_E_AGAIN, "partitions changed owners during the checkpoint")
                     : c->load ? PARAMO_OK
                               : sched_ckpt_add_tables(c);
    if (err) {
        sched_ckpt_fail(c, err);
    } else if (!c->load) {
        sched_ckpt_commit(c);
    } else if (c->hold && c->what != ORDER_CKPT_GO) {
        sched_ckpt_order_all(c, c->what == ORDER_CKPT_HOLD ? ORDER_CKPT_LOAD : ORDER_CKPT_GO);
    }
}

static bool owns_something(const struct scheduler *s, const struct sched_node *node)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = sched_ring_chains(s)->level[0].owner[a];
        if (owner != RING_NONE && sched_ring_shard(s, owner)->node == node->info.id)
            return true;
    }
    return false;
}

/* If it had received partitions after the orders were sent, their owners would differ (all_done()). */
static bool left_with_nothing(const struct scheduler *s, const struct sched_node *node)
{
    return node->state == SNODE_LEFT && !owns_something(s, node);
}

void sched_ckpt_server_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct sched_ckpt *c = arg;
    char label[SCHED_LABEL];
    sched_ckpt_check(c);
    assert(c->orders_out > 0 && c->what);
    c->orders_out--;
    if (status == PARAMO_E_NODE_LOST && left_with_nothing(c->sched, node)) {
        status = PARAMO_OK; /* drained: it owned nothing */
    } else if (status) {
        status = err_prefix(status, "%s", sched_roster_label(node, label));
    } else if (!c->load && !c->err) {
        status = sched_ckpt_add_files(c, result);
    }
    if (status)
        sched_ckpt_fail(c, status);
    if (!c->orders_out && !c->err && !c->finished)
        all_done(c);
    sched_ckpt_end_perhaps(c);
}

static bool owns_lost(const struct scheduler *s, const struct sched_node *node)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (sched_lost_levels(s)[a] &&
            sched_ring_shard(s, sched_ring_chains(s)->level[0].owner[a])->node == node->info.id)
            return true;
    return false;
}

/* The server has left or died, and other servers own its partitions. */
static bool does_not_count(const struct scheduler *s, const struct sched_node *node)
{
    return (node->state == SNODE_DEAD || node->state == SNODE_LEFT) && !owns_something(s, node);
}

void sched_ckpt_order_all(struct sched_ckpt *c, uint32_t what)
{
    struct scheduler *s = c->sched;
    assert(!c->orders_out && !c->posted && what);
    sched_ckpt_check(c);
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    if (!c->what)
        c->partitions_changed = partitions_changed(s);
    c->what = what;
    for (uint32_t rank = 0; rank < servers->count && !c->err; rank++) {
        struct sched_node *node = servers->node[rank];
        struct writer w = {0};
        paramo_err err;
        if (c->lost ? !owns_lost(s, node) : does_not_count(s, node))
            continue;
        if (what == ORDER_CKPT_GO) {
            err = sched_ckpt_last_order(c, node);
        } else {
            ckpt_order_encode(&c->order, &w);
            err = sched_order_issue(node, what, &w, sched_ckpt_server_done, c);
            c->orders_out += !err;
        }
        if (err)
            sched_ckpt_fail(c, err);
    }
}
