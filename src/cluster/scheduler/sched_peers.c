#include "cluster/scheduler/sched_peers.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/session/acceptor.h"
#include "cluster/session/control_message.h"

enum {
    REGISTER_SECONDS = 10,
    PEERS_SPARE = 256 /* connections beyond two for each node */
};

/* The connections in a list. */
static void peers_check(const struct sched_peers *peers)
{
    assert(!peers->first == !peers->count);
    assert(!peers->first || !peers->first->prev);
}

void sched_peer_close(struct sched_peer *peer, bool flush)
{
    struct scheduler *s = peer->sched;
    peers_check(s->peers);
    lane_timer_cancel(s->config.lane, &peer->timer);
    assert(!peer->node || peer->node->peer == peer);
    if (peer->node)
        peer->node->peer = NULL;
    van_close(peer->conn, flush);
    assert(peer->prev ? peer->prev->next == peer : s->peers->first == peer);
    assert(!peer->next || peer->next->prev == peer);
    *(peer->prev ? &peer->prev->next : &s->peers->first) = peer->next;
    if (peer->next)
        peer->next->prev = peer->prev;
    s->peers->count--;
    peers_check(s->peers);
    free(peer);
}

paramo_err sched_peer_send(struct sched_peer *peer, const struct wire_head *head, const void *body,
                           size_t len)
{
    return control_message_send(peer->conn, head, body, len);
}

paramo_err sched_peer_reply(struct sched_peer *peer, uint32_t kind, uint64_t number, paramo_err status,
                            const struct writer *body)
{
    struct wire_head head = {
        .reply = {.kind = WIRE_REPLY, .status = (uint16_t)status, .what = kind, .number = number}};
    if (body->failed)
        return err_memory(body->len);
    return sched_peer_send(peer, &head, body->data, body->len);
}

void sched_peer_unanswered(struct sched_peer *peer, uint32_t kind)
{
    struct lane *lane = peer->sched->config.lane;
    log_warn("scheduler: an answer to %s was not sent: %s", call_kind_name(kind), err_text());
    if (lane_timer_arm(lane, &peer->timer, lane_now(lane)))
        log_debug("scheduler: %s", err_text()); /* cannot be: the timer of an admin client is armed */
}

void sched_peer_answer(struct sched_peer *peer, uint32_t kind, uint64_t number, paramo_err status,
                       struct writer *body)
{
    paramo_err err = sched_peer_reply(peer, kind, number, status, body);
    writer_fini(body);
    if (err)
        sched_peer_unanswered(peer, kind);
}

/* No node registered in time, or an answer could not be sent. A node on it loses its connection. */
static void peer_mute(struct lane_timer *timer)
{
    struct sched_peer *peer = container_of(timer, struct sched_peer, timer);
    peers_check(peer->sched->peers);
    assert(!timer->slot && (!peer->node || peer->node->peer == peer));
    if (peer->node)
        peer->sched->peers->user->closed(peer, peer->conn, PARAMO_E_MEMORY, "an answer could not be sent");
    else
        sched_peer_close(peer, false);
}

static void peer_comes(void *arg, struct van_conn *conn, const struct hello *hello)
{
    struct scheduler *s = arg;
    if (hello->purpose == HELLO_DATA) {
        s->config.accept_data(s->config.arg, conn, hello);
        return;
    }
    uint32_t most =
        2 * (sched_roster_slots(s, SLOTS_SERVERS)->count + sched_roster_slots(s, SLOTS_WORKERS)->count) +
        PEERS_SPARE;
    if (s->peers->count >= most) {
        acceptor_reject(conn, PARAMO_E_FULL, "the scheduler's limit of connections is reached");
        return;
    }
    peers_check(s->peers);
    struct sched_peer *peer = calloc(1, sizeof *peer);
    if (!peer) {
        log_warn("scheduler: no memory for the connection of %s, which is closed", conn->peer);
        van_close(conn, false); /* it connects again */
        return;
    }
    peer->sched = s;
    peer->conn = conn;
    peer->incarnation = hello->incarnation;
    peer->timer.fire = peer_mute;
    van_set_user(conn, s->peers->user, peer);
    peer->next = s->peers->first;
    if (s->peers->first)
        s->peers->first->prev = peer;
    s->peers->first = peer;
    s->peers->count++;
    peers_check(s->peers);
    struct lane *lane = s->config.lane;
    if (lane_timer_arm(lane, &peer->timer, lane_now(lane) + REGISTER_SECONDS * ENV_SEC) ||
        acceptor_welcome(conn, s->job, s->incarnation))
        sched_peer_close(peer, false);
}

paramo_err sched_peers_open(struct scheduler *s, const struct van_user *user)
{
    assert(!s->peers->acceptor && !s->peers->first && !s->peers->count);
    s->peers->user = user;
    const struct scheduler_config *c = &s->config;
    struct acceptor_config acceptor = {.van = c->van,
                                       .lane = c->lane,
                                       .address = c->address,
                                       .token = c->token,
                                       .purposes = ACCEPTOR_PURPOSE_CONTROL |
                                                   (c->accept_data ? (unsigned)ACCEPTOR_PURPOSE_DATA : 0),
                                       .frame_bytes = c->frame_bytes,
                                       .accept = peer_comes,
                                       .arg = s};
    paramo_err err = acceptor_open(&acceptor, &s->peers->acceptor);
    if (!err)
        acceptor_set_job(s->peers->acceptor, s->job);
    return err;
}

void sched_peers_refuse(struct scheduler *s)
{
    acceptor_close(s->peers->acceptor);
    s->peers->acceptor = NULL;
}

void sched_peers_fini(struct scheduler *s)
{
    peers_check(s->peers);
    while (s->peers->first)
        sched_peer_close(s->peers->first, true);
    assert(!s->peers->count);
}

struct sched_peer *sched_peers_first(const struct scheduler *s)
{
    return s->peers->first;
}

const char *sched_peers_address(const struct scheduler *s)
{
    return acceptor_address(s->peers->acceptor);
}
