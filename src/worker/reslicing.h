/*
 * Slicing again: a chunk's next attempt, into slices by the present view, when the view has changed or the chunk has
 * waited. It must never know why the attempt before has failed. On the lane. Tests: test/worker/test_client_faults.c,
 * test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_RESLICING_H
#define WORKER_RESLICING_H

#include "worker/client_impl.h"

/* A new attempt of the whole chunk by the present view; the chunk may be gone on return. */
void slice_chunk(struct client *c, struct chunk *chunk);
/* Like slice_chunk(), by a view of at least this number, as soon as the client has one. */
void slice_chunk_by(struct client *c, struct chunk *chunk, uint64_t need);
/* Like slice_chunk(), but in a turn, before another chunk that waits (slice_wait_turn). */
void slice_chunk_later(struct client *c, struct chunk *chunk, struct chunk *before);

#endif
