/*
 * The life of a chunk without its slices: its memory, its wait for a view, its end. It never knows why a chunk fails.
 * Tests: test/worker/test_client.c, test/worker/test_client_faults.c.
 */
#ifndef WORKER_CHUNK_H
#define WORKER_CHUNK_H

#include "worker/client_impl.h"

enum { CHUNK_AGAIN_MS = 100 }; /* arbitrary */

struct client_waiters {
    struct chunk *first, *last; /* chunks that wait for a view, or for a turn */
    /* the first of these that may be sliced by the present view; NULL: none is left */
    struct chunk *resume_at;
    struct chunk *free;
    size_t free_count;
    struct lane_timer again; /* slice_wait_again */
    struct client *client;
};

/* The first chunk that waits; NULL: none does. */
static inline struct chunk *chunk_first_waiter(const struct client *c)
{
    return c->waiters->first;
}

/* The first waiting chunk that may be sliced by the present view; NULL: none is left. */
static inline struct chunk *chunk_resume_at(const struct client *c)
{
    return c->waiters->resume_at;
}

/* Chunks from this one on may be sliced by the present view. */
void chunk_resume_from(struct client *c, struct chunk *chunk);
/* Frees the cached chunks. */
void chunk_fini(struct client *c);

struct chunk *client_chunk_get(struct client *c);
/* The next `count` calls of client_chunk_get need no memory. MEMORY. */
MUST_USE paramo_err client_chunks_reserve(struct client *c, size_t count);
void client_chunk_put(struct client *c, struct chunk *chunk);
/* The chunk waits for a view of at least this number. */
void slice_wait_view(struct client *c, struct chunk *chunk, uint64_t need);
/* The chunk waits for its turn to be sliced by the present view, before another that waits. NULL: after all. */
void slice_wait_turn(struct client *c, struct chunk *chunk, struct chunk *before);
/* The chunk waits for the next view, or for CHUNK_AGAIN_MS. */
void slice_wait_again(struct client *c, struct chunk *chunk);
void slice_unwait_view(struct client *c, struct chunk *chunk);
/* All answers of the chunk have come. */
void chunk_finished(struct client *c, struct chunk *chunk);
/* The chunk has failed. A request to a table ends with that; a carrier does not: the request that it carries ends,
 * and the chunk is tried again. One of messages ends when all its nodes have answered or failed, with the first
 * failure; its chunk has no slices in any list on return. */
void chunk_failed(struct chunk *chunk, paramo_err status, const char *text);
/* Takes the chunk's memory back from the van and its links. */
void chunk_withdraw(struct chunk *chunk);
/* Drops all chunks of the request, with their numbers. */
void request_drop_chunks(struct client *c, struct request *r);

#endif
