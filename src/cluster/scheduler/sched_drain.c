#include "cluster/scheduler/sched_drain.h"

#include <assert.h>
#include <inttypes.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_status.h"
#include "cluster/scheduler/sched_view.h"

static bool may_go(const struct scheduler *s, const struct sched_node *node)
{
    assert(node->info.role == PARAMO_ROLE_SERVER && node->info.id);
    for (uint32_t i = 0; i < sched_ring_shards_count(s); i++)
        if (sched_ring_shard(s, i)->node == node->info.id && sched_migrations_need(s, (uint16_t)i))
            return false;
    return true;
}

/* Tells servers without weight that hold nothing that they may leave, with the message of a job's end. */
static bool release_drained(struct scheduler *s)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    bool all_told = true;
    for (uint32_t rank = 0; rank < servers->count && s->state == SCHED_RUNNING; rank++) {
        struct sched_node *node = servers->node[rank];
        char label[SCHED_LABEL];
        if (node->state != SNODE_JOINED || node->info.weight || !may_go(s, node))
            continue;
        if (!sched_status_goodbye(node) || !sched_end_send(node, PARAMO_OK, "")) {
            all_told = false;
            continue;
        }
        log_info("scheduler: %s is drained", sched_roster_label(node, label));
        sched_departure_left(node);
    }
    return all_told;
}

static paramo_err drain(struct scheduler *s, struct sched_node *node, uint32_t id)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    char label[SCHED_LABEL];
    bool others = false;
    if (s->state != SCHED_RUNNING)
        return err_set(PARAMO_E_AGAIN, "the job is not complete, or is over");
    if (!node || node->info.role != PARAMO_ROLE_SERVER || !sched_roster_is_here(node))
        return err_set(PARAMO_E_NOT_FOUND, "there is no server of node id %" PRIu32 " to drain", id);
    for (uint32_t rank = 0; rank < servers->count; rank++)
        others |= servers->node[rank] != node && sched_roster_is_here(servers->node[rank]) &&
                  servers->node[rank]->info.weight;
    if (!others)
        return err_set(PARAMO_E_REFUSED, "no other server can take the partitions of %s; start one first",
                       sched_roster_label(node, label));
    assert(servers->node[node->rank] == node && !node->info.left);
    log_info("scheduler: %s will be drained", sched_roster_label(node, label));
    node->info.weight = 0;
    assert(node->info.id == PARAMO_ID_SERVER(node->rank));
    sched_view_change(s);
    sched_migrations_retarget(s);
    sched_migrations_check(s);
    return PARAMO_OK;
}

void sched_drain_call(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    uint32_t id = read_u32(body);
    paramo_err err = call_body_end(body, "DRAIN");
    if (!err)
        err = drain(s, id ? sched_roster_find(s, id) : call->node, id);
    if (err)
        sched_call_fail(call, err);
    else
        sched_call_answer(call, NULL);
}

/* On an error this thread's message says why. */
static void admin_query_answer(struct sched_peer *peer, uint64_t number, paramo_err status)
{
    struct writer w = {0};
    if (status)
        call_text_encode(err_text(), &w);
    sched_peer_answer(peer, CALL_DRAIN, number, status, &w);
}

paramo_err sched_drain_admin_query(struct sched_peer *peer, const struct wire_call *head, struct reader *body)
{
    struct scheduler *s = peer->sched;
    assert(!peer->node);
    uint32_t id = read_u32(body);
    paramo_err err = call_body_end(body, "DRAIN");
    if (err)
        return err;
    err = drain(s, s->state == SCHED_RUNNING ? sched_roster_find(s, id) : NULL, id);
    peer->drain_number = head->number;
    peer->drain_save = err ? 0 : sched_save_due(s);
    if (!peer->drain_save)
        admin_query_answer(peer, head->number, err);
    return PARAMO_OK;
}

void sched_drain_saved(struct scheduler *s, uint64_t save)
{
    for (struct sched_peer *peer = sched_peers_first(s); peer; peer = peer->next)
        if (peer->drain_save && peer->drain_save <= save) {
            peer->drain_save = 0;
            assert(!peer->node); /* an admin client */
            admin_query_answer(peer, peer->drain_number, PARAMO_OK);
        }
}

void sched_drain_init(struct scheduler *s)
{
    static const struct sched_migrations_ops ops = {.release_drained = release_drained};
    sched_migrations_set_ops(s, &ops);
}
