#include "cluster/scheduler/sched_dispatch.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_admission.h"
#include "cluster/scheduler/sched_announce.h"
#include "cluster/scheduler/sched_barrier.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_drain.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_status.h"
#include "cluster/scheduler/sched_tables.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"
#include "wire/heartbeat.h"

/* A busy lane that does nothing for long is reported once: its node is alive, and something in it is not. */
static void note_progress(struct sched_node *node, const struct heartbeat *beat)
{
    struct scheduler *s = node->sched;
    uint64_t now = lane_now(s->config.lane);
    assert(node->lanes || !node->lanes_count);
    if (beat->lanes != node->lanes_count) {
        struct lane_progress *lanes = realloc(node->lanes, (beat->lanes + 1) * sizeof *lanes);
        if (!lanes)
            return;
        node->lanes = lanes;
        node->lanes_count = beat->lanes;
        for (uint32_t i = 0; i < beat->lanes; i++)
            lanes[i] = (struct lane_progress){.steps = beat->lane[i].steps, .progressed_at = now};
    }
    assert(node->lanes_count == beat->lanes);
    for (uint32_t i = 0; i < beat->lanes; i++) {
        struct lane_progress *lane = &node->lanes[i];
        if (!beat->lane[i].busy || beat->lane[i].steps != lane->steps) {
            *lane = (struct lane_progress){.steps = beat->lane[i].steps, .progressed_at = now};
        } else if (!lane->reported && now - lane->progressed_at > s->config.heartbeat_timeout_ms * ENV_MS) {
            char label[SCHED_LABEL];
            lane->reported = true;
            log_warn("scheduler: %s is alive, but its lane %" PRIu32
                     " has work and has done none for %" PRIu32 " ms",
                     sched_roster_label(node, label), i, s->config.heartbeat_timeout_ms);
        }
    }
}

/* Answers, and repeats what the node should have heard by now: a van loses nothing, but a full queue may
 * have. */
static paramo_err got_heartbeat(struct sched_peer *peer, const struct wire_heartbeat *head,
                                struct reader *body)
{
    struct scheduler *s = peer->sched;
    struct sched_node *node = peer->node;
    struct heartbeat beat;
    paramo_err err = heartbeat_decode(body, &beat);
    if (err || !node)
        return err;
    assert(node->peer == peer && node->sched == s);
    err = sched_calls_floor(node, head->floor);
    if (err)
        return err;
    note_progress(node, &beat);
    struct wire_head answer = {.heartbeat = {.kind = WIRE_HEARTBEAT, .view = sched_view_announced(s)}};
    if (sched_peer_send(peer, &answer, NULL, 0))
        return PARAMO_OK; /* the queue is full: its messages tell the node that the scheduler is alive */
    uint64_t now = lane_now(s->config.lane);
    if (s->state == SCHED_RUNNING && node->info.id && head->view < sched_view_announced(s) &&
        now - node->view_sent_at >= s->config.heartbeat_ms * ENV_MS)
        sched_announce_to(node);
    sched_orders_send(node, s->config.heartbeat_ms * ENV_MS);
    if (node->state == SNODE_JOINED)
        sched_end_repeat(node);
    return PARAMO_OK;
}

static void shutdown_call(struct sched_call *call, struct reader *body)
{
    char text[CALL_TEXT_MAX], label[SCHED_LABEL], whole[CALL_TEXT_MAX];
    paramo_err err = call_text_decode(body, text);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    snprintf(whole, sizeof whole, "%s ended the job%s%.*s", sched_roster_label(call->node, label),
             text[0] ? ": " : "", 1024, text);
    sched_end_asked(call, whole);
}

static void leave_call(struct sched_call *call, struct reader *body)
{
    paramo_err err = call_body_end(body, "LEAVE");
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    assert(sched_roster_is_here(call->node));
    sched_call_answer(call, NULL);
    sched_departure_left(call->node);
}

