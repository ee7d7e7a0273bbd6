/*
 * Which numbered chunks of one sender have been applied: everything below the floor, and one bit for each of
 * the DATA_WINDOW numbers from it on: the paper's vector clock (Li et al., OSDI'14, section 4.3) with the
 * window that makes it right when messages reorder. Pure. Tests: test/server/test_dedup.c.
 *
 *     ... done, forgotten ... | floor  1 0 1 1 0 0 ...  | floor + DATA_WINDOW: the sender may not be there
 * yet
 */
#ifndef SERVER_SHARD_DEDUP_H
#define SERVER_SHARD_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/data.h"

struct dedup {
    uint64_t floor;
    uint64_t bits[DATA_WINDOW / 64]; /* number n at bit n % DATA_WINDOW */
};

enum dedup_state {
    DEDUP_NEW,   /* not applied */
    DEDUP_DONE,  /* applied, and the sender may still ask */
    DEDUP_OLD,   /* below the floor: the sender has its answer, or has given the request up */
    DEDUP_BEYOND /* the sender breaks the protocol */
};

void dedup_init(struct dedup *d);
/* The sender's floor as a message brought it; a lower one than known is an older message's. */
void dedup_raise(struct dedup *d, uint64_t floor);
enum dedup_state dedup_check(const struct dedup *d, uint64_t number);
/* number is NEW. */
void dedup_record(struct dedup *d, uint64_t number);
/* number is DONE, and is NEW again. */
void dedup_drop(struct dedup *d, uint64_t number);

#endif
