#include "server/shard/kept.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "server/shard/housekeeping.h"
#include "van/core.h"
#include "van/pool.h"

paramo_err kept_segments(struct peer *peer, const struct van_seg *from, unsigned n, struct van_seg *to,
                         struct van_hold **hold)
{
    assert(n <= VAN_SEGS);
    uint64_t bytes = 0;
    for (unsigned i = 0; i < n; i++)
        bytes += van_padded(from[i].len);
    paramo_err err = pool_get(peer->conn->van->pool, bytes, hold);
    if (err)
        return err;
    uint8_t *at = hold_data(*hold);
    for (unsigned i = 0; i < n; i++) {
        struct van_seg seg = {.data = from[i].len ? at : NULL, .len = from[i].len};
        if (seg.len)
            memcpy(at, from[i].data, (size_t)seg.len);
        at += van_padded(seg.len);
        to[i] = seg;
    }
    assert(at == (uint8_t *)hold_data(*hold) + bytes);
    return PARAMO_OK;
}

/* The keys of a range are not those of the frame. */
static paramo_err keep_frame(struct kept *k)
{
    return k->head.flags & WIRE_RANGE ? kept_segments(k->peer, k->seg, k->nseg, k->seg, &k->hold)
                                      : van_keep(k->peer->conn, k->seg, k->nseg, &k->hold);
}

size_t kept_bytes(const struct van_seg *seg, unsigned nseg)
{
    size_t bytes = sizeof(struct kept);
    for (unsigned i = 0; i < nseg; i++)
        bytes += (size_t)seg[i].len;
    return bytes;
}

struct kept *kept_make(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                       unsigned nseg, struct van_hold **hold)
{
    assert(peer->conn && nseg <= VAN_SEGS);
    struct kept *k = malloc(sizeof *k);
    if (!k)
        return NULL;
    *k = (struct kept){.peer = peer, .head = *head, .nseg = nseg, .bytes = kept_bytes(seg, nseg)};
    for (unsigned i = 0; i < nseg; i++)
        k->seg[i] = seg[i];
    if (hold && *hold) {
        k->hold = *hold;
        *hold = NULL;
    } else if (!hold && keep_frame(k)) {
        free(k);
        return NULL;
    }
    assert(!hold || !*hold); /* the slice has it */
    return k;
}

void kept_free(struct kept *k)
{
    assert(k->peer);
    van_release(k->hold);
    free(k);
}

static void for_view_check(const struct shard_kept *kept)
{
    assert(queue_empty(&kept->for_view) == !kept->count);
    assert(kept->count <= SHARD_VIEW_DEFERRED_MAX && (kept->count || !kept->bytes));
}

void kept_wait_for_view(struct kept *k)
{
    struct shard *s = k->peer->shard;
    for_view_check(s->kept);
    if (s->kept->count >= SHARD_VIEW_DEFERRED_MAX) {
        s->counters.dropped++;
        kept_free(k);
        return;
    }
    assert(k->peer->conn);
    k->deadline = lane_now(s->lane) + SHARD_VIEW_DEFERRED_SECONDS * ENV_SEC;
    queue_push(&s->kept->for_view, &k->node);
    s->kept->count++;
    s->kept->bytes += k->bytes;
    s->counters.deferred_for_view++;
    housekeeping_schedule(s);
}

void kept_defer_for_view(struct peer *peer, const struct wire_head *head, const struct van_seg *seg,
                         unsigned nseg, struct van_hold **hold)
{
    assert(queue_empty(&peer->shard->kept->for_view) == !peer->shard->kept->count);
    struct shard *s = peer->shard;
    struct kept *k = NULL;
    if (s->kept->count < SHARD_VIEW_DEFERRED_MAX && s->kept->bytes < SHARD_VIEW_DEFERRED_BYTES)
        k = kept_make(peer, head, seg, nseg, hold);
    if (!k) {
        s->counters.dropped++;
        return;
    }
    kept_wait_for_view(k);
}

