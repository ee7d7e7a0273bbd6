/*
 * The state of the job for an admin client: what this scheduler knows, and what each server reports of
 * itself. When a client asks, all servers are asked at once and have a second to answer; a server that does
 * not answer is shown with its last report. Clients that ask during that second get the same answer.
 *
 * A server's counts of its write pauses are kept when it leaves. A drained server is asked for them last.
 */
#include "cluster/scheduler/sched_status.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"
#include "wire/order.h"
#include "wire/status.h"

enum { REPORTS_WAIT_MS = 1000 };

/* A server's last report; the number of shards is that of its node. */
struct sched_reports {
    uint64_t at;
    struct shard_report shard[];
};

/* ---- what servers say ---------------------------------------------------------------------------------- */

static paramo_err keep(struct sched_node *node, struct reader *result)
{
    size_t bytes = sizeof(struct sched_reports) + node->info.shards * sizeof(struct shard_report);
    assert(node->info.role == PARAMO_ROLE_SERVER);
    assert(node->info.alive); /* the counts of one that is gone are kept already */
    struct sched_reports *reports = malloc(bytes);
    if (!reports)
        return err_memory(bytes);
    reports->at = lane_now(node->sched->config.lane);
    for (unsigned i = 0; i < node->info.shards; i++)
        shard_report_decode(result, &reports->shard[i]);
    paramo_err err = call_body_end(result, "a server's report");
    if (err) {
        free(reports);
        return err;
    }
    free(node->status.reports);
    node->status.reports = reports;
    return PARAMO_OK;
}

static void answer_all(struct scheduler *s);

static void reported(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct scheduler *s = arg;
    assert(node->status.asked && s->status->due > 0);
    assert(s->status->due <= sched_roster_slots(s, SLOTS_SERVERS)->count);
    char label[SCHED_LABEL];
    paramo_err err = status ? status : keep(node, result);
    if (err)
        log_debug("scheduler: no report of %s: %s", sched_roster_label(node, label), err_text());
    node->status.asked = false;
    s->status->due--;
    if (!s->status->due)
        answer_all(s);
}

static paramo_err report_request(struct sched_node *node,
                                 void (*done)(void *arg, struct sched_node *node, paramo_err status,
                                              struct reader *result))
{
    struct writer none = {0};
    return sched_order_issue(node, ORDER_REPORT, &none, done, node->sched);
}

static void goodbye_reported(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    assert(node->status.goodbye == GOODBYE_ASKED);
    char label[SCHED_LABEL];
    paramo_err err = status ? status : keep(node, result);
    if (err)
        log_debug("scheduler: no last report of %s: %s", sched_roster_label(node, label), err_text());
    node->status.goodbye = GOODBYE_REPORTED;
    sched_migrations_check(arg);
}

bool sched_status_goodbye(struct sched_node *node)
{
    assert(node->info.role == PARAMO_ROLE_SERVER && node->info.id);
    if (node->status.goodbye == GOODBYE_NONE) {
        paramo_err err = report_request(node, goodbye_reported);
        if (err == PARAMO_E_MEMORY)
            return false; /* the clock tries again */
        node->status.goodbye = err ? GOODBYE_REPORTED : GOODBYE_ASKED;
    }
    return node->status.goodbye == GOODBYE_REPORTED;
}

void sched_status_gone(struct sched_node *node)
{
    assert(!node->info.alive);
    if (!node->status.reports)
        return;
    assert(node->info.role == PARAMO_ROLE_SERVER);
    for (unsigned i = 0; i < node->info.shards; i++)
        spread_join(&node->sched->status->pauses_gone, &node->status.reports->shard[i].pauses);
    free(node->status.reports);
    node->status.reports = NULL;
}

/* ---- the answer ---------------------------------------------------------------------------------------- */

static uint32_t ms_since(const struct scheduler *s, uint64_t then)
{
    uint64_t now = lane_now(s->config.lane), ms = now > then ? (now - then) / ENV_MS : 0;
    return ms < STATUS_NEVER ? (uint32_t)ms : STATUS_NEVER - 1;
}

static struct status_node status_of(const struct scheduler *s, const struct sched_node *node)
{
    static const uint8_t states[] = {[SNODE_WAITING] = STATUS_ABSENT,
                                     [SNODE_JOINED] = STATUS_JOINED,
                                     [SNODE_ABSENT] = STATUS_ABSENT,
                                     [SNODE_DEAD] = STATUS_DEAD,
                                     [SNODE_LEFT] = STATUS_LEFT};
    struct sched_reports *reports = node->status.reports;
    return (struct status_node){.id = node->info.id,
                                .state = states[node->state],
                                .heard_ms = ms_since(s, node->heard_at),
                                .reported_ms = reports ? ms_since(s, reports->at) : STATUS_NEVER,
                                .shards = reports ? node->info.shards : 0,
                                .shard = reports ? reports->shard : NULL};
}

