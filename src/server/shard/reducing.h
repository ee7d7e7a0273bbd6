/*
 * Reductions (REDUCE): a function of the rows that this shard owns in a range, computed in steps of the lane
 * (deferred.h), with everything else between them. It begins again when partitions come or go; the client begins
 * again, too, since answers add up only if all are of one view. Nothing of it is recorded. It never knows
 * what other shards find. Tests: test/worker/test_reduction_request.c, the simulator.
 */
#ifndef SERVER_SHARD_REDUCING_H
#define SERVER_SHARD_REDUCING_H

#include "server/shard/shard_impl.h"

/* Answers, or defers the request. */
MUST_USE paramo_err reducing_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                   const struct van_seg *seg);

#endif
