/*
 * Fences: a fence passes when all requests that the client got before it have ended, with any status. It delays no
 * request. It never knows what a request does, or what happens after the fence. Tests: test/worker/test_fence.c.
 */
#ifndef WORKER_FENCE_H
#define WORKER_FENCE_H

#include "env/lane.h"

struct client;

/* The caller's memory until it passes. */
struct client_fence {
    void (*passed)(struct client_fence *fence); /* on the client's lane, once; it may free the fence */
    /* the client's */
    struct client *client;
    struct lane_task task;
    struct client_fence *next;
    uint64_t upto; /* it waits for requests of at most this number ... */
    size_t left;   /* ... how many of them have not ended */
};

/* Any thread; not after client_free. A client that is closed lets it pass. */
void client_fence(struct client *client, struct client_fence *fence);
/* On the lane: the request of this number is over. */
void fence_request_over(struct client *c, uint64_t number);

#endif
