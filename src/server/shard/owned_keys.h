/*
 * Which keys of a table this shard owns, for steps over all keys of a table that has rows of other owners as well. It
 * must never know what a step does with a key. Tests: test/worker/test_reduction_request.c, test/worker/test_pages.c.
 */
#ifndef SERVER_SHARD_OWNED_KEYS_H
#define SERVER_SHARD_OWNED_KEYS_H

#include "server/shard/shard_impl.h"

struct owned_keys {
    const struct shard *shard;
    const struct shard_table *table;
};

/* What a step over the table's keys asks (table_wants, with a struct owned_keys as its argument). NULL: it has no
 * rows of other owners, so every key is wanted. */
table_wants owned_keys_only(const struct owned_keys *keys);

#endif
