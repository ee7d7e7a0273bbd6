#include "server/shard/senders.h"

#include <assert.h>
#include <stdlib.h>

#include "base/assert_slow.h"
#include "server/migration/source.h"
#include "server/replication/chain_wait.h"
#include "server/replication/gate.h"
#include "server/replication/records.h"
#include "server/replication/replication.h"
#include "server/shard/collecting.h"
#include "server/shard/deferred.h"
#include "server/shard/filtered.h"
#include "server/shard/handling.h"
#include "server/shard/housekeeping.h"
#include "server/shard/kept.h"
#include "server/shard/peers.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/snapshot/saving.h"

enum {
    /* In units of SHARD_CHECK_TURN: to close a connection, and to look through what waits for what it asked, 1
     * for this many requests. */
    CHECK_COST_CLOSE = 64,
    CHECK_WAITING = 4
};

enum sender_life sender_life(const struct shard *s, uint32_t id, uint64_t incarnation, bool known)
{
    if (!id)
        return LIFE_ALIVE; /* a reader is no node: it lives as long as its connections */
    const struct view_node *node = s->view ? view_node(s->view, id) : NULL;
    bool is = node && node->incarnation == incarnation;
    if (is && node->alive)
        return LIFE_ALIVE;
    return is || known ? LIFE_OVER : LIFE_UNKNOWN;
}

static unsigned sender_bucket(const struct sender_id *id)
{
    return (unsigned)(sender_id_hash(id) % SHARD_SENDER_BUCKETS);
}

void shard_sender_free(struct shard *s, struct sender *sender)
{
    struct sender **at = &s->senders->bucket[sender_bucket(&sender->id)];
    if (s->senders->check.sender == sender)
        s->senders->check.sender = sender->next;
    saving_sender_gone(s, sender);
    if (s->chain)
        migration_source_sender_gone(s->chain, sender);
    while (*at != sender) {
        assert(*at); /* its bucket has it */
        at = &(*at)->bucket_next;
    }
    assert(!sender->peers && !sender->peer && s->senders->count > 0);
    assert(sender->prev ? sender->prev->next == sender : s->senders->first == sender);
    assert(!sender->next || sender->next->prev == sender);
    *at = sender->bucket_next;
    if (sender->prev)
        sender->prev->next = sender->next;
    else
        s->senders->first = sender->next;
    if (sender->next)
        sender->next->prev = sender->prev;
    s->senders->count--;
    handling_forget(s, sender);
    applied_window_fini(&sender->applied_window);
    chain_sender_gone(sender);
    scanning_forget(s, sender);
    free(sender->handled);
    free(sender);
}

/* The customer was closed, and no other was opened since: numbers below `over` come no more, and none exist
 * above. */
static bool sender_closed(const struct sender *sender)
{
    return sender->over && sender->applied_window.own.floor == sender->over &&
           applied_window_is_empty(&sender->applied_window) && !handling_any(sender);
}

/* A record without a connection is kept while its worker may return: the view has the incarnation alive, and
 * the customer is not closed. */
static bool sender_over(const struct shard *s, const struct sender *sender)
{
    if (sender->peers)
        return false;
    if (sender_closed(sender))
        return true;
    const struct view_node *node = s->view ? view_node(s->view, sender->id.node) : NULL;
    return !node || !node->alive || node->incarnation != sender->id.incarnation;
}

struct sender *shard_sender_find(const struct shard *s, const struct sender_id *id)
{
    struct sender *sender = s->senders->bucket[sender_bucket(id)];
    while (sender && !sender_id_equal(&sender->id, id))
        sender = sender->bucket_next;
    return sender;
}

struct sender *shard_sender(struct shard *s, const struct sender_id *id)
{
    struct sender *sender = shard_sender_find(s, id);
    if (sender)
        return sender;
    sender = calloc(1, sizeof *sender);
    if (!sender)
        return NULL;
    assert(!s->senders->first == !s->senders->count);
    sender->id = *id;
    sender->checked = UINT64_MAX;
    applied_window_init(&sender->applied_window);
    sender->next = s->senders->first;
    if (s->senders->first)
        s->senders->first->prev = sender;
    s->senders->first = sender;
    struct sender **bucket = &s->senders->bucket[sender_bucket(id)];
    sender->bucket_next = *bucket;
    *bucket = sender;
    s->senders->count++;
    assert(!sender->next || sender->next->prev == sender);
    return sender;
}

/* A job that passes records on may be about to visit any of them. Its end calls shard_senders_check. */
static bool senders_stay(const struct shard *s)
{
    return s->chain && records_pending(s->chain);
}

void shard_peer_forget(struct shard *s, struct peer *peer)
{
    struct sender *sender = peer->sender;
    assert(peer->shard == s);
    if (s->senders->check.peer == peer)
        s->senders->check.peer = peer->next;
    kept_drop_for_view(s, peer, 0);
    collecting_drop(s, peer);
    deferred_drop(s, peer, 0);
    kept_drop(peer);
    for (struct qnode *node; (node = queue_pop(&peer->backlog));)
        reply_free(container_of(container_of(node, struct van_frame, node), struct reply, frame));
    assert(queue_empty(&peer->behind) && sender->peers > 0);
    peers_remove(s, peer);
    sender->peers--;
    if (sender->peer == peer)
        sender->peer = NULL;
    filtered_peer_fini(peer);
    free(peer);
    if (!senders_stay(s) && sender_over(s, sender))
        shard_sender_free(s, sender);
}

