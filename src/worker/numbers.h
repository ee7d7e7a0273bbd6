/*
 * The numbers of chunks. Each chunk that is sent has one, which never changes. By it a server recognizes a chunk that
 * it has applied, and drops it. All numbers below the floor are complete. Only DATA_WINDOW numbers are assigned from
 * the floor on.
 *
 *     floor <= assigned numbers < next <= floor + DATA_WINDOW
 *
 * This module never knows what a chunk asks for. Tests: test/worker/test_client.c, test/worker/test_senders.c.
 */
#ifndef WORKER_NUMBERS_H
#define WORKER_NUMBERS_H

#include "worker/client_impl.h"

struct client_numbers {
    uint64_t next, floor;
    struct chunk *chunk[DATA_WINDOW]; /* by number; NULL: complete */
    bool full;                        /* a link waits for the floor */
};

/* first: the first number to assign. */
void numbers_init(struct client *c, uint64_t first);
/* Assigns the next number to the chunk. False: the window has no room. */
bool numbers_assign(struct client *c, struct chunk *chunk);
/* The chunk has the last number, and nothing was sent with it: takes the number back. */
void numbers_take_back(struct client *c, struct chunk *chunk);
/* The chunk is complete, and its number with it: the floor may rise. */
void numbers_finish(struct client *c, struct chunk *chunk);
/* Does a link wait for the floor, and has the window room again? */
bool numbers_room_again(const struct client *c);
/* No link waits for the floor now. Called before the links are asked again which of them wait. */
void numbers_wait_over(struct client *c);

static inline uint64_t numbers_floor(const struct client *c)
{
    return c->numbers->floor;
}

static inline uint64_t numbers_next(const struct client *c)
{
    return c->numbers->next;
}

/* The chunk of a number within the window, or another; NULL: there is none. */
static inline struct chunk *numbers_chunk(const struct client *c, uint64_t number)
{
    return c->numbers->chunk[number % DATA_WINDOW];
}

#endif
