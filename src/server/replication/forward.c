#include "server/replication/forward.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/session/address.h"
#include "cluster/session/connector.h"
#include "server/migration/source.h"
#include "server/replication/acks.h"
#include "server/shard/partial_apply.h"
#include "server/shard/reply.h"
#include "server/shard/shard_tables.h"
#include "server/shard/slice.h"
#include "server/snapshot/loading.h"
#include "server/snapshot/saving.h"
#include "wire/capability.h"

/* What routing an entry costs, in units of RECORDS_TURN: ROUTE_COST, and 1 for each ROUTE_KEYS of its keys. */
enum { ROUTE_COST = 8, ROUTE_KEYS = 8 };
/* What an entry that is acknowledged costs, with its answer; what it costs to free one, for each 16 KiB of it, too; and
 * to look at one. */
enum { RELEASE_COST = 8, RELEASE_FREE = 2, RELEASE_FREE_SHIFT = 14, RELEASE_LOOK = 1 };

/* ---- waits ---- */

static void wait_unlink(struct chain_wait *w)
{
    if (!w->sender)
        return;
    assert(w->prev ? w->prev->next == w : w->sender->pending == w);
    assert(!w->next || w->next->prev == w);
    if (w->prev)
        w->prev->next = w->next;
    else
        w->sender->pending = w->next;
    if (w->next)
        w->next->prev = w->prev;
    w->sender = NULL;
}

void chain_wait_done(struct chain_wait *w)
{
    if (!w)
        return;
    assert(w->entries > 0 && queue_empty(&w->made));
    assert(!w->source || !w->sender); /* it is an answer, or a place in a source */
    if (--w->entries)
        return;
    if (w->source) {
        acks_advance(w->source);
        return;
    }
    for (struct chain_wait *part = w->parts, *next; part; part = next) {
        next = part->next_part;
        chain_wait_done(part);
    }
    struct peer *peer = w->sender ? w->sender->peer : NULL;
    wait_unlink(w);
    if (peer && w->reply)
        reply_late(peer, w->reply, &w->head);
    else if (peer && w->head.kind != WIRE_PUSHPULL)
        reply_status(peer, &w->head, PARAMO_OK, NULL);
    /* A pushpull without an answer had no memory for its values. The client sends it again, and it is read. */
    else if (w->reply)
        reply_free(w->reply);
    free(w);
}

static struct chain_wait *pending(const struct sender *sender, uint64_t number)
{
    struct chain_wait *w = sender->pending;
    while (w && w->head.number != number)
        w = w->next;
    return w;
}

bool chain_pending(struct sender *sender, const struct wire_head *h)
{
    struct chain_wait *w = pending(sender, h->number);
    /* A slice of a newer view asks for other values than those that wait here. The client sends it again
     * later. */
    if (w && h->kind != WIRE_PROBE && (!w->reply || w->head.attempt == h->attempt))
        w->head = *h;
    assert(!w || (w->sender == sender && w->head.number == h->number && !w->source));
    return w;
}

void chain_sender_gone(struct sender *sender)
{
    while (sender->pending) {
        struct chain_wait *w = sender->pending;
        assert(w->sender == sender && !w->prev && !w->source);
        wait_unlink(w);
        if (w->reply)
            reply_free(w->reply);
        w->reply = NULL;
    }
}

/* ---- streams ---- */

/* Does an ACK cover it that is still being worked on? */
static bool releases(const struct chain_stream *st, const struct chain_entry *e)
{
    return (st->release.at || st->release.again) && chain_acks(&st->release.ack, e->m.seq);
}

/* Entries that are not acknowledged are counted, and what is marked in a stream has been in it. */
static void stream_check(const struct chain_stream *st)
{
    assert(st->acked <= st->seq && st->count <= st->seq - st->acked);
    assert(!queue_empty(&st->entries) || (!st->count && !st->bytes && !st->unsent));
    assert(st->gate <= st->seq && st->mark <= st->seq && st->saved <= st->seq);
    assert(!st->conn || !st->connector);
}

