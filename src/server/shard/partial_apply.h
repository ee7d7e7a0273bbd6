/*
 * Requests to partitions with different records (applied_window.h). Some keys of a slice may have been
 * applied by the shard that their partitions came from. Only the rows of the other partitions are applied;
 * the number is then recorded for all. Changes that a chain sends again are applied in the same way. Sets of
 * partitions have one bit for each partition. It must never know why records differ. Tests:
 * test/server/test_applied_window.c, test/worker/test_migration_sim.c.
 */
#ifndef SERVER_SHARD_PARTIAL_APPLY_H
#define SERVER_SHARD_PARTIAL_APPLY_H

#include "server/shard/shard_impl.h"

/* apply_change, of the rows that lie on partitions only. */
MUST_USE paramo_err partial_apply(struct shard *s, struct shard_table *t, const struct wire_head *head,
                                  const struct van_seg *seg, unsigned nseg,
                                  const uint64_t partitions[RING_PARTITIONS / 64]);
/* Gathers the rows of a request that lie on partitions (NULL: all) in a buffer: its size; its head and
 * segments. */
size_t rows_some_bytes(const struct wire_head *head, const struct van_seg *seg, unsigned nseg);
void rows_some(const struct shard_table *t, const struct wire_head *head, const struct van_seg *seg,
               const uint64_t *partitions, uint8_t *buffer, struct wire_head *some_head,
               struct van_seg some[3]);

#endif
