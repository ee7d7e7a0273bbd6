#include "server/shard/collecting.h"

#include <assert.h>
#include <stdlib.h>

#include "server/shard/apply_rows.h"

static struct collection *find(const struct shard *s, uint32_t table)
{
    struct collection *x = s->collecting->first;
    while (x && x->table != table)
        x = x->next;
    return x;
}

static void unlink_collection(struct shard *s, const struct collection *x)
{
    struct shard_collecting *all = s->collecting;
    struct collection **at = &all->first;
    while (*at != x) {
        assert(*at);
        at = &(*at)->next;
    }
    *at = x->next;
    assert(all->count > 0 && all->bytes >= x->bytes);
    all->count--;
    all->bytes -= x->bytes;
    assert(!all->first == !all->count && (all->count || !all->bytes));
}

/* In a simulation some shards wait longer, so that more pushes meet. */
static uint64_t waits_until(const struct shard *s, uint64_t since)
{
    uint64_t ms = s->config.turn_records > 1 ? 20 * COLLECTING_MS : COLLECTING_MS;
    return since + ms * ENV_MS;
}

/* ---- closing ---- */

static struct collecting_past *past_of(const struct shard *s, const struct collection *x)
{
    struct collecting_past *p = s->collecting->past;
    while (p && p->table != x->table)
        p = p->next;
    return p;
}

/* Without memory it is forgotten. */
static void past_note(struct shard *s, const struct collection *x)
{
    struct collecting_past *p = past_of(s, x);
    if (!p) {
        p = calloc(1, sizeof *p);
        if (!p)
            return;
        *p = (struct collecting_past){.next = s->collecting->past, .table = x->table, .clock = x->clock};
        s->collecting->past = p;
    }
    if (p->clock != x->clock) {
        p->before = p->clock + 1 == x->clock ? p->pushes : 0;
        p->clock = x->clock;
        p->pushes = 0;
    }
    assert(p->table == x->table && p->clock == x->clock);
    assert(x->count <= COMBINED_PUSHES_MAX && s->collecting->count > 0);
    p->pushes += x->count;
}

static void close_collection(struct shard *s, struct collection *x)
{
    assert(!s->collecting->closing);
    past_note(s, x);
    unlink_collection(s, x);
    s->collecting->closing = true;
    s->collecting->close(s, x);
    assert(queue_empty(&x->pushes)); /* handled, or they wait elsewhere */
    s->collecting->closing = false;
    free(x);
}

static void fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_collecting, timer)->shard;
    uint64_t now = lane_now(s->lane), next = UINT64_MAX;
    for (struct collection *x = s->collecting->first, *after; x; x = after) {
        uint64_t due = waits_until(s, x->since);
        after = x->next;
        if (due <= now)
            close_collection(s, x);
        else
            next = due < next ? due : next;
    }
    if (next == UINT64_MAX || !lane_timer_arm(s->lane, timer, next))
        return;
    while (s->collecting->first) /* no memory for a timer */
        close_collection(s, s->collecting->first);
}

/* ---- collecting ---- */

static bool may_wait(const struct shard *s, const struct shard_table *t, const struct wire_head *h,
                     const struct van_seg *seg, unsigned nseg)
{
    return !s->collecting->closing && h->kind == WIRE_PUSH && !(h->flags & WIRE_COLUMNS) &&
           t->options.aggregate && h->workers > 1 && combining_possible(s, t) &&
           !apply_check_rows(t, h, seg, nseg) && !apply_check_keys(s, t, seg[WIRE_SEG_KEYS].data, h->count) &&
           !apply_check_lost(s, t, h, seg[WIRE_SEG_KEYS].data);
}

/* NULL: no memory. */
static struct collection *begin(struct shard *s, const struct wire_head *h)
{
    assert(!find(s, h->table) && s->collecting->count < COLLECTIONS_MAX);
    struct collection *x = calloc(1, sizeof *x);
    struct lane_timer *timer = &s->collecting->timer;
    uint64_t now = lane_now(s->lane);
    if (x && !timer->slot && lane_timer_arm(s->lane, timer, waits_until(s, now))) {
        free(x);
        return NULL;
    }
    if (!x)
        return NULL;
    *x =
        (struct collection){.next = s->collecting->first, .table = h->table, .clock = h->clock, .since = now};
    s->collecting->first = x;
    s->collecting->count++;
    assert(s->collecting->timer.slot);
    return x;
}

/* Takes those out that the caller names: all of a connection, or a sender's number. */
static void take_out(struct shard *s, struct collection *x, const struct peer *peer,
                     const struct sender *sender, uint64_t number)
{
    size_t before = x->bytes;
    struct queue all = x->pushes;
    x->pushes = (struct queue){0};
    for (struct qnode *node; (node = queue_pop(&all));) {
        struct kept *k = container_of(node, struct kept, node);
        if (k->peer != peer && !(k->peer->sender == sender && k->head.number == number)) {
            queue_push(&x->pushes, node);
            continue;
        }
        assert(x->count > 0 && x->bytes >= k->bytes);
        x->count--;
        x->bytes -= k->bytes;
        kept_free(k);
    }
    assert(s->collecting->bytes >= before);
    s->collecting->bytes -= before - x->bytes;
}

