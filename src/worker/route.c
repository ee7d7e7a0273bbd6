#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/numbers.h"
#include "worker/reslicing.h"
#include "worker/route.h"
#include "worker/slicing_turns.h"
#include "worker/views.h"

static uint64_t place_of(uint32_t node, unsigned index)
{
    return (uint64_t)node << 16 | index;
}

/* The links by the places of their shards. There is one for each place, even after another process has taken it. */
static paramo_err places_make(const struct client *c, struct map *places)
{
    paramo_err err = PARAMO_OK;
    map_init(places);
    for (size_t i = 0; i < links_count(c) && !err; i++)
        err = map_put(places, place_of(links_at(c, i)->node, links_at(c, i)->index), links_at(c, i));
    return err;
}

static struct link *link_find(const struct map *places, const struct view_node *node, unsigned index)
{
    struct link *l = map_get(places, place_of(node->id, index));
    return l && l->incarnation == node->incarnation ? l : NULL;
}

static int sole_owner(const struct ring *ring)
{
    for (unsigned a = 1; a < RING_PARTITIONS; a++) {
        if (ring->owner[a] != ring->owner[0])
            return -1;
    }
    return ring->owner[0] == RING_NONE ? -1 : ring->owner[0];
}

/* Finds or makes each shard's link. `links` gets all links, the new ones last; on an error new links are freed. */
static paramo_err links_make(struct client *c, const struct view *view, const struct map *places,
                             struct link **by_shard, struct link **links, size_t *count)
{
    size_t n = 0;
    for (; n < links_count(c); n++)
        links[n] = links_at(c, n);
    for (uint32_t s = 0; s < view->shards_count; s++) {
        const struct view_node *node = view_node(view, view->shards[s].node);
        paramo_err err = node ? PARAMO_OK : err_set(PARAMO_E_INTERNAL, "shard %u is on no node", s);
        if (!err) {
            by_shard[s] = link_find(places, node, view->shards[s].index);
            if (!by_shard[s]) {
                err = link_create(c, node, view->shards[s].index, &by_shard[s]);
                if (!err)
                    links[n++] = by_shard[s];
            }
        }
        if (err) {
            while (n > links_count(c))
                free(links[--n]);
            return err;
        }
    }
    assert(n >= links_count(c) && n <= links_count(c) + view->shards_count);
    *count = n;
    return PARAMO_OK;
}

static paramo_err routes_make(struct client *c, const struct view *view, struct link **by_shard,
                              struct link **links, size_t *count)
{
    struct map places;
    paramo_err err = places_make(c, &places);
    if (!err)
        err = links_make(c, view, &places, by_shard, links, count);
    map_fini(&places);
    return err;
}

static bool is_over(const struct link *l)
{
    return l->stale || l->dead;
}

static bool waits_over(const struct slice *p)
{
    bool listed = p->state == SLICE_QUEUED || p->state == SLICE_RESEND || p->state == SLICE_SENT;
    return listed && is_over(p->link);
}

/* Does the chunk wait for a link that is over? */
static bool chunk_waits_over(const struct chunk *chunk)
{
    assert(!chunk->split || chunk->count > 0);
    assert(!chunk->need || !chunk->count);
    bool any = !chunk->split && chunk->count && waits_over(&chunk->one);
    for (uint32_t i = 0; chunk->split && i < chunk->count; i++)
        any |= waits_over(&chunk->split[i].slice);
    return any;
}

/* Chunks that have their numbers, in that order: they were, or may have been, sent. */
static void numbers_evacuate(struct client *c, struct chunk *before)
{
    assert(!before || before->need);
    for (uint64_t number = numbers_floor(c), end = numbers_next(c); number < end; number++) {
        struct chunk *chunk = numbers_chunk(c, number);
        assert(!chunk || (chunk->number == number && chunk->request->client == c));
        if (chunk && !chunk->request->ended && chunk_waits_over(chunk))
            slice_chunk_later(c, chunk, before);
    }
}

/* All others of the link. */
static void link_evacuate(struct client *c, struct link *l, struct chunk *before)
{
    assert(is_over(l) && l->client == c);
    for (;;) {
        struct slice *p = l->resend.head ? l->resend.head : l->queue.head ? l->queue.head : l->sent.head;
        if (!p)
            return;
        assert(p->link == l);
        if (p->chunk->request->ended)
            chunk_withdraw(p->chunk);
        else
            slice_chunk_later(c, p->chunk, before);
    }
}

/* What waits for links that are over is sliced again in turns, before what waits already. */
static void evacuate(struct client *c, size_t count)
{
    struct chunk *before = chunk_first_waiter(c);
    bool any = false;
    assert(count == links_count(c));
    assert(!before || before->need);
    for (size_t i = 0; i < count; i++)
        any |= is_over(links_at(c, i));
    if (any)
        numbers_evacuate(c, before);
    for (size_t i = 0; i < count; i++) /* links may be added and move in this loop */
        if (is_over(links_at(c, i)))
            link_evacuate(c, links_at(c, i), before);
}

/* Drops a link that is no shard of the view. */
static bool keep(struct link *l)
{
    assert(!l->stale || (!l->sent.head && !l->queue.head && !l->resend.head));
    bool stays = !l->stale;
    if (!stays)
        link_destroy(l);
    return stays;
}

static bool drop(struct link *l)
{
    assert(client_is_down(l->client) && !l->sent.head);
    link_destroy(l);
    return false;
}

void client_set_view(struct client *c, struct view *view)
{
    if (client_is_down(c) || (c->view && view->number <= c->view->number))
        return;
    struct link **by_shard = malloc((view->shards_count + 1) * sizeof *by_shard);
    struct link **links = malloc((links_count(c) + view->shards_count + 1) * sizeof *links);
    size_t count = 0;
    if (!by_shard || !links || routes_make(c, view, by_shard, links, &count)) {
        free(by_shard);
        free(links);
        views_missed(c, view);
        return;
    }
    links_set(c, links, count, by_shard, sole_owner(view_ring(view)));
    view_unref(c->view);
    c->view = view_ref(view);
    atomic_store(&c->shared->shards, view->shards_count);
    views_taken(c);
    atomic_store(&c->shared->num_servers, view->num_servers);
    atomic_store(&c->shared->num_workers, view->num_workers);
    for (size_t i = 0; i < count; i++) {
        const struct view_node *node = view_node(view, links[i]->node);
        bool app_endpoint = links[i]->index == HELLO_APP_ENDPOINT;
        links[i]->stale = !app_endpoint || !node || node->incarnation != links[i]->incarnation;
        if (!app_endpoint || links[i]->stale)
            continue;
        links[i]->left = node->left && links[i]->state == LINK_UP;
        links[i]->dead = !node->alive && !links[i]->left;
    }
    for (uint32_t s = 0; s < view->shards_count; s++) {
        assert(by_shard[s] && by_shard[s]->client == c);
        by_shard[s]->stale = false;
        by_shard[s]->dead = !view_node(view, by_shard[s]->node)->alive;
    }
    assert(links_count(c) == count && c->view == view);
    evacuate(c, count);
    slice_resume_waiting(c);
    client_finish(c);
    links_keep(c, keep);
}

void route_init(struct client *c)
{
    links_init(c);
    views_init(c, client_set_view);
}

void route_fini(struct client *c)
{
    views_close(c);
    links_keep(c, drop);
    links_fini(c);
    view_unref(c->view);
    c->view = NULL;
}
