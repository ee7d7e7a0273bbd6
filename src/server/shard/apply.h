/*
 * Requests to built-in tables: checks of keys and lengths, update, read, answer. The update and the record of
 * its number are one step. It must never know of connections, but for the peer that it answers. Tests:
 * test/server/test_shard.c, test/worker/test_exactly_once_sim.c.
 */
#ifndef SERVER_SHARD_APPLY_H
#define SERVER_SHARD_APPLY_H

#include "server/shard/shard_impl.h"

/* Applies or reads, and answers. The number is recorded with the update. An error closes the connection.
 * repeated: the slice was applied before, and only the answer is wanted. */
MUST_USE paramo_err apply_slice(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                                const struct van_seg *seg, unsigned nseg, bool repeated);
/* Does this shard own all of the keys? */
bool apply_owned(const struct shard *s, const struct ring_placement *placement, const uint64_t *keys,
                 size_t n);
#define APPLY_CHANGED "; leave a request's arrays as they are until it completes, or use PARAMO_COPY"
/* Checks that keys ascend, and that a dense table has them. */
MUST_USE paramo_err apply_check_order(const struct shard_table *t, const uint64_t *keys, size_t n);
MUST_USE paramo_err apply_check_keys(const struct shard *s, const struct shard_table *t, const uint64_t *keys,
                                     size_t n);

/* Applies a checked request to the table: all of it or, on an error, nothing. known: the rows of its keys, or
 * NULL. */
MUST_USE paramo_err apply_change(struct shard_table *t, const struct wire_head *head,
                                 const struct van_seg *seg, struct rowcache_list *known);

/* As apply_check_keys and lengths, but keys of any owner pass. */
MUST_USE paramo_err apply_check_rows(const struct shard_table *t, const struct wire_head *head,
                                     const struct van_seg *seg, unsigned nseg);

#endif