/* Senders that have pushed; none more often than it has pushes. */
static uint32_t senders_of(const struct collection *x)
{
    uint32_t count = 0;
    for (const struct qnode *node = x->pushes.head; node; node = node->next) {
        const struct sender *sender = container_of(node, const struct kept, node)->peer->sender;
        const struct qnode *before = x->pushes.head;
        while (before != node && container_of(before, const struct kept, node)->peer->sender != sender)
            before = before->next;
        count += before == node;
    }
    return count;
}

static uint32_t workers_of(const struct collection *x)
{
    uint32_t workers = 0;
    for (const struct qnode *node = x->pushes.head; node; node = node->next) {
        uint32_t count = container_of(node, const struct kept, node)->head.workers;
        workers = count > workers ? count : workers;
    }
    return workers;
}

/* A worker that has no keys of this shard, or has just joined, is waited for in one clock, and not in the next. */
static bool all_pushed(const struct shard *s, const struct collection *x)
{
    const struct collecting_past *p = past_of(s, x);
    bool same = p && p->clock == x->clock;
    size_t before = same ? p->before : p && p->clock + 1 == x->clock ? p->pushes : 0;
    if (before)
        return x->count + (same ? p->pushes : 0) >= before;
    uint32_t workers = workers_of(x);
    return x->count >= workers && senders_of(x) >= workers;
}

/* Closes the oldest until there is room for a push of these bytes, to a collection of its own if `fresh`. */
static void make_room(struct shard *s, size_t bytes, bool fresh)
{
    assert(bytes <= COLLECTING_BYTES);
    const struct shard_collecting *all = s->collecting;
    while (all->first && (all->bytes + bytes > COLLECTING_BYTES || all->count + fresh > COLLECTIONS_MAX)) {
        struct collection *oldest = all->first;
        while (oldest->next)
            oldest = oldest->next;
        close_collection(s, oldest);
    }
}

bool collecting_takes(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                      const struct van_seg *seg, unsigned nseg, struct van_hold **hold)
{
    struct shard *s = peer->shard;
    size_t bytes = kept_bytes(seg, nseg);
    if (bytes > COLLECTING_BYTES || !may_wait(s, t, h, seg, nseg))
        return false;
    struct collection *x = find(s, h->table);
    assert(!x || x->clock == h->clock); /* collecting_before */
    if (x)                              /* a repeat takes its place */
        take_out(s, x, NULL, peer->sender, h->number);
    make_room(s, bytes, !x);
    x = find(s, h->table);
    if (!x)
        x = begin(s, h);
    struct kept *k = x ? kept_make(peer, h, seg, nseg, hold) : NULL;
    if (x && !k && !x->count) {
        unlink_collection(s, x);
        free(x);
    }
    if (!k)
        return false;
    queue_push(&x->pushes, &k->node);
    x->count++;
    x->bytes += k->bytes;
    s->collecting->bytes += k->bytes;
    assert(k->bytes == bytes && s->collecting->bytes <= COLLECTING_BYTES);
    if (x->count == COMBINED_PUSHES_MAX || all_pushed(s, x))
        close_collection(s, x);
    return true;
}

void collecting_before(struct shard *s, const struct wire_head *h)
{
    bool clocked = (h->kind == WIRE_PUSH || h->kind == WIRE_PULL) && h->flags & WIRE_CLOCKED;
    bool several = h->kind == WIRE_REDUCE || h->kind == WIRE_TRANSFORM; /* they may read a second table */
    for (struct collection *x = s->collecting->first, *next; x && !s->collecting->closing; x = next) {
        next = x->next;
        bool stays = h->kind == WIRE_PUSH ? h->clock == x->clock : h->clock < x->clock;
        if ((several || x->table == h->table) && !(clocked && stays))
            close_collection(s, x);
    }
}

void collecting_give_back(struct shard *s)
{
    for (struct collection *x; (x = s->collecting->first);) {
        unlink_collection(s, x);
        for (struct qnode *node; (node = queue_pop(&x->pushes));)
            kept_wait_for_view(container_of(node, struct kept, node));
        free(x);
    }
}

void collecting_drop(struct shard *s, const struct peer *peer)
{
    for (struct collection *x = s->collecting->first, *next; x; x = next) {
        next = x->next;
        take_out(s, x, peer, NULL, 0);
        if (!x->count) {
            unlink_collection(s, x);
            free(x);
        }
    }
}

bool collecting_has(const struct shard *s, const struct sender *sender, uint64_t number)
{
    for (const struct collection *x = s->collecting->first; x; x = x->next)
        for (const struct qnode *node = x->pushes.head; node; node = node->next) {
            const struct kept *k = container_of(node, const struct kept, node);
            if (k->peer->sender == sender && k->head.number == number)
                return true;
        }
    return false;
}

void collecting_init(struct shard *s, void (*close)(struct shard *s, struct collection *x))
{
    assert(!s->collecting->first && !s->collecting->count);
    assert(!s->collecting->closing);
    s->collecting->close = close;
    s->collecting->shard = s;
    s->collecting->timer.fire = fire;
}

void collecting_close(struct shard *s)
{
    assert(!s->collecting->first && !s->collecting->bytes);
    assert(!s->collecting->count && !s->collecting->closing);
    for (struct collecting_past *p = s->collecting->past, *next; p; p = next) {
        next = p->next;
        free(p);
    }
    lane_timer_cancel(s->lane, &s->collecting->timer);
}
