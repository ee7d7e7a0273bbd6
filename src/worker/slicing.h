/*
 * Slicing: a request into chunks by the present view. It never knows connections, only which link a shard has. On the
 * lane. Tests: test/worker/test_client.c, test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_SLICING_H
#define WORKER_SLICING_H

#include "worker/client_impl.h"

struct client_slicing {
    struct ring_run *runs; /* scratch: RING_PARTITIONS + 1 */
};

enum { TURN_CHUNK = 64 }; /* what a chunk costs of a turn, in keys, beside its own */

MUST_USE paramo_err slicing_init(struct client *c);
void slicing_fini(struct client *c);

/* Makes the request's chunks and starts them; the request may have ended on return. */
void slice_by_view(struct client *c, struct request *r);
/* A turn of the waiting chunk that stands for all keys of its request that are not sliced yet. Returns what it has
 * cost. */
size_t slice_rest_turn(struct client *c, struct chunk *rest);
/* The request, which has no chunks, waits as a whole for a view of at least this number. */
void request_wait(struct client *c, struct request *r, uint64_t need);
/* The answers of shards add up only if all are of one view: the request starts again if one of its chunks must. */
bool request_adds_up(const struct request *r);
/* False: a dead server without partitions, which holds nothing. */
bool shard_counts(const struct view *view, uint32_t shard);

#endif