static void stream_send(struct chain_stream *st)
{
    struct shard *s = st->shard;
    stream_check(st);
    if (st->lacked &&
        s->view->number >= st->lacked) { /* once: entries that are sent from now on have that view */
        st->mended = st->lacked;
        st->lacked = 0;
        st->unsent = st->entries.head;
    }
    while (st->conn && !st->blocked && st->unsent) {
        struct chain_entry *e = container_of(st->unsent, struct chain_entry, node);
        struct wire_head head;
        if (e->acked || releases(st, e)) {
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
    stream_check(st);
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

static void entry_acked(struct chain_stream *st, struct chain_entry *e)
{
    struct chain_wait *wait = e->wait;
    assert(!e->acked && e->to == st && st->count > 0 && st->bytes >= e->bytes);
    assert(e->m.seq > st->acked && e->m.seq <= st->seq);
    e->acked = true;
    e->wait = NULL;
    st->count--;
    st->bytes -= e->bytes;
    if (e->migration.what == MIGRATION_STEP_ROWS)
        migration_source_rows_acked(st->migration_source, e->bytes);
    chain_wait_done(wait);
}

void chain_reopen(struct shard *s)
{
    if (s->chain->held && chain_open(s)) {
        s->chain->held = false;
        slice_resume_all(s);
    }
}

static void stream_beat(struct chain_stream *st)
{
    const struct shard *s = st->shard;
    struct wire_head head;
    chain_beat_head(lane_now(s->lane), s->view->number, &head);
    if (st->conn && control_message_send(st->conn, &head, NULL, 0))
        log_debug("the chain to node %u: CHAIN_BEAT was not sent: %s", st->to.node, err_text());
}

/* All that comes after `received`. */
static void stream_resend(struct chain_stream *st, uint64_t received)
{
    stream_check(st);
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

/* At most CHAIN_GRANTS times for each beat, and for each view that the next member gets: the answer to a later beat tells
 * whether it has come. When a cut ends, many ACKs come at once, and each may ask for what has just been sent again. */
static void stream_asked(struct chain_stream *st, const struct chain_ack *ack)
{
    stream_check(st);
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

static void first_free(struct chain_stream *st)
{
    struct qnode *node = queue_pop(&st->entries);
    struct chain_entry *e = container_of(node, struct chain_entry, node);
    assert(e->acked && st->acked < e->m.seq);
    st->unsent = st->unsent == node ? node->next : st->unsent;
    st->release.at = st->release.at == node ? node->next : st->release.at;
    st->acked = e->m.seq;
    chain_entry_free(e);
    assert(st->acked <= st->seq && st->count <= st->seq - st->acked);
    assert(!queue_empty(&st->entries) || (st->acked == st->seq && !st->count && !st->bytes && !st->unsent));
}

/* The last entry that the ACK can cover. */
static uint64_t ack_end(const struct chain_ack *ack)
{
    uint64_t end = ack->acked + 8 * ack->beyond_bytes;
    return end < ack->received ? end : ack->received;
}

/* An ACK may cover a full stream, 16,384 entries with as many answers, or more behind a routed one. So entries are
 * released in turns. What is left when the stream ends counts as not acknowledged. True: some are left. */
static bool release_turn(struct chain_stream *st, unsigned left)
{
    stream_check(st);
    while (left) {
        unsigned cost = RELEASE_LOOK;
        struct chain_entry *first =
            st->entries.head ? container_of(st->entries.head, struct chain_entry, node) : NULL;
        if (first && first->acked) {
            cost = RELEASE_FREE + (unsigned)(first->bytes >> RELEASE_FREE_SHIFT);
            first_free(st);
        } else if (st->release.at) {
            struct chain_entry *e = container_of(st->release.at, struct chain_entry, node);
            bool over = e->m.seq > ack_end(&st->release.ack);
            st->release.at = over ? NULL : st->release.at->next;
            if (!over && !e->acked && chain_acks(&st->release.ack, e->m.seq)) {
                cost = RELEASE_COST;
                entry_acked(st, e);
            }
        } else if (st->release.again) {
            st->release.again = false;
            st->release.at = st->entries.head;
        } else {
            return false;
        }
        st->shard->chain->release_spent += cost;
        left -= cost < left ? cost : left;
    }
    return true;
}

/* The bits of the ACK are in its frame. Without memory for them the next ACK brings them again. */
static void release_keep(struct chain_stream *st)
{
    struct chain_ack *ack = &st->release.ack;
    if (ack->beyond_bytes && !st->release.beyond)
        st->release.beyond = malloc(CHAIN_BEYOND_MAX);
    if (ack->beyond_bytes && st->release.beyond)
        memcpy(st->release.beyond, ack->beyond, ack->beyond_bytes);
    else
        ack->beyond_bytes = 0;
    ack->beyond = st->release.beyond;
}

/* In a simulation, other events come between two turns. */
static void release_go_on(struct chain_stream *st)
{
    struct shard *s = st->shard;
    uint64_t pause = s->config.turn_records ? ENV_MS : 0;
    if (release_turn(st, records_turn(s)) &&
        lane_timer_arm(s->lane, &st->release.timer, lane_now(s->lane) + pause))
        while (release_turn(st, UINT32_MAX))
            ;
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
    release_go_on(st);
    stream_released(st);
}

void chain_stream_ack(struct chain_stream *st, const struct chain_ack *ack)
{
    stream_check(st);
    if (ack->clock > st->heard_at)
        st->heard_at = ack->clock;
    if (ack->acked > st->acked)
        st->progressed_at = lane_now(st->shard->lane);
    st->release.ack = *ack;
    st->release.again = true;
    if (!st->release.timer.slot)
        release_go_on(st);
    if (st->release.timer.slot)
        release_keep(st);
    stream_asked(st, ack);
    stream_released(st);
}

static void stream_down(struct chain_stream *st)
{
    stream_check(st);
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
    stream_check(st);
    (void)conn;
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
    (void)conn;
    st->blocked = false;
    stream_send(st);
}

static void stream_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct chain_stream *st = user;
    char self[VIEW_LABEL_MAX], to[VIEW_LABEL_MAX];
    (void)conn;
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
    stream_check(st);
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
    assert(st->connector && !st->conn);
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
    stream_check(st);
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

struct chain_stream *chain_stream_open(struct chain *c, const struct view_node *node, struct chain_name to)
{
    struct chain_stream *st = calloc(1, sizeof *st);
    if (!st)
        return NULL;
    st->shard = c->shard;
    st->to = to;
    st->incarnation = node->incarnation;
    st->generation = ++c->generations;
    st->resume.fire = stream_resume;
    st->release.timer.fire = release_fire;
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

/* ---- the gate ---- */

void chain_fail(struct chain *c, paramo_err err)
{
    const struct shard_config *config = &c->shard->config;
    if (c->failed)
        return;
    assert(err && c->shard->chain == c);
    c->failed = true;
    err = err_prefix(err, "shard %u cannot continue its chains", config->index);
    if (config->failed)
        config->failed(config->arg, err);
}

bool chain_leased(const struct chain_stream *st)
{
    return st->heard_at && lane_now(st->shard->lane) - st->heard_at <= CHAIN_LEASE_MS * ENV_MS;
}

bool chain_open(struct shard *s)
{
    struct chain *c = s->chain;
    uint64_t now = chain_guarded(c) ? lane_now(s->lane) : 0;
    if (now >= c->wait_until)
        c->wait_until = 0;
    bool open = !c->failed && !c->wait_until && !records_hold(c);
    for (const struct chain_stream *st = c->streams; st && open; st = st->next) {
        bool room = st->count < CHAIN_STREAM_ENTRIES && st->bytes < CHAIN_STREAM_BYTES;
        if (st->migration_source) {
            /* Before FULL no answer waits for the target: a slow one is aborted. Its lease covers only the
             * partitions that migrate (migration_source_defers). */
            open = room || !migration_source_needs_ack(st->migration_source);
            continue;
        }
        open = chain_leased(st) && st->acked >= st->gate && room;
    }
    c->shut = !open;
    c->held |= !open;
    return open;
}

/* ---- a change ---- */

/* Where the next member has rows of the table. t NULL: where it has rows of any. */
static const uint64_t *stream_partitions(const struct chain_stream *st, const struct shard_table *t)
{
    static const uint64_t none[CHAIN_WORDS];
    if (st->migration_source && t && !migration_source_sends_table(st->migration_source, t))
        return none;
    return st->migration_source || !t || t->replicas >= RING_REPLICAS_MAX ? st->partitions
                                                                          : st->some[t->replicas];
}

/* Does a row of the message, or one of its partitions, lie on partitions? */
static bool touches(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                    const uint64_t *partitions)
{
    for (unsigned i = 0; chain_has_partitions(m) && i < CHAIN_WORDS; i++)
        if (m->partitions[i] & partitions[i])
            return true;
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < m->request.count; i++)
        if (partition_set_has(partitions, ring_partition(ring_position(&t->placement, keys[i]))))
            return true;
    return false;
}

/* Does all of the message lie on partitions? */
static bool within(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                   const uint64_t *partitions)
{
    for (unsigned i = 0; chain_has_partitions(m) && i < CHAIN_WORDS; i++)
        if (m->partitions[i] & ~partitions[i])
            return false;
    const uint64_t *keys = m->request.count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < m->request.count; i++)
        if (!partition_set_has(partitions, ring_partition(ring_position(&t->placement, keys[i]))))
            return false;
    return true;
}

paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                       const struct van_seg *seg, unsigned nseg, const uint64_t *only, bool to_target,
                       struct chain_wait *wait, struct queue *entries)
{
    uint64_t partitions[CHAIN_WORDS];
    for (struct chain_stream *st = c->streams; st; st = st->next) {
        const uint64_t *has = stream_partitions(st, t);
        if (st->migration_source && !to_target)
            continue;
        for (unsigned i = 0; i < CHAIN_WORDS; i++)
            partitions[i] = has[i] & (only ? only[i] : UINT64_MAX);
        if (!touches(t, m, seg, partitions))
            continue;
        struct chain_entry *e = chain_entry_make(t, m, seg, nseg, partitions);
        if (!e)
            return err_memory(sizeof *e);
        e->to = st;
        e->wait = st->migration_source && !migration_source_needs_ack(st->migration_source) ? NULL : wait;
        if (e->wait)
            wait->entries++;
        queue_push(entries, &e->node);
    }
    return PARAMO_OK;
}

/* Can each server that this shard passes changes to, or that another passes them to, read it? AGAIN: that is not known of
 * one yet. */
static paramo_err check_readable(const struct chain *c, const struct wire_head *h)
{
    char name[VIEW_LABEL_MAX];
    if (!(h->flags & WIRE_COLUMNS) || h->count == 1)
        return PARAMO_OK;
    for (const struct chain_stream *st = c->streams; st; st = st->next) {
        if (!st->met)
            return PARAMO_E_AGAIN;
        if (!st->takes_columns)
            return err_set(PARAMO_E_UNSUPPORTED,
                           "%s, which has copies, is of an older version, which has no "
                           "requests for columns",
                           view_id_label(st->to.node, name));
    }
    return PARAMO_OK;
}

paramo_err chain_prepare(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                         const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                         struct chain_wait **wait)
{
    struct chain *c = peer->shard->chain;
    struct sender *sender = peer->sender;
    *wait = NULL;
    assert(!records_pending(c)); /* requests wait for that */
    paramo_err err = check_readable(c, h);
    if (err || !c->streams)
        return err;
    struct chain_wait *w = calloc(1, sizeof *w);
    if (!w)
        return err_memory(sizeof *w);
    struct chain_message m = {
        .what = CHAIN_UPDATE,
        .origin = {.node = c->shard->config.node, .shard = (uint16_t)c->shard->config.index},
        .order = c->order + 1,
        .sender = sender->id,
        .request = *h};
    m.request.kind = h->kind == WIRE_PUSHPULL ? WIRE_PUSH : h->kind;
    m.request.flags = h->flags & (uint8_t) ~(WIRE_CREATE | WIRE_RANGE);
    m.request.floor = sender->applied_window.own.floor;
    if (h->kind == WIRE_CLEAR)
        memcpy(m.partitions, c->mine, sizeof m.partitions);
    w->head = *h;
    err = chain_split(c, t, &m, seg, nseg, only, true, w, &w->made);
    if (err || (queue_empty(&w->made) && !pending(sender, h->number))) {
        chain_abandon(w);
        return err;
    }
    *wait = w;
    return PARAMO_OK;
}

uint64_t *chain_only_mine(const struct chain *c, const uint64_t *only, uint64_t partitions[CHAIN_WORDS])
{
    for (unsigned i = 0; i < CHAIN_WORDS; i++)
        partitions[i] = c->mine[i] & (only ? only[i] : UINT64_MAX);
    return partitions;
}

void chain_abandon(struct chain_wait *w)
{
    if (!w)
        return;
    for (struct qnode *node; (node = queue_pop(&w->made));)
        chain_entry_free(container_of(node, struct chain_entry, node));
    for (struct chain_wait *part = w->parts, *next; part; part = next) {
        next = part->next_part;
        chain_abandon(part);
    }
    free(w);
}

void chain_number(struct chain *c, const struct shard_table *t, const uint64_t *keys, size_t n,
                  const uint64_t *only)
{
    c->order++;
    /* A table without copies has no other member: its changes go at most to a migration's target. */
    for (size_t i = 0; i < n && t->replicas; i++) {
        unsigned partition = ring_partition(ring_position(&t->placement, keys[i]));
        if (only && !partition_set_has(only, partition))
            continue;
        assert(c->last[partition] <= c->order && partition_set_has(c->mine, partition));
        c->last[partition] = c->order;
    }
}

void chain_wait_link(struct chain_wait *w, struct sender *sender)
{
    assert(!w->sender && !w->prev && !w->source);
    w->sender = sender;
    w->next = sender->pending;
    if (w->next)
        w->next->prev = w;
    sender->pending = w;
}

static void append_all(struct chain_wait *w, struct queue *made)
{
    for (struct qnode *node; (node = queue_pop(made));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        e->wait = e->wait ? w : NULL;
        chain_append(e->to, e);
    }
}

void chain_wait_send(struct chain *c, struct chain_wait *w)
{
    struct queue made = w->made;
    w->made = (struct queue){0};
    append_all(w, &made);
    chain_send_all(c);
}

void chain_commit(struct chain *c, const struct shard_table *t, struct chain_wait *w,
                  const struct van_seg *seg, struct sender *sender, const uint64_t *only)
{
    chain_number(c, t, w->head.count ? seg[WIRE_SEG_KEYS].data : NULL, w->head.count, only);
    for (unsigned a = 0; w->head.kind == WIRE_CLEAR && t->replicas && a < RING_PARTITIONS; a++)
        if (partition_set_has(c->mine, a) && (!only || partition_set_has(only, a)))
            c->last[a] = c->order;
    sender->behind = true;
    struct queue made = w->made;
    w->made = (struct queue){0};
    struct chain_wait *before = only ? pending(sender, w->head.number) : NULL;
    if (before) { /* the rest of a chunk whose other keys were applied before: both get one answer */
        before->head = w->head;
        before->entries += w->entries;
        if (before->reply)
            reply_free(before->reply);
        before->reply = w->reply;
        free(w);
        w = before;
    } else {
        chain_wait_link(w, sender);
    }
    append_all(w, &made);
    chain_send_all(c);
    if (!w->entries) { /* it goes only to a target that is not FULL yet */
        w->entries = 1;
        chain_wait_done(w);
    }
}

void chain_cancel(struct queue *entries)
{
    for (struct qnode *node; (node = queue_pop(entries));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        struct chain_wait *w = e->wait;
        chain_entry_free(e);
        assert(!w || w->entries > 0);
        if (!w || --w->entries)
            continue;
        for (struct chain_wait *part = w->parts; part; part = part->next_part)
            wait_unlink(part);
        wait_unlink(w);
        if (w->reply)
            reply_free(w->reply);
        chain_abandon(w);
    }
}

/* Changes that members before us sent are no longer acknowledged to them where no chain has us. */
static void leave(const struct chain *c, const struct shard_table *t, const struct chain_entry *e)
{
    if (e->wait && e->wait->source && touches(t, &e->m, e->seg, c->routing.left))
        e->wait->elsewhere = true;
}

static void route_to(struct chain *c, struct chain_stream *st, struct chain_entry *e)
{
    const struct shard_config *own = &c->shard->config;
    chain_append(st, e);
    if (e->m.what == CHAIN_TAKEOVER && e->m.origin.node == own->node && e->m.origin.shard == own->index)
        st->gate = st->seq;
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
        if (!e->out && !st->migration_source && within(t, &e->m, e->seg, stream_partitions(st, t)))
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

bool chain_sender_floor(struct shard *s, const struct sender *sender)
{
    struct chain *c = s->chain;
    struct queue entries = {0};
    struct chain_message m = {.what = CHAIN_FORGET,
                              .origin = {.node = s->config.node, .shard = (uint16_t)s->config.index},
                              .sender = sender->id,
                              .request = {.floor = sender->applied_window.own.floor}};
    memcpy(m.partitions, c->mine, sizeof m.partitions);
    bool all = chain_routes(c) ? !chain_route_behind(c, &m)
                               : !chain_split(c, NULL, &m, NULL, 0, NULL, false, NULL, &entries);
    if (!all)
        log_debug("shard %u: cannot send a floor to followers: %s", s->config.index, err_text());
    for (struct qnode *node; (node = queue_pop(&entries));) {
        struct chain_entry *e = container_of(node, struct chain_entry, node);
        chain_append(e->to, e);
    }
    chain_send_all(c);
    return all;
}

/* ---- the tick ---- */

static void tick_fire(struct lane_timer *timer)
{
    struct chain *c = container_of(timer, struct chain, tick);
    struct shard *s = c->shard;
    uint64_t now = lane_now(s->lane);
    for (struct chain_stream *st = c->streams; st; st = st->next) {
        stream_connect(st, now);
        stream_beat(st);
        uint64_t since = st->progressed_at > st->sent_at ? st->progressed_at : st->sent_at;
        if (st->count && now > since + CHAIN_RETRY_MS * ENV_MS) {
            st->sent_at = now;
            st->unsent = st->entries.head;
        }
        stream_send(st);
    }
    paramo_err err =
        chain_guarded(c) ? lane_timer_arm(s->lane, &c->tick, now + CHAIN_TICK_MS * ENV_MS) : PARAMO_OK;
    if (err)
        chain_fail(c, err); /* without the timer it neither beats nor sends again */
    loading_check(s);       /* perhaps only the time was left to wait for */
    chain_reopen(s);
}

void chain_tick_init(struct chain *c)
{
    c->tick.fire = tick_fire;
}

void chain_tick_start(struct chain *c)
{
    if (chain_guarded(c) && !c->tick.slot)
        tick_fire(&c->tick);
}

void chain_streams_close(struct chain *c)
{
    struct queue entries = {0};
    while (c->streams)
        chain_stream_close(c, c->streams, &entries);
    chain_cancel(&entries);
    chain_cancel(&c->routing.entries);
    chain_cancel(&c->stranded);
    lane_timer_cancel(c->shard->lane, &c->tick);
    assert(!c->streams && !chain_routes(c));
}
