/*
 * Checks and changes of the rows of a built-in table, and the rows that are remembered for lists of keys. It never
 * knows of connections and answers. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_APPLY_ROWS_H
#define SERVER_SHARD_APPLY_ROWS_H

#include "server/shard/shard_impl.h"

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
/* DATA_LOST: the request touches rows of the table that a dead server had. keys: of the request, if it has any. */
MUST_USE paramo_err apply_check_lost(const struct shard *s, const struct shard_table *t,
                                     const struct wire_head *head, const uint64_t *keys);
/* The remembered rows of a request's keys; NULL: there are none. */
struct rowcache_list *apply_rows_known(struct shard_table *t, const struct wire_head *head,
                                       const uint64_t *keys);
/* Reads whole rows of a fixed length. known: the result of apply_rows_known. part: the keys in a keyset, or NULL. */
MUST_USE paramo_err apply_pull_rows(struct shard_table *t, const uint64_t *keys, size_t n,
                                    const struct rowcache_list *known, const struct keyset_part *part,
                                    void *vals, bool create);

#endif
