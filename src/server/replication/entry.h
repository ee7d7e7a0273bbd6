/*
 * Entries of a stream: the messages to a next member that are not acknowledged yet. It must never know when they are
 * sent, or what an acknowledgement means: chain_stream.h does. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_ENTRY_H
#define SERVER_REPLICATION_ENTRY_H

#include "server/replication/chain_impl.h"

/* With room for data; NULL: no memory. */
struct chain_entry *chain_entry_new(size_t bytes);
/* The message m with only the rows that lie on partitions; NULL: no memory. */
struct chain_entry *chain_entry_make(const struct shard_table *t, const struct chain_message *m,
                                     const struct van_seg *seg, unsigned nseg, const uint64_t *partitions);
void chain_entry_free(struct chain_entry *e);
/* Its bytes on the wire. */
uint64_t chain_entry_travels(const struct chain_entry *e);

#endif
