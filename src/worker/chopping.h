/*
 * Chopping: the keys of one owner into chunks of about chunk_bytes, which start at once. It must never know the view,
 * only which shard takes the chunks. On the lane. Tests: test/worker/test_client.c, test/worker/test_slice_turns.c.
 */
#ifndef WORKER_CHOPPING_H
#define WORKER_CHOPPING_H

#include "worker/client_impl.h"

/* The table's rows are handled by the program's own code, which gets its keys in one chunk. */
static inline bool request_is_user(const struct request *r)
{
    return r->table->options.kind == PARAMO_TABLE_USER;
}

/* One more chunk starts, to this shard. The request has ended on return if there was no memory. */
void chunk_add_start(struct client *c, struct request *r, const struct span *s, int owner, int target);
/* The keys [first, first + count) of a slice whose values begin at given offsets. */
struct span span_sub(const struct span *s, size_t first, uint32_t count, uint64_t src_at, uint64_t src_bytes);
/* Keys of one owner, in chunks of about chunk_bytes; for a handler in one. The request may have ended on return. */
void chop(struct client *c, struct request *r, const struct span *s, int owner);

#endif
