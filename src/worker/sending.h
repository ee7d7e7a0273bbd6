/*
 * A chunk starts: its slices are made, and given to the links that take them to their shards. It never knows which
 * shard a key belongs to. Tests: test/worker/test_client.c.
 */
#ifndef WORKER_SENDING_H
#define WORKER_SENDING_H

#include "worker/client_impl.h"

/* One more chunk, or NULL: the request has ended. */
struct chunk *slice_chunk_add(struct client *c, struct request *r, const struct span *s, int target);
/* owner >= 0: one slice, to that shard of the view. */
void slice_chunk_start(struct client *c, struct chunk *chunk, int owner);
/* Sends the chunk as one slice over this link. */
void slice_chunk_whole(struct client *c, struct chunk *chunk, struct link *l);
/* The state of a slice before it is sent. */
void sending_init(struct slice *p, struct chunk *chunk, struct link *link, const struct span *s);
/* False: the link's node is dead, and the chunk has failed. */
MUST_USE bool sending_usable(struct chunk *chunk, const struct link *l);

#endif
