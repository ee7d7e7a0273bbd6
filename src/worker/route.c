#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/link.h"
#include "worker/route.h"
#include "worker/slicing.h"

static uint64_t place_of(uint32_t node, unsigned index)
{
    return (uint64_t)node << 16 | index;
}

/* The links by the places of their shards. There is one for each place, even after another process has taken it. */
static paramo_err places_make(const struct client *c, struct map *places)
{
    paramo_err err = PARAMO_OK;
    map_init(places);
    for (size_t i = 0; i < c->links->count && !err; i++)
        err = map_put(places, place_of(c->links->all[i]->node, c->links->all[i]->index), c->links->all[i]);
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

/* Finds or makes each shard's link. `links` becomes c->links->all; on an error new links are freed. */
static paramo_err links_make(struct client *c, const struct view *view, const struct map *places,
                             struct link **by_shard, struct link **links, size_t *count)
{
    size_t n = c->links->count;
    if (n)
        memcpy(links, c->links->all, n * sizeof *links);
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
            while (n > c->links->count)
                free(links[--n]);
            return err;
        }
    }
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
    bool any = !chunk->split && chunk->count && waits_over(&chunk->one);
    for (uint32_t i = 0; chunk->split && i < chunk->count; i++)
        any |= waits_over(&chunk->split[i].slice);
    return any;
}

/* Chunks that have their numbers, in that order: they were, or may have been, sent. */
static void numbers_evacuate(struct client *c, struct chunk *before)
{
    for (uint64_t number = c->numbers->floor, end = c->numbers->next; number < end; number++) {
        struct chunk *chunk = c->numbers->chunk[number % DATA_WINDOW];
        if (chunk && !chunk->request->ended && chunk_waits_over(chunk))
            slice_chunk_later(c, chunk, before);
    }
}

/* All others of the link. */
static void link_evacuate(struct client *c, struct link *l, struct chunk *before)
{
    for (;;) {
        struct slice *p = l->resend.head ? l->resend.head : l->queue.head ? l->queue.head : l->sent.head;
        if (!p)
            return;
        if (p->chunk->request->ended)
            chunk_withdraw(p->chunk);
        else
            slice_chunk_later(c, p->chunk, before);
    }
}

/* What waits for links that are over is sliced again in turns, before what waits already. */
static void evacuate(struct client *c, size_t count)
{
    struct chunk *before = c->chunks->waiters;
    bool any = false;
    for (size_t i = 0; i < count; i++)
        any |= is_over(c->links->all[i]);
    if (any)
        numbers_evacuate(c, before);
    for (size_t i = 0; i < count; i++) /* links may be added and move in this loop */
        if (is_over(c->links->all[i]))
            link_evacuate(c, c->links->all[i], before);
}

enum { VIEW_AGAIN_MS = 100 }; /* arbitrary: short for a person */

static void view_forget(struct client *c)
{
    lane_timer_cancel(c->lane, &c->views->timer);
    view_unref(c->views->missed);
    c->views->missed = NULL;
}

/* Keeps a view for which there was no memory, and tries it again, since the scheduler does not send it twice.
 * If there is no memory for the timer either, the next request that needs the view asks for it. */
static void view_miss(struct client *c, struct view *view)
{
    if (!c->views->missed)
        log_error("customer %u: cannot take view %llu yet: out of memory", c->config.customer,
                  (unsigned long long)view->number);
    if (!c->view)
        return; /* client_create fails */
    c->views->asked = c->view->number;
    struct view *older = c->views->missed;
    c->views->missed = view_ref(view);
    view_unref(older);
    if (lane_timer_arm(c->lane, &c->views->timer, lane_now(c->lane) + VIEW_AGAIN_MS * ENV_MS))
        view_forget(c);
}

void route_view_again(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_views, timer)->client;
    struct view *view = view_ref(c->views->missed);
    client_set_view(c, view);
    view_unref(view);
}

void client_set_view(struct client *c, struct view *view)
{
    if (atomic_load(&c->life->down) || (c->view && view->number <= c->view->number))
        return;
    struct link **by_shard = malloc((view->shards_count + 1) * sizeof *by_shard);
    struct link **links = malloc((c->links->count + view->shards_count + 1) * sizeof *links);
    size_t count = 0;
    if (!by_shard || !links || routes_make(c, view, by_shard, links, &count)) {
        free(by_shard);
        free(links);
        view_miss(c, view);
        return;
    }
    if (c->views->missed && c->views->missed->number <= view->number)
        view_forget(c);
    free(c->links->all);
    free(c->links->by_shard);
    view_unref(c->view);
    c->links->all = links;
    c->links->count = count;
    c->links->by_shard = by_shard;
    c->view = view_ref(view);
    atomic_store(&c->shared->shards, view->shards_count);
    c->views->partitions_changed = view_partitions_changed(view);
    c->links->sole = sole_owner(view_ring(view));
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
    evacuate(c, count);
    slice_resume_waiting(c);
    client_finish(c);
    size_t kept = 0;
    for (size_t i = 0; i < c->links->count; i++) {
        assert(!c->links->all[i]->stale || (!c->links->all[i]->sent.head && !c->links->all[i]->queue.head &&
                                            !c->links->all[i]->resend.head));
        if (c->links->all[i]->stale)
            link_destroy(c->links->all[i]);
        else
            c->links->all[kept++] = c->links->all[i];
    }
    c->links->count = kept;
}

void route_fini(struct client *c)
{
    view_forget(c);
    for (size_t i = 0; i < c->links->count; i++)
        link_destroy(c->links->all[i]);
    free(c->links->all);
    free(c->links->by_shard);
    c->links->all = NULL;
    c->links->by_shard = NULL;
    c->links->count = 0;
    view_unref(c->view);
    c->view = NULL;
}
