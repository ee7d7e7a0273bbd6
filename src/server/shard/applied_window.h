/*
 * Applied numbers of one sender, per partition (Li et al., OSDI'14, section 4.3: vector clocks per range). A
 * shard has one record of applied numbers per sender for all its partitions (dedup.h). Beside it, a note
 * names the partitions of each number that is applied on some of them only. This happens when partitions come
 * from a shard with another record, or when the slices of a chunk reach a follower through different chains.
 *
 *     record  floor | 1 1 0 1 0 0 ...      1: applied on all partitions that are here
 *     notes           . . | . | .          beside a 0: applied on these partitions only
 *
 * A note is for one number of the sender's window, so a sender has fewer than DATA_WINDOW, however many
 * partitions arrive. A note ends in three cases: the floor passes its number; the number is applied
 * everywhere; or all partitions that are here agree. A slice has all keys of its chunk that the shard owns,
 * so partitions that it does not touch have none of its keys.
 *
 * A floor holds for a sender everywhere: every record may be raised to it.
 *
 * Pure; one owner. It must never know partitions' rows or senders' names. Tests:
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

/* Raises the floor to that of a message. */
void applied_window_raise_floor(struct applied_window *applied_window, uint64_t floor);
/* DONE only if it is applied on all partitions, which is what a request without keys needs. */
enum dedup_state applied_window_state(const struct applied_window *applied_window, uint64_t number);
/* The note of a number; NULL: it is applied on all partitions, or on none. */
const struct applied_note *applied_window_note(const struct applied_window *applied_window, uint64_t number);
/* No number at or above the floor is applied. */
bool applied_window_is_empty(const struct applied_window *applied_window);
/* The number is now applied on all partitions: the caller has applied the keys on those where it was new. */
void applied_window_record(struct applied_window *applied_window, uint64_t number);

/* NULL: no memory. */
struct applied_note *applied_note_make(uint64_t number, const uint64_t partitions[PARTITION_WORDS]);
/* The number is applied on the note's partitions, too. The record may be new. Takes over the note; needs no
 * memory. */
void applied_window_attach(struct applied_window *applied_window, struct applied_note *applied_note);
MUST_USE paramo_err applied_window_note_number(struct applied_window *applied_window, uint64_t number,
                                               const uint64_t partitions[PARTITION_WORDS]);

/* Imports the previous shard's record of these partitions (NULL: no number is applied). held: the partitions
 * that are here; may include these. Importing twice does no harm. MEMORY: only the floor has changed. */
MUST_USE paramo_err applied_window_import(struct applied_window *applied_window,
                                          const uint64_t held[PARTITION_WORDS],
                                          const uint64_t partitions[PARTITION_WORDS],
                                          const struct applied_window *theirs);
/* Adds the numbers of `theirs` on these partitions. */
MUST_USE paramo_err applied_window_merge(struct applied_window *applied_window,
                                         const uint64_t held[PARTITION_WORDS],
                                         const uint64_t partitions[PARTITION_WORDS],
                                         const struct dedup *theirs);
/* Forgets all partitions but these. */
void applied_window_retain(struct applied_window *applied_window, const uint64_t held[PARTITION_WORDS]);

/* The numbers that are applied on all of these partitions: the record that leaves with them, or goes into a
 * checkpoint. Notes for which applied_note_splits is true (applied on some of them) go with it. */
struct dedup applied_window_extract(const struct applied_window *applied_window,
                                    const uint64_t partitions[PARTITION_WORDS]);
bool applied_note_splits(const struct applied_note *applied_note, const uint64_t partitions[PARTITION_WORDS]);

/* The number of notes; adds their memory to *bytes. */
size_t applied_window_count_notes(const struct applied_window *applied_window, size_t *bytes);

#endif
