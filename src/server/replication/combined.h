/*
 * One change made of all pushes of one clock to an aggregated table (docs/CONSISTENCY.md, section 5): their sums by
 * key, and their senders. CHAIN_COMBINED carries it; its segments are keys, pushes (chain_push_put) and packed sums
 * (table/packed_sums.h). This module has the rows of the change: a member applies them, and selects those for a next
 * member. It must never know how the change is made (combining.h). Tests: test/worker/test_combined.c.
 */
#ifndef SERVER_REPLICATION_COMBINED_H
#define SERVER_REPLICATION_COMBINED_H

#include "server/replication/chain_impl.h"
#include "table/aggregate.h"

/* Memory of one step, from the shard's pool. */
struct combined {
    size_t room, n; /* keys */
    size_t dim, bytes;
    uint64_t *keys;
    struct aggregate_sum *sums; /* dim for each key */
    uint8_t *packed, *pushes;   /* room for these */
    size_t packed_bytes, pushes_bytes;
};

/* False: no memory. */
bool combined_get(struct shard *s, const struct shard_table *t, size_t room, size_t pushes,
                  struct combined *x);
void combined_put(struct shard *s, struct combined *x);
/* A CHAIN_COMBINED that has come, and was decoded: do its sums fit the table? PROTOCOL. */
MUST_USE paramo_err combined_check(const struct shard_table *t, const struct chain_message *m,
                                   const struct van_seg *seg, unsigned nseg);
/* Adds its sums on these partitions, or does nothing: MEMORY, INVALID. */
MUST_USE paramo_err combined_apply(struct shard *s, struct shard_table *t, const struct chain_message *m,
                                   const struct van_seg *seg, const uint64_t partitions[CHAIN_WORDS]);
/* Gathers its rows on partitions (NULL: all) and its pushes in a buffer of combined_some_bytes: head and segments. */
size_t combined_some_bytes(const struct van_seg *seg);
void combined_some(const struct shard_table *t, const struct chain_message *m, const struct van_seg *seg,
                   const uint64_t *partitions, uint8_t *buffer, struct wire_head *head,
                   struct van_seg some[3]);

#endif
