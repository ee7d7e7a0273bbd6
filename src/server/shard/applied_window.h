/*
 * Vector clocks per range (Li et al., OSDI'14, section 4.3), as few as can be. A shard has one record of
 * applied numbers per sender for all its partitions (dedup.h), and beside it a part for each number that is
 * done on some of the partitions only: because partitions have come from a shard that says otherwise than
 * this one, or because the slices of a chunk reach a follower by different chains.
 *
 *     own     floor | 1 1 0 1 0 0 ...      1: done on all partitions that are here
 *     parts           . . | . | .          beside a 0: done on these partitions, and no others
 *
 * What bounds it: a part is for one number of the sender's window, so a sender has fewer than DATA_WINDOW,
 * however many arrivals there were and however long it says nothing. A part ends when the floor passes its
 * number, when the number is done everywhere (a sender's chunk comes to a shard as one slice with all its
 * keys that are there, so partitions that the slice does not touch hold none of its keys), or when all
 * partitions that are here say the same.
 *
 * A floor is true of a sender everywhere: whoever knows it may raise it in every record.
 *
 * Pure; one owner; it never knows partitions' rows or senders' names. Tests:
 * test/server/test_applied_window.c, test/worker/test_chain_sim.c.
 */
#ifndef SERVER_SHARD_APPLIED_WINDOW_H
#define SERVER_SHARD_APPLIED_WINDOW_H

#include "base/err.h"
#include "ring/partition_set.h"
#include "server/shard/dedup.h"

struct applied_note {
    struct applied_note *next; /* of a higher number */
    uint64_t number;
    uint64_t partitions[PARTITION_WORDS];
};

struct applied_window {
    struct dedup own;
    struct applied_note *applied_notes; /* none of a number that own has */
    uint64_t arrival;                   /* follow.c: the last in which it was given something */
};

void applied_window_init(struct applied_window *applied_window);
void applied_window_fini(struct applied_window *applied_window);

/* As a message brought it. */
void applied_window_raise_floor(struct applied_window *applied_window, uint64_t floor);
/* DONE only if it is so on all partitions: what a request without keys may go by. */
enum dedup_state applied_window_state(const struct applied_window *applied_window, uint64_t number);
/* Where a number is done that is done on some partitions only; NULL: it is done on all, or on none. */
const struct applied_note *applied_window_note(const struct applied_window *applied_window, uint64_t number);
/* Nothing at or above the floor is done: the record says no more than its floor. */
bool applied_window_is_empty(const struct applied_window *applied_window);
/* The number is done on all partitions, the keys on those where it was new having been applied just now. */
void applied_window_record(struct applied_window *applied_window, uint64_t number);

/* NULL: no memory. */
struct applied_note *applied_note_make(uint64_t number, const uint64_t partitions[PARTITION_WORDS]);
/* The number is done on its partitions, too, whatever is known of the sender here: its record may have been
 * made just now. Takes it; needs no memory. */
void applied_window_attach(struct applied_window *applied_window, struct applied_note *applied_note);
MUST_USE paramo_err applied_window_note_number(struct applied_window *applied_window, uint64_t number,
                                               const uint64_t partitions[PARTITION_WORDS]);

/* Where these partitions were, this was done on them (NULL: nothing). held: the partitions that are here;
 * these may be among them. Twice does no harm. MEMORY: nothing has changed but the floor. */
MUST_USE paramo_err applied_window_import(struct applied_window *applied_window,
                                          const uint64_t held[PARTITION_WORDS],
                                          const uint64_t partitions[PARTITION_WORDS],
                                          const struct applied_window *theirs);
/* What is done there is done on these partitions, beside what was done here. */
MUST_USE paramo_err applied_window_merge(struct applied_window *applied_window,
                                         const uint64_t held[PARTITION_WORDS],
                                         const uint64_t partitions[PARTITION_WORDS],
                                         const struct dedup *theirs);
/* Only these partitions are left. */
void applied_window_retain(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS]);

/* The record that goes with these partitions when they leave, or into a checkpoint: what is done on all of
 * them. With it go the parts of which applied_note_splits them: done on some and not on others. */
struct dedup applied_window_extract(const struct applied_window *applied_window,
                                    const uint64_t partitions[PARTITION_WORDS]);
bool applied_note_splits(const struct applied_note *applied_note, const uint64_t partitions[PARTITION_WORDS]);

/* How many parts it has; *bytes grows by their memory. */
size_t applied_window_count_notes(const struct applied_window *applied_window, size_t *bytes);

#endif
