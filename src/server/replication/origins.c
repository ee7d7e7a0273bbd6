#include "server/replication/origins.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* Buckets that grow move to twice as many, these with each sender that comes: all have moved before the next growth. */
enum { BUCKETS_FIRST = 16, BUCKETS_MOVED = 2 };

/* While buckets grow, the old ones are half as many, and some are still to be moved. */
static void origin_check(const struct chain_origin *o)
{
    assert(o->buckets_count && !(o->buckets_count & (o->buckets_count - 1)));
    assert(!o->senders == !o->senders_count && o->partitions <= RING_PARTITIONS);
    assert(!o->older || (o->moved < o->older_count && 2 * o->older_count == o->buckets_count));
}

struct chain_origin *origin_make(struct chain_name name)
{
    struct chain_origin *o = calloc(1, sizeof *o);
    struct chain_sender **buckets = calloc(BUCKETS_FIRST, sizeof(struct chain_sender *));
    if (!o || !buckets) {
        free(o);
        free(buckets);
        return NULL;
    }
    o->name = name;
    o->buckets = buckets;
    o->buckets_count = BUCKETS_FIRST;
    origin_check(o);
    return o;
}

struct chain_origin *origin_get(struct chain *c, struct chain_name name)
{
    for (struct chain_origin *o = c->origins; o; o = o->next)
        if (chain_same(o->name, name))
            return o;
    struct chain_origin *o = origin_make(name);
    const struct view_node *node = c->shard->view ? view_node(c->shard->view, name.node) : NULL;
    if (!o)
        return NULL;
    o->incarnation = node ? node->incarnation : 0;
    origin_check(o);
    o->next = c->origins;
    c->origins = o;
    return o;
}

static struct chain_sender **bucket_of(const struct chain_origin *o, const struct sender_id *id)
{
    uint64_t hash = sender_id_hash(id);
    uint32_t older = o->older ? (uint32_t)hash & (o->older_count - 1) : 0;
    return o->older && older >= o->moved ? &o->older[older] : &o->buckets[hash & (o->buckets_count - 1)];
}

static void bucket_add(struct chain_origin *o, struct chain_sender *x)
{
    struct chain_sender **bucket = bucket_of(o, &x->id);
    x->bucket_next = *bucket;
    *bucket = x;
}

/* Without memory the buckets stay, and searches take longer. */
static void buckets_grow(struct chain_origin *o)
{
    assert(!o->older);
    origin_check(o);
    struct chain_sender **more = calloc(2 * (size_t)o->buckets_count, sizeof(struct chain_sender *));
    if (!more)
        return;
    o->older = o->buckets;
    o->older_count = o->buckets_count;
    o->moved = 0;
    o->buckets = more;
    o->buckets_count *= 2;
}

static void buckets_move(struct chain_origin *o)
{
    for (unsigned i = 0; i < BUCKETS_MOVED && o->older; i++) {
        assert(o->moved < o->older_count);
        assert(o->older_count < o->buckets_count);
        struct chain_sender *x = o->older[o->moved++];
        for (struct chain_sender *next; x; x = next) {
            next = x->bucket_next;
            bucket_add(o, x);
        }
        if (o->moved == o->older_count) {
            free(o->older);
            o->older = NULL;
        }
    }
}

void origin_sender_free(struct chain_origin *o, struct chain_sender *x)
{
    struct chain_sender **at = bucket_of(o, &x->id);
    while (*at != x) {
        assert(*at); /* its bucket has it */
        at = &(*at)->bucket_next;
    }
    assert(o->senders_count > 0);
    assert(x->prev ? x->prev->next == x : o->senders == x);
    assert(!x->next || x->next->prev == x);
    *at = x->bucket_next;
    *(x->prev ? &x->prev->next : &o->senders) = x->next;
    if (x->next)
        x->next->prev = x->prev;
    o->senders_count--;
    applied_window_fini(&x->applied_window);
    free(x);
}

void origin_fini(struct chain_origin *o)
{
    while (o && o->senders)
        origin_sender_free(o, o->senders);
    if (o) {
        assert(!o->senders_count);
        free(o->buckets);
        free(o->older);
    }
    free(o);
}

static struct chain_sender *sender_find(const struct chain_origin *o, const struct sender_id *id)
{
    struct chain_sender *x = *bucket_of(o, id);
    while (x && !sender_id_equal(&x->id, id))
        x = x->bucket_next;
    return x;
}

struct chain_sender *origin_sender(struct chain_origin *o, const struct sender_id *id)
{
    origin_check(o);
    struct chain_sender *x = sender_find(o, id);
    if (x)
        return x;
    x = calloc(1, sizeof *x);
    if (!x)
        return NULL;
    x->id = *id;
    applied_window_init(&x->applied_window);
    x->next = o->senders;
    assert(!x->next == !o->senders_count);
    if (x->next)
        x->next->prev = x;
    o->senders = x;
    bucket_add(o, x);
    buckets_move(o);
    if (++o->senders_count > o->buckets_count && !o->older)
        buckets_grow(o);
    return x;
}

void origin_sender_forget(struct chain_origin *o, const struct chain_message *m)
{
    struct chain_sender *x = sender_find(o, &m->sender);
    origin_check(o);
    if (!x)
        return;
    applied_window_raise_floor(&x->applied_window, m->request.floor);
    /* A repeat of a number below the floor comes by an older connection of this shard, whose own record of
     * the sender is raised, too. */
    if (applied_window_is_empty(&x->applied_window))
        origin_sender_free(o, x);
}

void origin_partitions(const struct chain *c, const struct chain_origin *o, uint64_t partitions[CHAIN_WORDS])
{
    memset(partitions, 0, CHAIN_WORDS * sizeof *partitions);
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (c->origin_of[a] == o)
            partition_set_add(partitions, a);
}
