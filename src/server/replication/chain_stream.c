#include "server/replication/chain_stream.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "server/migration/source.h"
#include "server/replication/entry.h"
#include "server/replication/gate.h"
#include "server/replication/releasing.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "wire/capability.h"

/* ---- entries ---- */

static void stream_send(struct chain_stream *st)
{
    struct shard *s = st->shard;
    chain_stream_check(st);
    if (st->lacked &&
        s->view->number >= st->lacked) { /* once: entries that are sent from now on have that view */
        st->mended = st->lacked;
        st->lacked = 0;
        st->unsent = st->entries.head;
    }
    while (st->conn && !st->blocked && st->unsent) {
        struct chain_entry *e = container_of(st->unsent, struct chain_entry, node);
        struct wire_head head;
        if (e->acked || releasing_covers(st, e)) {
            st->unsent = st->unsent->next;
            continue;
        }
        if (e->out) { /* a copy is still leaving */
            e->next = true;
            return;
        }
        assert(e->to == st && e->m.seq > st->acked && e->m.seq <= st->seq);
        e->m.view = s->view->number;
        memcpy(e->frame.seg, e->seg, sizeof e->seg);
        if (e->migration.what) {
            e->migration.seq = e->m.seq;
            e->migration.view = e->m.view;
            migration_head(&e->migration, &head);
            e->frame.nseg = e->migration.bytes ? 1 : 0;
        } else {
            chain_head(&e->m, &head);
            e->frame.seg[WIRE_SEG_BODY] =
                (struct van_seg){.data = e->body, .len = chain_body_encode(&e->m, e->body)};
            e->frame.nseg = VAN_SEGS;
        }
        wire_head_encode(&head, e->frame.head);
        paramo_err err = van_send(st->conn, &e->frame);
        st->blocked = err == PARAMO_E_AGAIN;
        if (err)
            return; /* or the connection has ended, and closed() comes */
        e->out = true;
        st->unsent = st->unsent->next;
    }
}

void chain_send_all(struct chain *c)
{
    for (struct chain_stream *st = c->streams; st; st = st->next)
        stream_send(st);
}

void chain_append(struct chain_stream *st, struct chain_entry *e)
{
    assert(!e->acked && !e->out && !e->over);
    chain_stream_check(st);
    e->to = st;
    if (queue_empty(&st->entries))
        st->progressed_at = lane_now(st->shard->lane);
    e->m.seq = ++st->seq;
    queue_push(&st->entries, &e->node);
    if (!st->unsent)
        st->unsent = &e->node;
    st->count++;
    st->bytes += e->bytes;
    assert(st->count <= st->seq - st->acked);
    if (!st->migration_source)
        st->shard->counters.chain_bytes += chain_entry_travels(e);
}

static void stream_beat(struct chain_stream *st)
{
    const struct shard *s = st->shard;
    struct wire_head head;
    chain_stream_check(st);
    chain_beat_head(lane_now(s->lane), s->view->number, &head);
    if (st->conn && control_message_send(st->conn, &head, NULL, 0))
        log_debug("the chain to node %u: CHAIN_BEAT was not sent: %s", st->to.node, err_text());
}

/* All that comes after `received`. */
static void stream_resend(struct chain_stream *st, uint64_t received)
{
    chain_stream_check(st);
    bool progress = received > st->resent_after;
    assert(received <= st->seq);
    st->again = false;
    st->resent_at = lane_now(st->shard->lane);
    st->resent_after = received;
    st->unsent = st->entries.head;
    while (st->unsent && container_of(st->unsent, struct chain_entry, node)->m.seq <= received)
        st->unsent = st->unsent->next;
    stream_send(st);
    if (progress) /* where there is none, as when the next member lacks our view, the tick's is soon enough */
        stream_beat(st);
}

/* At most CHAIN_GRANTS times for each beat, and for each view that the next member gets: the answer to a later beat
 * tells whether it has come. When a cut ends, many ACKs come at once, and each may ask for what has just been sent
 * again. */
