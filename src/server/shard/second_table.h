/*
 * The second table of a request that reads two. Checks that the shard has it, whole, and that it keeps the rows of a
 * key where the first table does. It never knows what is computed. Tests: test/worker/test_reduction_request.c.
 */
#ifndef SERVER_SHARD_SECOND_TABLE_H
#define SERVER_SHARD_SECOND_TABLE_H

#include "server/shard/shard_impl.h"

/* keys: of the request, or NULL if it is of all rows. NO_TABLE, MEMORY, SIZE_MISMATCH, DATA_LOST. */
MUST_USE paramo_err second_table(struct shard *s, const struct shard_table *t, const struct wire_head *head,
                                 const uint64_t *keys, uint32_t id, struct shard_table **other);

#endif
