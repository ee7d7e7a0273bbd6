#include "server/shard/slice.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/migration/source.h"
#include "server/replication/chain_wait.h"
#include "server/replication/forward.h"
#include "server/replication/gate.h"
#include "server/replication/records.h"
#include "server/shard/apply.h"
#include "server/shard/clearing.h"
#include "server/shard/collecting.h"
#include "server/shard/deferred.h"
#include "server/shard/examining.h"
#include "server/shard/filtered.h"
#include "server/shard/handling.h"
#include "server/shard/kept.h"
#include "server/shard/peers.h"
#include "server/shard/reply.h"
#include "server/shard/senders.h"
#include "server/shard/shard_tables.h"
#include "server/shard/transforming.h"
#include "server/snapshot/load_state.h"
#include "server/snapshot/saving.h"
#include "wire/capability.h"
#include "wire/key_range.h"

/* ---- senders ---- */

/* A sender is over if the view, which is at least as new as its own, does not have it alive. */
static bool fenced(struct shard *s, struct sender *sender)
{
    if (!sender->id.node) /* a reader */
        return false;
    if (sender->checked != s->view->number) {
        assert(sender->checked == UINT64_MAX || sender->checked < s->view->number); /* views only rise */
        const struct view_node *node = view_node(s->view, sender->id.node);
        sender->fenced = !node || !node->alive || node->incarnation != sender->id.incarnation;
        sender->checked = s->view->number;
    }
    return sender->fenced;
}

void shard_floor(struct shard *s, struct sender *sender, uint64_t floor)
{
    uint64_t before = sender->applied_window.own.floor;
    if (floor <= before)
        return;
    applied_window_raise_floor(&sender->applied_window, floor);
    assert(sender->applied_window.own.floor == floor && sender->told <= floor);
    if (sender->handled)
        handling_floor(s, sender, before);
}

/* ---- a request ---- */

/* A handler may do anything with a request. t NULL: it is not known yet. */
static bool may_change(const struct shard_table *t, const struct wire_head *h)
{
    return data_changes(h->kind) || h->flags & WIRE_CREATE || (t && t->options.kind == PARAMO_TABLE_USER);
}

static void refuse_reader(struct peer *peer, const struct wire_head *h)
{
    reply_status(peer, h, PARAMO_E_REFUSED, "this is a reader of the job, which may not do that");
}

static paramo_err handle(struct peer *peer, const struct wire_head *h, const struct van_seg *seg,
                         unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    struct sender *sender = peer->sender;
    if (!s->view || loading_holds(s) || h->view > s->view->number) {
        kept_defer_for_view(peer, h, seg, nseg, hold);
        return PARAMO_OK;
    }
    s->counters.slices++;
    if (!s->config.app_endpoint && (s->self < 0 || h->view < s->place->partitions_changed)) {
        reply_moved(peer, h);
        return PARAMO_OK;
    }
    if (fenced(s, sender)) {
        reply_status(peer, h, PARAMO_E_FENCED, "this incarnation of the node was declared dead");
        return PARAMO_OK;
    }
    if (s->config.app_endpoint) {
        shard_floor(s, sender, h->floor);
        return handling_slice(peer, NULL, h, seg, nseg, hold);
    }
    struct shard_table *t = shard_table_find(s, h->table);
    if (!t && !view_table(s->view, h->table)) {
        reply_status(peer, h, PARAMO_E_NO_TABLE, "the server has no table of this id");
        return PARAMO_OK;
    }
    if (!t || t->lacks) { /* it must not be applied twice, nor in part; without its record the shard ends */
        reply_status(peer, h, PARAMO_E_MEMORY, "the server is out of memory for the table");
        shard_table_again(s);
        return PARAMO_OK;
    }
    if (h->flags & WIRE_RANGE && t->options.kind == PARAMO_TABLE_USER)
        return err_set(PARAMO_E_PROTOCOL, "%s to table %s, which has a handler, has a range of keys",
                       wire_kind_name(h->kind), t->name);
    if (!sender->id.node && may_change(t, h)) {
        refuse_reader(peer, h);
        return PARAMO_OK;
    }
    assert(t->table || t->options.kind == PARAMO_TABLE_USER);
    assert(sender->peers > 0);
    shard_floor(s, sender, h->floor);
    if (t->options.kind == PARAMO_TABLE_USER)
        return handling_slice(peer, t, h, seg, nseg, hold);
    collecting_before(s, h);
    bool repeated = false;
    switch (applied_window_state(&sender->applied_window, h->number)) {
    case DEDUP_OLD:
        return PARAMO_OK; /* its sender no longer waits for it */
    case DEDUP_BEYOND:
        return err_set(PARAMO_E_PROTOCOL,
                       "number %" PRIu64 " is beyond the window of its sender, whose floor is %" PRIu64,
                       h->number, h->floor);
    case DEDUP_DONE:
        s->counters.repeats++;
        repeated = true;
        if (sender->pending && data_changes(h->kind) && chain_pending(sender, h))
            return PARAMO_OK;
        break;
    case DEDUP_NEW:
        if (collecting_takes(peer, t, h, seg, nseg, hold))
            return PARAMO_OK;
        break;
    }
    return h->kind == WIRE_TRANSFORM && !repeated ? transforming_slice(peer, t, h, seg, nseg)
                                                  : apply_slice(peer, t, h, seg, nseg, repeated);
}