static void add_migrations(const struct scheduler *s, struct status *m)
{
    _Static_assert((int)STATUS_MIGRATIONS_MAX == (int)MIGRATIONS_MAX, "all of them");
    for (size_t i = 0; i < MIGRATIONS_MAX; i++) {
        const struct migration *migration = &sched_migrations_all(s)[i];
        if (migration->state != MIGRATION_NONE)
            m->migration[m->migrations_count++] =
                (struct status_migration){.state = (uint8_t)migration->state,
                                          .handover = migration->handover,
                                          .first = migration->first,
                                          .partitions = migration->partitions,
                                          .from = migration->from,
                                          .to = migration->to};
    }
}

static struct control_message_body *status_build(const struct scheduler *s)
{
    assert(sched_view_body(s)); /* before that no client waits */
    struct writer view = {0}, w = {0};
    size_t cursor = 0, most = 0;
    for (size_t i = 0; i < SLOTS; i++)
        most += sched_roster_slots(s, i)->count;
    struct status m = {.replicas = s->config.replicas,
                       .converged = sched_migrations_converged(s),
                       .pauses = s->status->pauses_gone,
                       .nodes = calloc(most + 1, sizeof *m.nodes)};
    if (!m.nodes)
        return NULL;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));) {
        for (unsigned i = 0; node->status.reports && i < node->info.shards; i++)
            spread_join(&m.pauses, &node->status.reports->shard[i].pauses);
        assert(m.nodes_count < most);
        node->status.place = m.nodes_count;
        m.nodes[m.nodes_count++] = status_of(s, node);
    }
    sched_clock_status(s, &m);
    add_migrations(s, &m);
    sched_ckpt_status(s, &m);
    control_message_body_write(sched_view_body(s), &view);
    m.view = view.data;
    m.view_len = view.len;
    if (!view.failed)
        status_encode(&m, &w);
    free(m.nodes);
    w.failed |= view.failed;
    writer_fini(&view);
    return control_message_body_new(&w);
}

static void answer(struct sched_peer *peer, struct control_message_body *body)
{
    assert(peer->status_waits && !peer->node);
    struct wire_head head = {
        .reply = {.kind = WIRE_REPLY, .what = CALL_STATUS, .number = peer->status_number}};
    struct writer w = {0};
    paramo_err err;
    peer->status_waits = false;
    if (body) {
        err = control_message_send_shared(peer->conn, &head, body);
    } else {
        head.reply.status = PARAMO_E_MEMORY;
        call_text_encode("the scheduler has no memory for an answer", &w);
        err = control_message_send_written(peer->conn, &head, &w);
    }
    if (err)
        sched_peer_unanswered(peer, CALL_STATUS);
}

static void answer_all(struct scheduler *s)
{
    struct control_message_body *body = NULL;
    bool built = false;
    lane_timer_cancel(s->config.lane, &s->status->timer);
    for (struct sched_peer *peer = sched_peers_first(s); peer; peer = peer->next) {
        if (!peer->status_waits)
            continue;
        if (!built)
            body = status_build(s);
        built = true;
        answer(peer, body);
    }
    control_message_body_unref(body);
}

static void time_is_up(struct lane_timer *timer)
{
    const struct sched_status *status = container_of(timer, struct sched_status, timer);
    assert(status->due && !timer->slot); /* else all servers have answered */
    answer_all(status->sched);
}

paramo_err sched_status_admin_query(struct sched_peer *peer, const struct wire_call *head,
                                    const struct reader *body)
{
    struct scheduler *s = peer->sched;
    struct lane *lane = s->config.lane;
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    paramo_err err = call_body_end(body, "STATUS");
    if (err)
        return err;
    if (!sched_view_body(s)) {
        struct writer w = {0};
        call_text_encode("the job is not complete yet: it has no ring", &w);
        sched_peer_answer(peer, CALL_STATUS, head->number, PARAMO_E_AGAIN, &w);
        return PARAMO_OK;
    }
    assert(!peer->node);
    assert(!s->status->timer.slot || s->status->due); /* else all have answered */
    peer->status_waits = true;
    peer->status_number = head->number;
    if (s->status->timer.slot)
        return PARAMO_OK; /* they have been asked already */
    for (uint32_t rank = 0; rank < servers->count && s->state == SCHED_RUNNING; rank++) {
        struct sched_node *node = servers->node[rank];
        if (!node->status.asked && !report_request(node, reported)) {
            node->status.asked = true;
            s->status->due++;
        }
    }
    assert(s->status->due <= servers->count);
    s->status->timer.fire = time_is_up;
    if (!s->status->due || lane_timer_arm(lane, &s->status->timer, lane_now(lane) + REPORTS_WAIT_MS * ENV_MS))
        answer_all(s);
    return PARAMO_OK;
}

void sched_status_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->status->timer);
}
