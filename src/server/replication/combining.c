#include "server/replication/combining.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication/chain_wait.h"
#include "server/replication/combined.h"
#include "server/replication/forward.h"
#include "server/replication/gate.h"
#include "server/replication/splitting.h"
#include "table/packed_sums.h"

bool combining_possible(const struct shard *s, const struct shard_table *t)
{
    const struct chain *c = s->chain;
    if (!c || !c->streams || !t->replicas || t->lacks || c->migration_source)
        return false;
    for (const struct chain_stream *st = c->streams; st; st = st->next)
        if (!st->combines)
            return false;
    return true;
}

/* The next key of a push that has one. */
struct next {
    uint64_t key;
    const uint64_t *keys, *end; /* from the next one on */
    const uint8_t *vals;
};

/* heap[i] may be greater than those below it: moves it down. */
static void heap_down(struct next *heap, size_t n, size_t i)
{
    struct next x = heap[i];
    for (size_t low; (low = 2 * i + 1) < n; i = low) {
        low += low + 1 < n && heap[low + 1].key < heap[low].key;
        if (heap[low].key >= x.key)
            break;
        heap[i] = heap[low];
    }
    heap[i] = x;
}

/* Merges the pushes, whose keys ascend: n pushes of k keys take k log n steps. */
static void sums_fill(const struct shard_table *t, struct kept *const *pushes, size_t n, struct combined *x)
{
    struct next heap[COMBINED_PUSHES_MAX];
    size_t row = x->dim * t->value_bytes, left = 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t *keys = pushes[i]->seg[WIRE_SEG_KEYS].data;
        if (pushes[i]->head.count)
            heap[left++] = (struct next){.key = *keys,
                                         .keys = keys,
                                         .end = keys + pushes[i]->head.count,
                                         .vals = pushes[i]->seg[WIRE_SEG_VALS].data};
    }
    for (size_t i = left / 2; i-- > 0;)
        heap_down(heap, left, i);
    for (struct aggregate_sum *sums = NULL; left;) {
        struct next *least = heap;
        if (!x->n || x->keys[x->n - 1] != least->key) {
            assert(x->n < x->room && (!x->n || x->keys[x->n - 1] < least->key));
            sums = x->sums + x->n * x->dim;
            memset(sums, 0, x->dim * sizeof *sums);
            x->keys[x->n++] = least->key;
        }
        table_sums_add(t->table, least->vals, sums);
        least->vals += row;
        if (++least->keys < least->end)
            least->key = *least->keys;
        else
            *least = heap[--left];
        heap_down(heap, left, 0);
    }
    assert(x->n <= x->room);
}

static void pushes_fill(struct kept *const *pushes, size_t n, struct combined *x)
{
    assert(x->pushes_bytes == n * CHAIN_PUSH_BYTES);
    for (size_t i = 0; i < n; i++) {
        const struct sender *sender = pushes[i]->peer->sender;
        const struct chain_push push = {.sender = sender->id,
                                        .number = pushes[i]->head.number,
                                        .floor = sender->applied_window.own.floor};
        chain_push_put(&push, x->pushes + i * CHAIN_PUSH_BYTES);
    }
}

/* The step of all pushes, with an answer for each. NULL: no memory, or no member follows. */
static struct chain_wait *wait_make(struct chain *c, const struct shard_table *t, struct kept *const *pushes,
                                    size_t n, const struct chain_message *m,
                                    const struct van_seg seg[VAN_SEGS])
{
    assert(n > 0);
    assert(m->order > c->order);
    struct chain_wait *w = calloc(1, sizeof *w);
    bool all = w;
    for (size_t i = 0; i < n && all; i++) {
        struct chain_wait *part = calloc(1, sizeof *part);
        all = part;
        if (!part)
            break;
        part->head = pushes[i]->head;
        part->entries = 1;
        part->next_part = w->parts;
        w->parts = part;
    }
    if (all && !chain_split(c, t, m, seg, WIRE_SEG_BODY, NULL, false, w, &w->made) && !queue_empty(&w->made))
        return w;
    chain_abandon(w);
    return NULL;
}

static void commit(struct chain *c, const struct shard_table *t, struct kept *const *pushes, size_t n,
                   const struct combined *x, struct chain_wait *w)
{
    struct chain_wait *part = w->parts; /* the last push is first */
    assert(part && !w->sender && !w->source);
    chain_number(c, t, x->keys, x->n, NULL);
    for (size_t i = n; i-- > 0; part = part->next_part) {
        struct sender *sender = pushes[i]->peer->sender;
        applied_window_record(&sender->applied_window, pushes[i]->head.number);
        sender->behind = true;
        chain_wait_link(part, sender);
    }
    assert(!part);
    chain_wait_send(c, w);
}

static bool push_sums(struct shard *s, struct shard_table *t, struct kept *const *pushes, size_t n,
                      uint32_t workers, const struct combined *x)
{
    struct chain *c = s->chain;
    struct van_seg seg[VAN_SEGS] = {
        [WIRE_SEG_KEYS] = {.data = x->keys, .len = x->n * sizeof *x->keys},
        [WIRE_SEG_LENS] = {.data = x->pushes, .len = x->pushes_bytes},
        [WIRE_SEG_VALS] = {.data = x->packed, .len = x->packed_bytes},
    };
    const struct chain_message m = {.what = CHAIN_COMBINED,
                                    .origin = {.node = s->config.node, .shard = (uint16_t)s->config.index},
                                    .order = c->order + 1,
                                    .request = {.kind = WIRE_PUSH,
                                                .flags = WIRE_CLOCKED,
                                                .table = t->id,
                                                .count = (uint32_t)x->n,
                                                .clock = pushes[0]->head.clock,
                                                .workers = workers}};
    if (seg[0].len + seg[1].len + seg[2].len > s->config.frame_bytes)
        return false;
    struct chain_wait *w = wait_make(c, t, pushes, n, &m, seg);
    if (!w)
        return false;
    table_at_clock(t->table, m.request.clock, workers);
    paramo_err err = table_push_sums(t->table, x->keys, x->n, x->sums);
    table_at_clock(t->table, UINT64_MAX, 1);
    if (err) {
        chain_abandon(w);
        return false;
    }
    commit(c, t, pushes, n, x, w);
    return true;
}

bool combining_push(struct shard *s, struct shard_table *t, struct kept *const *pushes, size_t n)
{
    struct combined x;
    size_t room = 0;
    uint32_t workers = 0;
    assert(n && n <= COMBINED_PUSHES_MAX && combining_possible(s, t) && !records_pending(s->chain));
    for (size_t i = 0; i < n; i++) {
        const struct wire_head *h = &pushes[i]->head;
        assert(h->clock == pushes[0]->head.clock && h->table == t->id);
        room += h->count;
        workers = h->workers > workers ? h->workers : workers;
        if (table_sums_check(t->table, pushes[i]->seg[WIRE_SEG_VALS].data, h->count))
            return false;
    }
    if (!combined_get(s, t, room, n, &x))
        return false;
    sums_fill(t, pushes, n, &x);
    pushes_fill(pushes, n, &x);
    x.packed_bytes = packed_sums_put(x.sums, x.n * x.dim, x.packed);
    assert(x.n <= room);
    bool done = push_sums(s, t, pushes, n, workers, &x);
    combined_put(s, &x);
    t->pushes += done ? room : 0;
    return done;
}