static void probe(struct peer *peer, const struct wire_head *h)
{
    struct shard *s = peer->shard;
    struct sender *sender = peer->sender;
    assert(sender->peers > 0 && !s->place->adopting);
    shard_floor(s, sender, h->floor);
    assert(sender->applied_window.own.floor >= h->floor);
    enum dedup_state state = applied_window_state(&sender->applied_window, h->number);
    if (state == DEDUP_OLD || state == DEDUP_BEYOND)
        return;
    if (s->chain && s->view && s->self < 0) { /* changes of this shard may have reached no other */
        reply_moved(peer, h);
        return;
    }
    if (kept_has(peer, h->number) || collecting_has(s, sender, h->number) ||
        deferred_asked(s, sender, h->number)) {
        reply_probe(peer, h, PROBE_WORKING);
        return;
    }
    if (s->chain && records_pending(s->chain)) { /* its record may be of other partitions; it asks again */
        s->counters.dropped++;
        return;
    }
    if (s->view && fenced(s, sender) && h->view <= s->view->number) {
        reply_status(peer, h, PARAMO_E_FENCED, "this incarnation of the node was declared dead");
        return;
    }
    if (sender->pending && chain_pending(sender, h)) {
        reply_probe(peer, h, PROBE_WORKING);
        return;
    }
    if (sender->handled && handling_probe(peer, h))
        return;
    /* The record covers partitions that are here. The slice may have keys of partitions that have left since it was
     * made. */
    if (!s->config.app_endpoint && s->view && h->view < s->place->partitions_changed) {
        reply_moved(peer, h);
        return;
    }
    /* The answer of a pushpull is not kept: when the client sends it again, it is read again. The slice may also be
     * of a newer view, with partitions of which nothing is known here yet. */
    bool known = s->view && h->view <= s->view->number;
    if (known && state == DEDUP_DONE && h->probe.kind != WIRE_PUSHPULL)
        reply_status(peer, h, PARAMO_OK, NULL);
    else
        reply_probe(peer, h, PROBE_UNKNOWN);
}

/* Must the slice wait? All slices of a connection after a waiting one wait, so that they stay in order. */
static bool waits(const struct peer *peer, const struct wire_head *h, const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    bool shut = chain_guarded(s->chain) && !chain_open(s);
    return peer->blocked || shut || !queue_empty(&peer->deferred) ||
           (saving_now(s) && saving_holds(s, h, seg)) || migration_source_defers(s, h, seg) ||
           clearing_holds(s, h, seg);
}

/* FLOOR: a sender's floor without a request. A goodbye says that the customer assigns no more numbers and has all its
 * answers. It does not concern a customer that was opened later, whose connection may have come first. */
static void floor_message(struct peer *peer, const struct wire_head *h)
{
    struct shard *s = peer->shard;
    struct sender *sender = peer->sender;
    shard_floor(s, sender, h->floor);
    if (h->kind == WIRE_BYE && h->floor > sender->over)
        sender->over = h->floor;
    uint64_t floor = sender->applied_window.own.floor;
    assert(sender->told <= floor);
    /* Followers are told each floor once: a repeat would only lengthen the streams. */
    if (s->chain && sender->behind && floor > sender->told && chain_sender_floor(s, sender)) {
        sender->told = floor;
        assert(sender->told <= sender->applied_window.own.floor && sender->behind);
        sender->behind = !applied_window_is_empty(&sender->applied_window);
    }
}

