#include "cluster/scheduler/sched_announce.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_recovery.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"

/* Merges the slots by id: the scheduler, then server and worker of each rank. */
static uint32_t nodes_fill(const struct scheduler *s, struct view_node *nodes)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS),
                           *workers = sched_roster_slots(s, SLOTS_WORKERS);
    uint32_t count = 0;
    nodes[count++] = *sched_roster_scheduler(s);
    for (uint32_t rank = 0; rank < servers->count || rank < workers->count; rank++) {
        if (rank < servers->count) {
            nodes[count++] = servers->node[rank]->info;
            assert(nodes[count - 1].id == PARAMO_ID_SERVER(rank));
        }
        if (rank < workers->count) {
            nodes[count++] = workers->node[rank]->info;
            assert(nodes[count - 1].id == PARAMO_ID_WORKER(rank));
        }
    }
    return count;
}

static struct control_message_body *view_build(struct scheduler *s)
{
    assert(s->state == SCHED_RUNNING || s->state == SCHED_ENDING); /* before, ranks have no nodes */
    struct view view = {.job = s->job,
                        .number = sched_view_number(s),
                        .num_servers = sched_roster_slots(s, SLOTS_SERVERS)->count,
                        .num_workers = sched_roster_slots(s, SLOTS_WORKERS)->count,
                        .complete = true,
                        .shards_count = sched_ring_shards_count(s),
                        .shards = (struct view_shard *)sched_ring_shard(s, 0), /* only read */
                        .tables_count = sched_view_tables_count(s),
                        .tables = (struct view_table *)sched_view_table(s, 0), /* the same */
                        .chains = *sched_ring_chains(s),
                        .lost_at = sched_lost_since(s)};
    memcpy(view.owner_gone, sched_ring_owner_gone(s), sizeof view.owner_gone);
    memcpy(view.lost, sched_lost_levels(s), sizeof view.lost);
    size_t bytes = (1 + (size_t)view.num_servers + view.num_workers) * sizeof *view.nodes;
    view.nodes = malloc(bytes);
    if (!view.nodes)
        return NULL;
    view.nodes_count = nodes_fill(s, view.nodes);
    assert(view.nodes_count == 1 + view.num_servers + view.num_workers);
    assert(view.job && view.number > sched_view_announced(s) && view.lost_at <= view.number);
    struct writer w = {0};
    view_encode(&view, &w);
    free(view.nodes);
    struct control_message_body *body = control_message_body_new(&w);
    if (body)
        sched_ring_told(s, 0, RING_PARTITIONS);
    return body;
}

void sched_announce_to(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    if (s->restoring && node->info.role == PARAMO_ROLE_WORKER)
        return; /* before that, the node has nothing to work on */
    if (!node->peer || !sched_view_body(s) || sched_view_announced(s) < node->since ||
        (sched_view_is_due(s) && !s->config.store))
        return; /* a change that is not announced yet reaches all nodes at once */
    assert(node->info.id);
    assert(node->peer->node == node);
    struct wire_head head = {.plain = {.kind = WIRE_VIEW, .view = sched_view_announced(s)}};
    paramo_err err = control_message_send_shared(node->peer->conn, &head, sched_view_body(s));
    node->view_due = err != PARAMO_OK; /* writable() or a heartbeat sends it */
    node->view_sent_at = lane_now(s->config.lane);
}

paramo_err sched_announce_admin_query(struct sched_peer *peer, const struct wire_call *head,
                                      const struct reader *body)
{
    struct scheduler *s = peer->sched;
    paramo_err err = call_body_end(body, "ADMIN_VIEW");
    if (err)
        return err;
    struct wire_head answer = {
        .reply = {.kind = WIRE_REPLY, .what = CALL_ADMIN_VIEW, .number = head->number}};
    if (sched_view_body(s)) {
        answer.reply.view = sched_view_announced(s);
        err = control_message_send_shared(peer->conn, &answer, sched_view_body(s));
    } else {
        struct writer w = {0};
        answer.reply.status = PARAMO_E_AGAIN;
        call_text_encode("the job is not complete yet: it has no ring", &w);
        err = control_message_send_written(peer->conn, &answer, &w);
    }
    if (err)
        sched_peer_unanswered(peer, CALL_ADMIN_VIEW);
    return PARAMO_OK;
}

static void announced(struct scheduler *s)
{
    assert(sched_view_body(s) && sched_view_announced(s) <= sched_view_number(s));
    assert(s->state != SCHED_GATHERING);
    sched_recovery_announced(s);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));) {
        sched_announce_to(node);
        sched_orders_send(node, s->config.heartbeat_ms * ENV_MS);
    }
    sched_migrations_announced(s);
}

paramo_err sched_announce_above(struct scheduler *s, uint64_t number)
{
    uint64_t term = number >> 32;
    if (number <= sched_view_number(s) || s->state != SCHED_RUNNING)
        return PARAMO_OK;
    if (!s->config.store || term > (uint64_t)s->term + SCHED_TERMS_AHEAD)
        return err_set(PARAMO_E_REFUSED,
                       "it claims to have seen view %" PRIu64 ".%" PRIu64
                       ", and this scheduler, of term %" PRIu32 ", is at %" PRIu64 ".%" PRIu64
                       ": that is no view of this job",
                       term, number & UINT32_MAX, s->term, sched_view_number(s) >> 32,
                       sched_view_number(s) & UINT32_MAX);
    log_warn("scheduler: a node has seen view %" PRIx64 ", which is newer than %" PRIx64, number,
             sched_view_number(s));
    bool rises = term > sched_view_number(s) >> 32;
    sched_view_raise(s, number);
    if (rises)
        sched_orders_cancel(s);
    sched_view_renumber(s);
    assert(sched_view_number(s) > number);
    assert(sched_view_is_due(s));
    sched_migrations_restart(s, term);
    return PARAMO_OK;
}

void sched_announce_init(struct scheduler *s)
{
    static const struct sched_view_ops ops = {.build = view_build, .announced = announced};
    sched_view_init(s, &ops);
}
