/*
 * Functions that change rows (TRANSFORM). The owner computes the new rows of the request's keys and handles a PUT of
 * them under the request's number, in one step. So the record of the number, the chain, a migration's stream and a
 * checkpoint have nothing new to do, and the change is made exactly once, like any PUT. The results travel to copies,
 * not the function: a copy may lack the second table, and the target of a migration may have one table's rows before
 * the other's. It never knows how a PUT is made safe. Tests: test/worker/test_transform_run.c, the simulator.
 */
#ifndef SERVER_SHARD_TRANSFORMING_H
#define SERVER_SHARD_TRANSFORMING_H

#include "server/shard/shard_impl.h"

/* A request that is not applied yet. */
MUST_USE paramo_err transforming_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                       const struct van_seg *seg, unsigned nseg);

#endif