static void stream_asked(struct chain_stream *st, const struct chain_ack *ack)
{
    chain_stream_check(st);
    bool later = ack->clock >= st->resent_at || ack->view > st->asked_view;
    if (ack->again) {
        st->again = true;
        st->asked_to = st->seq;
    }
    if (later)
        st->grants = 0;
    if (!st->again || (!later && (!ack->again || st->grants >= CHAIN_GRANTS)))
        return;
    st->asked_view = ack->view;
    assert(st->asked_to <= st->seq);
    st->grants++;
    if (ack->again || ack->received < st->asked_to)
        stream_resend(st, ack->received);
    else
        st->again = false; /* it has come since */
}

static void stream_released(struct chain_stream *st)
{
    struct shard *s = st->shard;
    stream_send(st);
    migration_source_check_pause(s->chain);
    loading_check(s);
    saving_check(s);
    chain_reopen(s);
}

static void release_fire(struct lane_timer *timer)
{
    struct chain_stream *st = container_of(timer, struct chain_stream, release.timer);
    releasing_turn(st);
    stream_released(st);
}

void chain_stream_ack(struct chain_stream *st, const struct chain_ack *ack)
{
    chain_stream_check(st);
    if (ack->clock > st->heard_at)
        st->heard_at = ack->clock;
    if (ack->acked > st->acked)
        st->progressed_at = lane_now(st->shard->lane);
    releasing_ack(st, ack);
    stream_asked(st, ack);
    stream_released(st);
}

/* ---- the connection ---- */

static void stream_down(struct chain_stream *st)
{
    chain_stream_check(st);
    if (st->conn)
        van_close(st->conn, false);
    st->conn = NULL;
    st->blocked = false;
    st->unsent = st->entries.head;
}

static paramo_err stream_frame(void *user, struct van_conn *conn, const uint8_t bytes[VAN_HEAD],
                               const struct van_seg *seg, unsigned nseg)
{
    struct chain_stream *st = user;
    struct wire_head head;
    struct chain_ack ack;
    chain_stream_check(st);
    assert(st->conn == conn);
    paramo_err err = wire_open(bytes, seg, nseg, &head);
    if (err || head.kind == WIRE_WELCOME)
        return err;
    if (head.kind ==
        WIRE_CHAIN_REFUSED) { /* not an ACK: the lease ends, and requests wait until we have that view, too */
        if (head.plain.view > st->mended && head.plain.view > st->lacked)
            st->lacked = head.plain.view;
        stream_send(st);
        return PARAMO_OK;
    }
    if (head.kind != WIRE_CHAIN_ACK)
        return err_set(PARAMO_E_PROTOCOL, "unexpected message %s from the next member",
                       wire_kind_name(head.kind));
    err = chain_ack_decode(&head, seg, nseg, &ack);
    if (!err && (ack.received > st->seq || ack.clock > lane_now(st->shard->lane)))
        err = err_set(PARAMO_E_PROTOCOL, "CHAIN_ACK names a change that was not sent");
    if (!err)
        chain_stream_ack(st, &ack);
    return err;
}

static void stream_writable(void *user, struct van_conn *conn)
{
    struct chain_stream *st = user;
    assert(st->conn == conn);
    chain_stream_check(st);
    st->blocked = false;
    stream_send(st);
}

static void stream_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct chain_stream *st = user;
    char self[VIEW_LABEL_MAX], to[VIEW_LABEL_MAX];
    assert(st->conn == conn);
    if (why == PARAMO_E_PROTOCOL || why == PARAMO_E_TOO_LARGE)
        log_warn("%s: the chain to %s: %s", view_id_label(st->shard->config.node, self),
                 view_id_label(st->to.node, to), text);
    stream_down(st);
}

static const struct van_user stream_user = {
    .frame = stream_frame, .writable = stream_writable, .closed = stream_closed};