static void call_handle(struct sched_call *call, struct reader *body)
{
    static void (*const handlers[])(struct sched_call * call, struct reader * body) = {
        [CALL_BARRIER] = sched_barrier_enter,
        [CALL_TABLE_OPEN] = sched_tables_open_call,
        [CALL_LEAVE] = leave_call,
        [CALL_SHUTDOWN] = shutdown_call,
        [CALL_POOL_OPEN] = sched_pool_open,
        [CALL_POOL_NEXT] = sched_pool_next,
        [CALL_POOL_DONE] = sched_pool_done,
        [CALL_POOL_END] = sched_pool_end,
        [CALL_KV_PUT] = sched_kv_put,
        [CALL_KV_GET] = sched_kv_get,
        [CALL_KV_ADD] = sched_kv_add,
        [CALL_KV_DELETE] = sched_kv_delete,
        [CALL_ORDER_DONE] = sched_order_done_call,
        [CALL_CKPT_SAVE] = sched_ckpt_call,
        [CALL_CKPT_LOAD] = sched_ckpt_call,
        [CALL_DRAIN] = sched_drain_call,
        [CALL_CLOCK_JOIN] = sched_clock_join,
        [CALL_CLOCK_TELL] = sched_clock_tell,
        [CALL_CLOCK_WAIT] = sched_clock_wait,
        [CALL_CLOCK_LEAVE] = sched_clock_leave,
    };
    const struct scheduler *s = call->node->sched;
    assert(call->node->info.id && !call->answered && !call->queue);
    assert(call->node->calls.kept[call->number % CALL_PLACES] == call);
    if (call->kind >= sizeof handlers / sizeof *handlers || !handlers[call->kind])
        sched_call_fail(
            call, err_set(PARAMO_E_UNSUPPORTED, "the scheduler does not know call %" PRIu32, call->kind));
    else if (call->node->state == SNODE_LEFT)
        sched_call_fail(call, err_set(PARAMO_E_CLOSED, "this node has left the job"));
    else if (s->state != SCHED_RUNNING && call->kind != CALL_LEAVE)
        sched_call_fail(call, err_set(PARAMO_E_SHUTDOWN, "the job is over: %s", sched_end_text(s)));
    else
        handlers[call->kind](call, body);
}

/* Does an admin client wait for an answer? */
static bool asks(const struct sched_peer *peer)
{
    return peer->status_waits || peer->ckpt_call || peer->drain_save;
}

static paramo_err peer_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                             const struct van_seg *seg, unsigned nseg)
{
    struct sched_peer *peer = user;
    struct wire_head head;
    struct reader body;
    (void)conn;
    assert(peer->conn == conn && (!peer->node || peer->node->peer == peer));
    assert(!peer->node || !asks(peer)); /* an admin client is no node */
    paramo_err err = control_message_open(bytes, seg, nseg, &head, &body);
    if (err)
        return err;
    if (peer->node)
        peer->node->heard_at = lane_now(peer->sched->config.lane);
    if (head.kind == WIRE_HEARTBEAT)
        return got_heartbeat(peer, &head.heartbeat, &body);
    if (head.kind == WIRE_HELLO)
        return PARAMO_OK; /* a second copy of the first */
    if (head.kind != WIRE_CALL)
        return err_set(PARAMO_E_PROTOCOL, "unexpected message %s to a scheduler", wire_kind_name(head.kind));
    if (head.call.what == CALL_REGISTER && asks(peer))
        return err_set(PARAMO_E_PROTOCOL, "REGISTER came from an admin client that waits for an answer");
    if (head.call.what == CALL_REGISTER) {
        sched_admission_register(peer->sched, peer, head.call.view, &body);
        return PARAMO_OK;
    }
    if (head.call.what == CALL_ADMIN_VIEW)
        return sched_announce_admin_query(peer, &head.call, &body);
    if (!peer->node && head.call.what == CALL_STATUS)
        return sched_status_admin_query(peer, &head.call, &body);
    if (!peer->node && (head.call.what == CALL_CKPT_SAVE || head.call.what == CALL_CKPT_LOAD))
        return sched_ckpt_admin_query(peer, &head.call, &body);
    if (!peer->node && head.call.what == CALL_DRAIN)
        return sched_drain_admin_query(peer, &head.call, &body);
    if (!peer->node)
        return err_set(PARAMO_E_PROTOCOL, "%s came before REGISTER", call_kind_name(head.call.what));
    return sched_calls_received(peer->node, &head.call, &body, call_handle);
}

static void peer_writable(void *user, struct van_conn *conn)
{
    struct sched_peer *peer = user;
    assert(peer->conn == conn && (!peer->node || peer->node->peer == peer));
    (void)conn;
    if (peer->node && peer->node->view_due)
        sched_announce_to(peer->node);
}

static void peer_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct sched_peer *peer = user;
    struct sched_node *node = peer->node;
    assert(peer->conn == conn && (!node || node->peer == peer));
    log_info("scheduler: the connection of %s was lost: %s (%s)", conn->peer, text, err_name(why));
    sched_peer_close(peer, false);
    if (node)
        sched_departure_connection_lost(node);
}

const struct van_user sched_dispatch_user = {
    .frame = peer_frame, .writable = peer_writable, .closed = peer_closed};
