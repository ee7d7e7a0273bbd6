/*
 * Splitting: which rows and partitions of a change each next member has, and the entries for them. It must never know
 * when entries are sent, or why a change is made. Tests: test/worker/test_chain_sim.c, test/worker/test_routing.c.
 */
#ifndef SERVER_REPLICATION_SPLITTING_H
#define SERVER_REPLICATION_SPLITTING_H

#include "server/replication/chain_impl.h"

/* Where the next member has rows of the table. t NULL: where it has rows of any. */
const uint64_t *chain_stream_partitions(const struct chain_stream *st, const struct shard_table *t);
/* Does a row of the message, or one of its partitions, lie on partitions? */
bool chain_touches(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                   const uint64_t *partitions);
/* Does all of the message lie on partitions? */
bool chain_within(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                  const uint64_t *partitions);
/* Makes an entry for each next member that has partitions of the message, and for a migration's target if to_target,
 * and queues them in `entries`. wait counts those that it waits for; NULL: nothing waits. MEMORY: some may be
 * queued. */
MUST_USE paramo_err chain_split(struct chain *c, const struct shard_table *t, const struct chain_message *m,
                                const struct van_seg *seg, unsigned nseg, const uint64_t *only,
                                bool to_target, struct chain_wait *wait, struct queue *entries);

#endif