static void stream_up(void *arg, struct van_conn *conn, const struct welcome *welcome)
{
    struct chain_stream *st = arg;
    assert(!st->conn && !st->blocked);
    chain_stream_check(st);
    st->connector = NULL;
    if (welcome->incarnation != st->incarnation) { /* another process has its address */
        van_close(conn, false);
        return;
    }
    st->conn = conn;
    st->met = true;
    st->takes_columns = capability_of(conn, CAPABILITY_COLUMNS);
    st->combines = capability_of(conn, CAPABILITY_AGGREGATE);
    van_set_user(conn, &stream_user, st);
    van_conn_stays(conn);
    stream_beat(st);
    stream_resend(st, st->acked);
}

static void stream_failed(void *arg, paramo_err code, const char *text)
{
    struct chain_stream *st = arg;
    assert(st->connector);
    assert(!st->conn);
    (void)text; /* the scheduler decides whether the node is dead */
    st->connector = NULL;
    if (code == PARAMO_E_REFUSED) /* the node lives and its view is late: the next tick connects again */
        st->connect_at = 0;
}

static void stream_resume(struct lane_timer *timer)
{
    stream_send(container_of(timer, struct chain_stream, resume));
}

static void stream_connect(struct chain_stream *st, uint64_t now)
{
    struct shard *s = st->shard;
    char address[ADDRESS_MAX];
    const struct view_node *node = view_node(s->view, st->to.node);
    if (st->conn || st->connector || now < st->connect_at || !node || !s->config.van)
        return;
    chain_stream_check(st);
    st->connect_at = now + CHAIN_RETRY_MS * ENV_MS;
    address_join(node->host, node->port, address);
    struct connector_config config = {
        .van = s->config.van,
        .lane = s->lane,
        .address = address,
        .hello = {.purpose = st->migration_source ? HELLO_MIGRATION : HELLO_CHAIN,
                  .node = s->config.node,
                  .incarnation = s->config.incarnation,
                  .job = s->view->job,
                  .app = st->generation,
                  .customer = s->config.index,
                  .shard = st->to.shard},
        .frame_bytes = s->config.frame_bytes,
        .deadline = now + CHAIN_CONNECT_MS * ENV_MS,
        .up = stream_up,
        .failed = stream_failed,
        .arg = st,
    };
    if (s->config.token)
        memcpy(config.hello.token, s->config.token, strnlen(s->config.token, HELLO_TOKEN_MAX - 1));
    if (connector_start(&config, &st->connector))
        st->connector = NULL; /* the tick tries again */
}

void chain_connect(struct chain *c)
{
    for (struct chain_stream *st = c->streams; st; st = st->next)
        stream_connect(st, lane_now(c->shard->lane));
}

void chain_stream_tick(struct chain_stream *st, uint64_t now)
{
    assert(st->shard->chain->streams);
    chain_stream_check(st);
    stream_connect(st, now);
    stream_beat(st);
    uint64_t since = st->progressed_at > st->sent_at ? st->progressed_at : st->sent_at;
    if (st->count && now > since + CHAIN_RETRY_MS * ENV_MS) {
        st->sent_at = now;
        st->unsent = st->entries.head;
    }
    stream_send(st);
}

struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to)
{
    struct chain_stream *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    assert(node->id == to.node);
    st->shard = c->shard;
    st->to = to;
    st->incarnation = node->incarnation;
    st->generation = ++c->generations;
    st->resume.fire = stream_resume;
    st->release.timer.fire = release_fire;
    assert(!c->streams || c->streams->generation < st->generation); /* the newest is first */
    st->next = c->streams;
    c->streams = st;
    return st;
}

void chain_stream_close(struct chain *c, struct chain_stream *st, struct queue *entries)
{
    struct chain_stream **at = &c->streams;
    while (*at != st) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = st->next;
    if (st->connector)
        connector_cancel(st->connector);
    stream_down(st);
    assert(!st->conn && st->acked <= st->seq);
    lane_timer_cancel(c->shard->lane, &st->resume);
    lane_timer_cancel(c->shard->lane, &st->release.timer);
    free(st->release.beyond);
    queue_append(entries, &st->entries);
    free(st);
}
