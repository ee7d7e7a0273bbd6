/*
 * Vector clocks per range (Li et al., OSDI'14, section 4.3), as few as can be. A shard has one record of
 * applied numbers per sender for all its arcs (dedup.h), and beside it a part for each number that is done on
 * some of the arcs only: because arcs have come from a shard that says otherwise than this one, or because
 * the pieces of a chunk reach a follower by different chains.
 *
 *     own     floor | 1 1 0 1 0 0 ...      1: done on all arcs that are here
 *     parts           . . | . | .          beside a 0: done on these arcs, and no others
 *
 * What bounds it: a part is for one number of the sender's window, so a sender has fewer than DATA_WINDOW,
 * however many arrivals there were and however long it says nothing. A part ends when the floor passes its
 * number, when the number is done everywhere (a sender's chunk comes to a shard as one piece with all its
 * keys that are there, so arcs that the piece does not touch hold none of its keys), or when all arcs that
 * are here say the same.
 *
 * A floor is true of a sender everywhere: whoever knows it may raise it in every record.
 *
 * Pure; one owner; it never knows arcs' rows or senders' names. Tests: test/server/test_clocks.c,
 * test/worker/test_chain_sim.c.
 */
#ifndef SERVER_CLOCKS_H
#define SERVER_CLOCKS_H

#include "base/err.h"
#include "ring/arcs.h"
#include "server/dedup.h"

struct part {
    struct part *next; /* of a higher number */
    uint64_t number;
    uint64_t arcs[ARCS_WORDS];
};

struct clock {
    struct dedup own;
    struct part *parts; /* none of a number that own has */
    uint64_t arrival;   /* follow.c: the last in which it was given something */
};

void clock_init(struct clock *clock);
void clock_fini(struct clock *clock);

/* As a message brought it. */
void clock_raise(struct clock *clock, uint64_t floor);
/* DONE only if it is so on all arcs: what a request without keys may go by. */
enum dedup_state clock_look(const struct clock *clock, uint64_t number);
/* Where a number is done that is done on some arcs only; NULL: it is done on all, or on none. */
const struct part *clock_part(const struct clock *clock, uint64_t number);
/* Nothing at or above the floor is done: the record says no more than its floor. */
bool clock_empty(const struct clock *clock);
/* The number is done on all arcs, the keys on those where it was new having been applied just now. */
void clock_record(struct clock *clock, uint64_t number);

/* NULL: no memory. */
struct part *part_make(uint64_t number, const uint64_t arcs[ARCS_WORDS]);
/* The number is done on its arcs, too, whatever is known of the sender here: its record may have been made
 * just now. Takes it; needs no memory. */
void clock_add(struct clock *clock, struct part *part);
MUST_USE paramo_err clock_note(struct clock *clock, uint64_t number, const uint64_t arcs[ARCS_WORDS]);

/* Where these arcs were, this was done on them (NULL: nothing). held: the arcs that are here; these may be
 * among them. Twice does no harm. MEMORY: nothing has changed but the floor. */
MUST_USE paramo_err clock_arrive(struct clock *clock, const uint64_t held[ARCS_WORDS],
                                 const uint64_t arcs[ARCS_WORDS], const struct clock *theirs);
/* What is done there is done on these arcs, beside what was done here. */
MUST_USE paramo_err clock_join(struct clock *clock, const uint64_t held[ARCS_WORDS],
                               const uint64_t arcs[ARCS_WORDS], const struct dedup *theirs);
/* Only these arcs are left. */
void clock_keep(struct clock *clock, const uint64_t held[ARCS_WORDS]);

/* The record that goes with these arcs when they leave, or into a checkpoint: what is done on all of them.
 * With it go the parts of which part_splits them: done on some and not on others. */
struct dedup clock_of(const struct clock *clock, const uint64_t arcs[ARCS_WORDS]);
bool part_splits(const struct part *part, const uint64_t arcs[ARCS_WORDS]);

/* How many parts it has; *bytes grows by their memory. */
size_t clock_count(const struct clock *clock, size_t *bytes);

#endif
