/* EXISTS: which keys have a row? The answer's values are one u32 for each key, 1 or 0. Tests: test_exists. */
#ifndef SERVER_SHARD_EXISTS_H
#define SERVER_SHARD_EXISTS_H

#include "server/shard/shard_impl.h"

void exists_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                  const uint64_t *keys);

#endif