/* ---- long requests to handlers ---- */

static bool to_examine(const struct kept *k)
{
    struct shard *s = k->peer->shard;
    return examining_long(s, &k->head) && !examining_done(s, &k->examined, &k->head);
}

/* The first request of a connection that is to be examined. */
static struct kept *next_to_examine(const struct shard *s)
{
    for (struct peer *peer = peers_first(s); peer; peer = peer->next) {
        struct kept *k =
            queue_empty(&peer->deferred) ? NULL : container_of(peer->deferred.head, struct kept, node);
        if (k && to_examine(k))
            return k;
    }
    return NULL;
}

static void examine(struct kept *k)
{
    struct shard *s = k->peer->shard;
    assert(to_examine(k) && k->peer->sender->peers > 0);
    examining_step(s, shard_table_find(s, k->head.table), &k->head, k->seg, &k->examined);
}

/* True: a turn will come, if none is there. In a simulation, other events come between two turns. */
static bool examining_go(struct shard *s)
{
    uint64_t pause = s->config.scan_keys ? ENV_MS : 0;
    return s->handling->examining.slot ||
           lane_timer_arm(s->lane, &s->handling->examining, lane_now(s->lane) + pause) == PARAMO_OK;
}

/* Without memory for a timer all is examined now. */
static bool examines_later(struct kept *k)
{
    if (!to_examine(k))
        return false;
    bool later = examining_go(k->peer->shard);
    while (!later && to_examine(k))
        examine(k);
    return later;
}

/* Takes a request whose filters have been undone. hold: as in handle. */
static paramo_err take_request(struct peer *peer, const struct wire_head *h, const struct van_seg *seg,
                               unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    paramo_err err = data_check_request(h, seg, nseg);
    bool is_newer = h->flags & WIRE_COLUMNS && (h->count > 1 || h->kind == WIRE_SCAN);
    if (!err && is_newer && !capability_of(peer->conn, CAPABILITY_COLUMNS))
        err = err_set(PARAMO_E_PROTOCOL, "%s has columns of rows, which was not negotiated",
                      wire_kind_name(h->kind));
    if (!err && h->kind != WIRE_PROBE && (h->kind == WIRE_MESSAGE) != s->config.app_endpoint)
        err = err_set(PARAMO_E_PROTOCOL, "unexpected message %s to %s", wire_kind_name(h->kind),
                      s->config.app_endpoint ? "an app endpoint" : "a shard of tables");
    if (err)
        return err;
    if (s->config.drop_percent && env_random(lane_env(s->lane)) % 100 < s->config.drop_percent)
        return PARAMO_OK;
    /* Late answers go there. The last HELLO may be of an attempt that the client has given up. */
    assert(peer->sender->peers > 0);
    peer->sender->peer = peer;
    if (h->kind == WIRE_PROBE) {
        probe(peer, h);
        return PARAMO_OK;
    }
    bool later = waits(peer, h, seg), examines = examining_long(s, h);
    if (later || examines) {
        kept_defer(peer, h, seg, nseg, hold);
        return later ? PARAMO_OK : slice_resume(peer);
    }
    assert(!s->part); /* requests are handled one at a time */
    s->part = h->kind == WIRE_PULL ? van_note(peer->conn) : NULL;
    err = handle(peer, h, seg, nseg, hold);
    s->part = NULL;
    return err;
}

/* Like take_request(), with the keys that its range stands for. From here on the request differs from others by its
 * flag alone. */
static paramo_err take_range(struct peer *peer, const struct wire_head *h, const struct van_seg *seg,
                             unsigned nseg)
{
    struct shard *s = peer->shard;
    struct van_seg plain[VAN_SEGS] = {{0}};
    size_t room = h->count < KEY_RANGE_KEYS_MAX ? h->count + 1 : KEY_RANGE_KEYS_MAX;
    uint64_t *keys = bufpool_get(&s->pool, 8 * room);
    if (!keys) {
        s->counters.dropped++; /* as if it was lost on the way */
        return PARAMO_OK;
    }
    assert(nseg <= VAN_SEGS);
    assert(room <= KEY_RANGE_KEYS_MAX);
    memcpy(plain, seg, nseg * sizeof *plain);
    paramo_err err = key_range_decode(plain[WIRE_SEG_KEYS].data, plain[WIRE_SEG_KEYS].len, h->count, keys);
    plain[WIRE_SEG_KEYS] = (struct van_seg){.data = keys, .len = 8 * (uint64_t)h->count};
    if (!err)
        err = take_request(peer, h, plain, nseg, NULL);
    bufpool_put(&s->pool, keys, 8 * room);
    return err;
}