/* ---- which senders are over ---- */

static unsigned peer_close(struct shard *s, struct peer *peer)
{
    size_t waiting = kept_for_view(s) + deferred_waiting(s);
    assert(peer->shard == s && peer->sender->peers > 0);
    van_close(peer->conn, false);
    shard_peer_forget(s, peer);
    return CHECK_COST_CLOSE + (unsigned)(waiting / CHECK_WAITING);
}

/* Closes the connection of a dead sender: a host that has vanished resets none. So too of one that no view has
 * had for a while: it is not a node of the job. Returns the cost. */
static unsigned peer_check(struct shard *s, struct peer *peer)
{
    struct sender *x = peer->sender;
    assert(peer->shard == s && x->peers > 0);
    enum sender_life life = sender_life(s, x->id.node, x->id.incarnation, x->known);
    x->known |= life == LIFE_ALIVE;
    assert(life != LIFE_UNKNOWN || !x->known);
    if (life == LIFE_OVER)
        return peer_close(s, peer);
    if (life == LIFE_UNKNOWN && lane_now(s->lane) - peer->since >= SHARD_UNKNOWN_SENDER_SECONDS * ENV_SEC)
        return peer_close(s, peer);
    if (life == LIFE_UNKNOWN)
        peers_set_unknown(s, true);
    return 1;
}

static unsigned sender_check(struct shard *s, struct sender *sender)
{
    assert(s->senders->count > 0 && !senders_stay(s));
    if (!sender_over(s, sender))
        return 1;
    shard_sender_free(s, sender);
    return SHARD_CHECK_FREE;
}

static void check_begin(struct shard *s)
{
    assert(!s->senders->check.on);
    assert(!s->senders->first == !s->senders->count);
    s->senders->check.on = true;
    s->senders->check.again = false;
    s->senders->check.peer = peers_first(s);
    s->senders->check.sender = s->senders->first;
    peers_set_unknown(s, false);
}

/* The count is that of the list, and the records count the connections and the answers that are kept. */
static bool counts_are_right(const struct shard *s)
{
    size_t senders = 0, peers = 0, counted = 0, kept = 0;
    for (const struct sender *x = s->senders->first; x; x = x->next) {
        senders++;
        counted += x->peers;
        kept += x->kept_bytes;
    }
    for (const struct peer *peer = peers_first(s); peer; peer = peer->next)
        peers++;
    return senders == s->senders->count && peers == counted && kept == handling_kept_bytes(s);
}

/* Looks at the next connection, then at the next record, or ends. Returns the cost. */
static unsigned check_next(struct shard *s)
{
    struct peer *peer = s->senders->check.peer;
    struct sender *sender = s->senders->check.sender;
    assert(s->senders->check.on && (!peer || peer->shard == s));
    if (peer) {
        s->senders->check.peer = peer->next;
        return peer_check(s, peer);
    }
    if (sender && !senders_stay(s)) {
        s->senders->check.sender = sender->next;
        return sender_check(s, sender);
    }
    s->senders->check.on = false;
    s->senders->check.sender = NULL;
    assert_slow(counts_are_right(s));
    if (s->senders->check.again)
        check_begin(s);
    else
        housekeeping_schedule(s);
    return 0;
}

static void check_turn(struct shard *s, uint64_t left)
{
    while (left && s->senders->check.on) {
        unsigned cost = check_next(s);
        s->senders->check.spent += cost;
        left -= cost < left ? cost : left;
    }
}

/* In a simulation, other events come between two turns. */
static void check_go_on(struct shard *s)
{
    size_t few = s->config.turn_records;
    check_turn(s, few ? few : SHARD_CHECK_TURN);
    if (s->senders->check.on &&
        lane_timer_arm(s->lane, &s->senders->check.timer, lane_now(s->lane) + (few ? ENV_MS : 0)))
        check_turn(s, UINT64_MAX); /* without memory for a timer */
    assert(!s->senders->check.on || s->senders->check.timer.slot);
}

static void check_fire(struct lane_timer *timer)
{
    check_go_on(container_of(timer, struct shard_senders, check.timer)->shard);
}

void shard_senders_check(struct shard *s)
{
    if (s->senders->check.on) {
        s->senders->check.again = true;
        return;
    }
    check_begin(s);
    check_go_on(s);
}

void senders_init(struct shard *s)
{
    assert(!s->senders->first && !s->senders->count);
    assert(!s->senders->check.on);
    s->senders->shard = s;
    s->senders->most = SHARD_SENDERS_MAX;
    s->senders->check.timer.fire = check_fire;
}

void senders_close(struct shard *s)
{
    assert(!peers_first(s)); /* a record stays while a connection refers to it */
    lane_timer_cancel(s->lane, &s->senders->check.timer);
    while (s->senders->first)
        shard_sender_free(s, s->senders->first);
    assert(!s->senders->count && !s->senders->check.sender);
}
