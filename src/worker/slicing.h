/*
 * Slicing: a request into chunks by the present view, and a chunk into slices again when the view has
 * changed. It never knows connections, only which link a shard has. On the lane. Tests:
 * test/worker/test_client.c, test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_SLICING_H
#define WORKER_SLICING_H

#include "worker/client_impl.h"

struct client_turns {
    struct client *client;
    struct lane_timer timer; /* the next turn of chunks that wait */
    struct ring_run *runs;   /* scratch: RING_PARTITIONS + 1 */
};

MUST_USE paramo_err slicing_init(struct client *c);
/* No more turns. */
void slicing_close(struct client *c);
void slicing_fini(struct client *c);

/* Makes the request's chunks and starts them; the request may have ended on return. */
void slice_request(struct client *c, struct request *r);
/* A new attempt of the whole chunk by the present view; the chunk may be gone on return. */
void slice_chunk(struct client *c, struct chunk *chunk);
/* The same by a view of at least this number, as soon as the client has one. */
void slice_chunk_by(struct client *c, struct chunk *chunk, uint64_t need);
/* The same in a turn, before another that waits (slice_wait_turn). */
void slice_chunk_later(struct client *c, struct chunk *chunk, struct chunk *before);
/* A new view has come: chunks that waited for it, or wait for a turn, go on, in turns of a millisecond and in order. Later
 * requests wait behind them. */
void slice_resume_waiting(struct client *c);

#endif
