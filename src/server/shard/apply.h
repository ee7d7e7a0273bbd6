/*
 * Requests to built-in tables: checks of keys and lengths, update, read, answer. The update and the record of
 * its number are one step. It must never know of connections, except the peer that it answers. Tests:
 * test/server/test_shard.c, test/worker/test_exactly_once_sim.c.
 */
#ifndef SERVER_SHARD_APPLY_H
#define SERVER_SHARD_APPLY_H

#include "server/shard/shard_impl.h"

/* Applies or reads, and answers. The number is recorded with the update. An error closes the connection.
 * repeated: the slice was applied before, and only the answer is wanted. */
MUST_USE paramo_err apply_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                const struct van_seg *seg, unsigned nseg, bool repeated);
#endif