static paramo_err on_frame(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                           const struct van_seg *seg, unsigned nseg)
{
    struct peer *peer = user;
    struct wire_head h;
    assert(peer->conn == conn && nseg <= VAN_SEGS);
    assert(peer->sender->peers > 0);
    paramo_err err = wire_open(head, seg, nseg, &h);
    if (!err && h.kind == WIRE_HELLO)
        return PARAMO_OK; /* a second copy of the first */
    if (!err && wire_messages[h.kind].class == WIRE_CLASS_FLOOR) {
        floor_message(peer, &h);
        return PARAMO_OK;
    }
    bool plain_peer = !peer->wants_count && h.filter_epoch == peer->filter_epoch;
    if (err)
        return err;
    if (h.kind == WIRE_PROBE || (!(h.flags & WIRE_FILTERED) && plain_peer))
        return h.flags & WIRE_RANGE ? take_range(peer, &h, seg, nseg)
                                    : take_request(peer, &h, seg, nseg, NULL);
    struct van_seg plain[VAN_SEGS] = {{0}};
    struct van_hold *hold = NULL;
    memcpy(plain, seg, nseg * sizeof *plain);
    err = filtered_in(peer, &h, plain, &nseg, &hold);
    if (!err && h.flags & WIRE_RANGE)
        err = take_range(peer, &h, plain, nseg);
    else if (!err)
        err = take_request(peer, &h, plain, nseg, hold ? &hold : NULL);
    van_release(hold);
    return err == PARAMO_E_AGAIN ? PARAMO_OK : err;
}

static paramo_err handle_kept(struct kept *k)
{
    struct shard *s = k->peer->shard;
    assert(!s->handling->examined && !s->part); /* requests are handled one at a time */
    assert(k->peer->sender->peers > 0);
    s->handling->examined = &k->examined;
    paramo_err err = handle(k->peer, &k->head, k->seg, k->nseg, &k->hold);
    s->handling->examined = NULL;
    kept_free(k);
    return err;
}

paramo_err slice_resume(struct peer *peer)
{
    reply_backlog(peer);
    struct shard *s = peer->shard;
    while (!peer->blocked && !s->place->adopting &&
           !(s->chain && (s->chain->shut || records_hold(s->chain))) && !queue_empty(&peer->deferred)) {
        struct kept *k = container_of(peer->deferred.head, struct kept, node);
        if (saving_holds(s, &k->head, k->seg) || migration_source_defers(s, &k->head, k->seg) ||
            clearing_holds(s, &k->head, k->seg))
            break;
        if (examines_later(k))
            break;
        paramo_err err = handle_kept(kept_pop(peer));
        if (err)
            return err;
    }
    deferred_resume(s);
    return PARAMO_OK;
}

static void peer_gone(struct peer *peer);

static void peer_fail(struct peer *peer)
{
    char self[VIEW_LABEL_MAX], sender[VIEW_LABEL_MAX];
    log_warn("%s: closing the connection of %s: %s", view_id_label(peer->shard->config.node, self),
             view_id_label(peer->sender->id.node, sender), err_text());
    peer_gone(peer);
}

static void fail_broken(struct shard *s)
{
    for (struct peer *peer = peers_first(s), *next; peer; peer = next) {
        next = peer->next;
        if (peer->broken)
            peer_fail(peer);
    }
}

static void append(struct queue *to, struct queue *from)
{
    for (struct qnode *node; (node = queue_pop(from));)
        queue_push(to, node);
}

/* While a connection defers slices, no other slice of it waits for a view. So a slice that waits for a view came
 * before those that its connection defers, and is put first. */
