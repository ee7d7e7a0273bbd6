#include "worker/requests.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* On the lane. */
static void requests_check(const struct client_requests *q)
{
    assert(!q->first == !q->last && !q->ended == !q->ended_tail);
    assert(!q->first || (!q->first->prev && !q->last->next));
    assert(!q->free == !q->free_count && q->free_count <= REQUESTS_CACHED);
}

struct request *requests_get(struct client *c, bool on_lane)
{
    struct request *r = on_lane ? c->requests->free : NULL;
    assert(!on_lane || !c->requests->free == !c->requests->free_count);
    if (r) {
        c->requests->free = r->next;
        c->requests->free_count--;
    } else {
        r = malloc(sizeof *r);
        if (!r)
            return NULL;
    }
    /* Sets all but the frames and what is set at use. */
    memset(r, 0, offsetof(struct request, first));
    r->client = c;
    return r;
}

void requests_put(struct client *c, struct request *r)
{
    requests_check(c->requests);
    free(r->error_text);
    if (r->posted || c->requests->free_count >= REQUESTS_CACHED) {
        free(r);
        return;
    }
    r->next = c->requests->free;
    c->requests->free = r;
    c->requests->free_count++;
}

void requests_add(struct client *c, struct request *r)
{
    struct client_requests *q = c->requests;
    assert(!r->ts == r->carry.own && (!r->ts || !q->of_slot[r->ts % TRACKER_SLOTS]));
    requests_check(q);
    r->prev = q->last;
    r->next = NULL;
    if (q->last)
        q->last->next = r;
    else
        q->first = r;
    q->last = r;
    if (r->ts)
        q->of_slot[r->ts % TRACKER_SLOTS] = r;
    r->number = ++q->total;
}

void requests_remove(struct client *c, struct request *r)
{
    struct client_requests *q = c->requests;
    assert(r->ended && (!r->ts || q->of_slot[r->ts % TRACKER_SLOTS] == r));
    assert(r->prev ? r->prev->next == r : q->first == r);
    assert(r->next ? r->next->prev == r : q->last == r);
    if (r->prev)
        r->prev->next = r->next;
    else
        q->first = r->next;
    if (r->next)
        r->next->prev = r->prev;
    else
        q->last = r->prev;
    if (r->ts)
        q->of_slot[r->ts % TRACKER_SLOTS] = NULL;
    requests_check(q);
}

void requests_note_ended(struct client *c, struct request *r)
{
    struct client_requests *q = c->requests;
    requests_check(q);
    assert(r->ended && r->client == c);
    r->ended_next = NULL;
    if (q->ended_tail)
        q->ended_tail->ended_next = r;
    else
        q->ended = r;
    q->ended_tail = r;
}

struct request *requests_take_ended(struct client *c)
{
    struct client_requests *q = c->requests;
    struct request *r = q->ended;
    if (!r)
        return NULL;
    assert(r->ended && (r->ended_next || q->ended_tail == r));
    requests_check(q);
    q->ended = r->ended_next;
    if (!q->ended)
        q->ended_tail = NULL;
    return r;
}

void *request_copy_room(struct request *r, size_t bytes)
{
    assert(!r->copy);
    assert(!r->ended && !r->ts);
    if (bytes <= sizeof r->small)
        return r->small;
    r->copy = malloc(bytes);
    if (!r->copy)
        return NULL;
    r->copy_bytes = bytes;
    atomic_fetch_add(&r->client->shared->copied, bytes);
    return r->copy;
}

void request_copy_free(struct request *r)
{
    assert(!r->copy || atomic_load(&r->client->shared->copied) >= r->copy_bytes);
    if (r->copy) {
        atomic_fetch_sub(&r->client->shared->copied, r->copy_bytes);
        bufpool_drop_late(&r->client->pool, r->copy, r->copy_bytes);
        r->copy = NULL;
    }
}

void requests_fini(struct client *c)
{
    struct client_requests *q = c->requests;
    requests_check(q);
    assert(!q->first && !q->last && !q->ended);
    for (struct request *r; (r = q->free);) {
        q->free = r->next;
        free(r);
    }
}
