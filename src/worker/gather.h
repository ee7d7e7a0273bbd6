/*
 * Copies answers into the caller's arrays where they could not be received in place. It never knows where the
 * values came from. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_GATHER_H
#define WORKER_GATHER_H

#include "worker/client_impl.h"

/* Copies the rows of a finished split chunk or a scattered slice to their places. */
void gather_split(struct chunk *chunk);
void gather_chunk(struct chunk *chunk);
/* All answers with lens have come: copies them to their places, in turns, and ends the request: SIZE_MISMATCH if
 * there is no room. */
void gather_lens(struct request *r);
/* The request has ended, perhaps in the middle of it. */
void gather_end(struct request *r);
void gather_init(struct client *c);
/* No more turns. */
void gather_close(struct client *c);

/* Requests whose answers with lens are being copied, in turns. */
struct client_gathers {
    struct client *client;
    struct request *first;
    struct lane_timer timer;
    uint64_t spent; /* by all turns; for tests */
};

#endif