void slice_resume_view_deferred(struct shard *s)
{
    struct queue old = kept_take_for_view(s);
    assert(!kept_for_view(s) && !kept_for_view_bytes(s));
    for (struct peer *peer = peers_first(s); peer; peer = peer->next)
        append(&peer->behind, &peer->deferred);
    for (struct qnode *node; (node = queue_pop(&old));) {
        struct kept *k = container_of(node, struct kept, node);
        struct peer *peer = k->peer;
        assert(peer->shard == s && peer->sender->peers > 0);
        if (!peer->broken && (waits(peer, &k->head, k->seg) || examines_later(k))) {
            kept_push(k);
        } else if (!peer->broken && handle_kept(k)) /* it may be deferred again */
            peer->broken = true;
        else if (peer->broken)
            kept_free(k);
    }
    for (struct peer *peer = peers_first(s); peer; peer = peer->next)
        append(&peer->deferred, &peer->behind);
    deferred_resume(s);
    fail_broken(s);
}

void slice_resume_all(struct shard *s)
{
    for (struct peer *peer = peers_first(s); peer; peer = peer->next)
        peer->broken |= slice_resume(peer) != PARAMO_OK;
    fail_broken(s);
}

bool slice_may_read(const struct peer *peer, const struct wire_head *h, const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    bool shut = chain_guarded(s->chain) && !chain_open(s);
    return !shut && !peer->blocked && s->view && !loading_holds(s) && !migration_source_defers(s, h, seg) &&
           !clearing_holds(s, h, seg);
}

bool slice_waits_for_view(const struct shard *s)
{
    return !s->view || loading_holds(s);
}

bool slice_may_change(const struct peer *peer, const struct wire_head *h, const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    bool shut = chain_guarded(s->chain) && !chain_open(s);
    return !shut && !peer->blocked && !slice_waits_for_view(s) &&
           !(saving_now(s) && saving_holds(s, h, seg)) && !migration_source_defers(s, h, seg) &&
           !clearing_holds(s, h, seg);
}

bool slice_is_whole(const struct peer *peer, const struct wire_head *h)
{
    struct shard *s = peer->shard;
    const struct applied_window *window = &peer->sender->applied_window;
    assert(s->view);
    assert(h->view <= s->view->number);
    return s->self >= 0 && h->view >= s->place->partitions_changed && !fenced(s, peer->sender) &&
           applied_window_state(window, h->number) == DEDUP_NEW && !applied_window_note(window, h->number);
}

void slice_handle_kept(struct kept *k)
{
    assert(k->peer->sender->peers > 0);
    assert(k->peer->shard->collecting->closing);
    struct peer *peer = k->peer;
    if (handle(peer, &k->head, k->seg, k->nseg, &k->hold))
        peer->broken = true; /* it is closed when all connections continue */
    kept_free(k);
}

void slice_handle_again(struct peer *peer, const struct wire_head *h, const struct van_seg *seg,
                        unsigned nseg)
{
    if (handle(peer, h, seg, nseg, NULL))
        peer_fail(peer);
}

void slice_examine(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_handling, examining)->shard;
    struct kept *k = next_to_examine(s);
    if (k) {
        struct peer *peer = k->peer;
        examine(k);
        if (!to_examine(k) && slice_resume(peer))
            peer_fail(peer);
    }
    k = next_to_examine(s);
    if (k)
        (void)examines_later(k);
}

static void on_writable(void *user, struct van_conn *conn)
{
    struct peer *peer = user;
    (void)conn;
    if (slice_resume(peer))
        peer_fail(peer);
}

static void peer_gone(struct peer *peer)
{
    struct shard *s = peer->shard;
    van_close(peer->conn, false);
    shard_peer_forget(s, peer);
}

static void on_closed(void *user, struct van_conn *conn, paramo_err why, const char *text)
{
    struct peer *peer = user;
    char self[VIEW_LABEL_MAX], sender[VIEW_LABEL_MAX];
    (void)conn;
    if (why == PARAMO_E_PROTOCOL || why == PARAMO_E_TOO_LARGE || why == PARAMO_E_VERSION)
        log_warn("%s: %s broke the protocol: %s", view_id_label(peer->shard->config.node, self),
                 view_id_label(peer->sender->id.node, sender), text);
    peer_gone(peer);
}

const struct van_user shard_van_user = {.frame = on_frame, .writable = on_writable, .closed = on_closed};
