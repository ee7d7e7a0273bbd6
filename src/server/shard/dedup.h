/*
 * Which numbered chunks of one sender have been applied: all below the floor, and one bit for each of the
 * DATA_WINDOW numbers from the floor on. This is the paper's vector clock (Li et al., OSDI'14, section 4.3),
 * with a window so that messages may reorder.
 *
 *     ... applied, forgotten ... | floor  1 0 1 1 0 0 ... | floor + DATA_WINDOW: out of the sender's reach
 *
 * Pure. It must never know a sender's name, or partitions. Tests: test/server/test_dedup.c.
 */
#ifndef SERVER_SHARD_DEDUP_H
#define SERVER_SHARD_DEDUP_H

#include <stdbool.h>
#include <stdint.h>

#include "wire/sender_records.h" /* struct dedup */

enum dedup_state {
    DEDUP_NEW,   /* not applied */
    DEDUP_DONE,  /* applied, and the sender may still ask */
    DEDUP_OLD,   /* below the floor: the sender has its answer, or has abandoned the request */
    DEDUP_BEYOND /* the sender breaks the protocol */
};

void dedup_init(struct dedup *d);
/* Raises the floor to that of a message. A lower one is of an older message, and ignored. */
void dedup_raise(struct dedup *d, uint64_t floor);
enum dedup_state dedup_check(const struct dedup *d, uint64_t number);
/* number is NEW. */
void dedup_record(struct dedup *d, uint64_t number);
/* number is DONE, and is NEW again. */
void dedup_drop(struct dedup *d, uint64_t number);

#endif
