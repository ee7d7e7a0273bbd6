/*
 * Vector clocks per range (Li et al., OSDI'14, section 4.3), as few as can be. A shard has one record of
 * applied numbers per sender (dedup.h) for all its arcs. Arcs that arrive from another shard bring that
 * shard's records: where one says otherwise than ours, it is kept apart and decides for those arcs, until the
 * sender's floor has passed the last number in which the two differ. Then it is dropped, and when no sender
 * has one left, the arcs are as all others.
 *
 *     struct clocks   arc -> set; set 0: the shard's own
 *     struct clock    of one sender: its own record, and one for each set in which it differs
 *
 * Why that ends: a number that is new is recorded everywhere. A sender's chunk comes to a shard as one piece
 * with all its keys that are there, so arcs that the piece does not touch hold none of its keys. So nothing
 * new ever differs, and what differs passes below the floor.
 *
 * Pure; one owner; it never knows arcs' rows or senders' names. Tests: test/server/test_clocks.c.
 */
#ifndef SERVER_CLOCKS_H
#define SERVER_CLOCKS_H

#include "base/err.h"
#include "ring/ring.h"
#include "server/dedup.h"

enum { CLOCK_SETS = 64 /* arrivals that are not one with the rest yet; more wait. Arbitrary */ };

struct clocks {
    uint8_t set_of[RING_ARCS];
    uint16_t arcs[CLOCK_SETS];    /* in the set; 0: it is free (or no longer needed) */
    uint32_t senders[CLOCK_SETS]; /* that have a record apart */
};

struct clock_apart;
struct clock {
    struct dedup own;
    struct clock_apart *apart; /* a list */
};

/* Zeroed: every arc is in set 0. */
void clocks_init(struct clocks *c);
void clock_init(struct clock *clock);
void clock_fini(struct clocks *c, struct clock *clock);

/* Arcs first .. first+count-1 have arrived: they become a set of their own. Then clock_arrive is called for
 * every sender: each that this shard knows, and each of the records that came (a new sender here begins with
 * clock_init). FULL: there are too many sets; try again when floors have risen. */
MUST_USE paramo_err clocks_arrive(struct clocks *c, unsigned first, unsigned count, unsigned *set);
/* More arcs of the same arrival. */
void clocks_add(struct clocks *c, unsigned set, unsigned arc);
/* theirs: the record that came with the arcs; NULL: the other shard had none of this sender. */
MUST_USE paramo_err clock_arrive(struct clocks *c, struct clock *clock, unsigned set,
                                 const struct dedup *theirs);
/* After the last clock_arrive of a set: if nobody differs it is at once one with the rest. */
void clocks_arrived(struct clocks *c, unsigned set);
/* More arcs of the same arrival, after clocks_arrived. */
void clocks_join(struct clocks *c, unsigned first, unsigned count, unsigned set);
/* These arcs have left the shard. */
void clocks_depart(struct clocks *c, unsigned first, unsigned count);

/* Sets that decide for arcs beside the own one. */
unsigned clocks_sets(const struct clocks *c);
/* Records that the sender has apart; *bytes grows by their memory. */
size_t clock_count(const struct clock *clock, size_t *bytes);

/* As a message brought it. Records that have become equal are dropped. */
void clock_raise(struct clocks *c, struct clock *clock, uint64_t floor);
/* What this sender's number is to the arcs of a set. */
enum dedup_state clock_look(const struct clock *clock, unsigned set, uint64_t number);
/* DONE only if it is so on all arcs: what a request without keys may go by. */
enum dedup_state clock_look_all(const struct clock *clock, uint64_t number);
/* The number is done in all arcs, the keys of sets in which it was new having been applied just now. */
void clock_record(struct clock *clock, uint64_t number);
/* The record that goes with arcs of this set when they leave, or into a checkpoint. */
const struct dedup *clock_of(const struct clock *clock, unsigned set);

#endif
