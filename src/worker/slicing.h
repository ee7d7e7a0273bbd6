/*
 * Slicing: a request into chunks by the present view, and a chunk into slices again when the view has
 * changed. It never knows connections, only which link a shard has. On the lane. Tests:
 * test/worker/test_client.c, test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_SLICING_H
#define WORKER_SLICING_H

#include "worker/client_impl.h"

/* Makes the request's chunks and starts them; the request may have ended on return. */
void slice_request(struct client *c, struct request *r);
/* A new attempt of the whole chunk by the present view; the chunk may be gone on return. */
void slice_chunk(struct client *c, struct chunk *chunk);
/* The same by a view of at least this number, as soon as the client has one. */
void slice_chunk_by(struct client *c, struct chunk *chunk, uint64_t need);
/* owner >= 0: one slice, to that shard of the view. */
void slice_chunk_start(struct client *c, struct chunk *chunk, int owner);
/* One more chunk, or NULL: the request has ended. */
struct chunk *slice_chunk_add(struct client *c, struct request *r, const struct span *s, int target);
/* Sends the chunk as one slice over this link. */
void slice_chunk_whole(struct client *c, struct chunk *chunk, struct link *l);
/* Sets the segments of the slice's frame to those of its span. */
void slice_segments(struct slice *p);
void slice_wait_view(struct client *c, struct chunk *chunk, uint64_t need);
void slice_unwait_view(struct client *c, struct chunk *chunk);
/* A new view has come: chunks that waited for it go on. */
void slice_resume_waiting(struct client *c);

#endif
