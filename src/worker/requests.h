/*
 * The requests of a client that are in flight, in the order in which they were issued, and those of them that have
 * ended and wait for client_finish. Also the memory of requests. It must never know what a request does. Tests:
 * test/worker/test_client.c.
 */
#ifndef WORKER_REQUESTS_H
#define WORKER_REQUESTS_H

#include "worker/client_impl.h"

struct client_requests {
    struct request *first, *last; /* in flight */
    struct request *ended, *ended_tail;
    struct request *of_slot[TRACKER_SLOTS]; /* in flight, by timestamp */
    struct request *free;
    size_t free_count;
    uint64_t total;
};

/* A cleared request. on_lane: from the free list, which is the lane's. NULL: no memory. */
struct request *requests_get(struct client *c, bool on_lane);
/* The request is off the list: keeps or frees its memory. */
void requests_put(struct client *c, struct request *r);
/* In flight from now on; sets r->number. */
void requests_add(struct client *c, struct request *r);
/* Takes a request that has ended out of the list: the client no longer owns it. */
void requests_remove(struct client *c, struct request *r);
/* The request has ended: client_finish will complete it. */
void requests_note_ended(struct client *c, struct request *r);
/* The next one that has ended; NULL: that was all. */
struct request *requests_take_ended(struct client *c);
/* Room for what a request copies of the caller's: in the request, or of its own until request_copy_free. NULL: no
 * memory. */
void *request_copy_room(struct request *r, size_t bytes);
void request_copy_free(struct request *r);
/* Frees the cached requests; none is in flight. */
void requests_fini(struct client *c);

/* The oldest in flight; r->next is the next one. */
static inline struct request *requests_first(const struct client *c)
{
    return c->requests->first;
}

/* The request in flight with this timestamp, or with another of the same slot; NULL: there is none. */
static inline struct request *requests_of_slot(const struct client *c, uint64_t ts)
{
    return c->requests->of_slot[ts % TRACKER_SLOTS];
}

/* Requests so far. */
static inline uint64_t requests_total(const struct client *c)
{
    return c->requests->total;
}

#endif
