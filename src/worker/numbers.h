/*
 * The numbers of chunks. Each chunk that is sent has one, which never changes. By it a server recognizes a chunk that
 * it has applied, and drops it. All numbers below the floor are over. Numbers are given only up to DATA_WINDOW from
 * the floor on.
 *
 *     floor <= given numbers < next <= floor + DATA_WINDOW
 *
 * This module never knows what a chunk asks for. Tests: test/worker/test_client.c, test/worker/test_senders.c.
 */
#ifndef WORKER_NUMBERS_H
#define WORKER_NUMBERS_H

#include "worker/client_impl.h"

struct client_numbers {
    uint64_t next, floor;
    struct chunk *chunk[DATA_WINDOW]; /* by number; NULL: over */
    bool full;                        /* a link waits for the floor */
};

/* first: the first number to be given. */
void numbers_init(struct client *c, uint64_t first);
/* Gives the chunk its number. False: the window has no room. */
bool numbers_assign(struct client *c, struct chunk *chunk);
/* The chunk has the last number given, and nothing was sent with it: takes it back. */
void numbers_take_back(struct client *c, struct chunk *chunk);
/* The chunk is over: its number is, and the floor may rise. */
void numbers_finish(struct client *c, struct chunk *chunk);
/* Does a link wait for the floor, and has the window room again? */
bool numbers_room_again(const struct client *c);
/* Before the links are asked again which of them wait: none waits for the floor now. */
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