void kept_drop_for_view(struct shard *s, const struct peer *peer, uint64_t now)
{
    struct queue old = s->kept->for_view;
    s->kept->for_view = (struct queue){0};
    for (struct qnode *node; (node = queue_pop(&old));) {
        struct kept *k = container_of(node, struct kept, node);
        if (k->peer != peer && k->deadline > now) {
            queue_push(&s->kept->for_view, node);
            continue;
        }
        assert(s->kept->count > 0 && s->kept->bytes >= k->bytes);
        s->kept->count--;
        s->kept->bytes -= k->bytes;
        kept_free(k);
    }
    assert(queue_empty(&s->kept->for_view) == (s->kept->count == 0));
}

static bool for_view_adds_up(const struct shard *s)
{
    size_t count = 0, bytes = 0;
    for (const struct qnode *node = s->kept->for_view.head; node; node = node->next) {
        count++;
        bytes += container_of(node, const struct kept, node)->bytes;
    }
    return count == s->kept->count && bytes == s->kept->bytes;
}

struct queue kept_take_for_view(struct shard *s)
{
    assert_slow(for_view_adds_up(s));
    struct queue all = s->kept->for_view;
    assert(queue_empty(&all) == (s->kept->count == 0) && (s->kept->bytes == 0) == (s->kept->count == 0));
    *s->kept = (struct shard_kept){0};
    return all;
}

void kept_push(struct kept *k)
{
    struct peer *peer = k->peer;
    assert((peer->deferred_count == 0) == queue_empty(&peer->deferred) || !queue_empty(&peer->behind));
    queue_push(&peer->deferred, &k->node);
    peer->deferred_count++;
    assert(!queue_empty(&peer->deferred) && peer->conn);
    peer->deferred_bytes += k->bytes;
}

void kept_push_first(struct kept *k)
{
    struct peer *peer = k->peer;
    assert(peer->conn && !peer->deferred.head == !peer->deferred.tail);
    k->node.next = peer->deferred.head;
    peer->deferred.head = &k->node;
    if (!peer->deferred.tail)
        peer->deferred.tail = &k->node;
    peer->deferred_count++;
    peer->deferred_bytes += k->bytes;
    assert(peer->deferred_bytes >= k->bytes);
}

struct kept *kept_pop(struct peer *peer)
{
    struct kept *k = container_of(queue_pop(&peer->deferred), struct kept, node);
    assert(k->peer == peer && peer->deferred_count > 0 && peer->deferred_bytes >= k->bytes);
    peer->deferred_count--;
    peer->deferred_bytes -= k->bytes;
    assert(peer->deferred_count || !peer->deferred_bytes);
    return k;
}

void kept_drop(struct peer *peer)
{
    while (!queue_empty(&peer->deferred))
        kept_free(kept_pop(peer));
    assert(!peer->deferred_count && !peer->deferred_bytes);
}

void kept_defer(struct peer *peer, const struct wire_head *head, const struct van_seg *seg, unsigned nseg,
                struct van_hold **hold)
{
    assert(queue_empty(&peer->deferred) || peer->deferred_count > 0);
    struct kept *k = NULL;
    if (peer->deferred_count < PEER_DEFERRED_MAX && peer->deferred_bytes < PEER_DEFERRED_BYTES)
        k = kept_make(peer, head, seg, nseg, hold);
    if (!k) {
        peer->shard->counters.dropped++;
        return;
    }
    kept_push(k);
}

/* Is the slice that the probe asks about deferred here? */
static bool is_kept(const struct queue *queue, const struct sender *sender, uint64_t number)
{
    for (const struct qnode *node = queue->head; node; node = node->next) {
        const struct kept *k = container_of(node, struct kept, node);
        if (k->peer->sender == sender && k->head.number == number)
            return true;
    }
    return false;
}

bool kept_has(const struct peer *peer, uint64_t number)
{
    return is_kept(&peer->deferred, peer->sender, number) ||
           is_kept(&peer->shard->kept->for_view, peer->sender, number);
}
