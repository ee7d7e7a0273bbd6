/*
 * Grouping: the keys and values of a span gathered by their owners, into one buffer. Also the lookup of a key's
 * owner. It must never know what a request is for, nor send anything. On the lane. Tests: test/worker/test_client.c,
 * test/worker/test_exactly_once_sim.c.
 */
#ifndef WORKER_GROUPING_H
#define WORKER_GROUPING_H

#include "worker/client_impl.h"

/* The keys of one owner. */
struct group {
    uint32_t owner, count;
    uint64_t src_bytes, dst_bytes;
    struct span span; /* in the buffer */
};

/* The groups are in scratch memory (grouping_done). */
struct gathered {
    struct group *groups;
    size_t count;
    uint8_t *base;
    size_t bytes;
    void *scratch;
    size_t scratch_bytes;
};

/* The shard that owns the key in this view; not below view->shards_count: none does. */
unsigned owner_of(const struct view *view, const struct request *r, uint64_t key);
/* Splits s, whose first key is the key `from` by the groups' index, by owner into groups, in one buffer of the
 * client's pool after head_each bytes for each group. The buffer is the caller's. AGAIN: a key has no owner in this
 * view. MEMORY. */
MUST_USE paramo_err grouping_gather(struct client *c, const struct request *r, const struct span *s,
                                    size_t from, size_t head_each, struct gathered *out);
/* Gives the groups back, not the buffer. */
void grouping_done(struct client *c, const struct gathered *g);

#endif
