/*
 * The records of senders (shard/applied_window.h) pass from one owner of partitions to another: a promotion, a
 * demotion, a TAKEOVER, a migration's commit. A shard may have 65,536 senders, so their records change in
 * turns of a millisecond:
 *
 *     view, TAKEOVER, order --> which partitions are whose: at once
 *                           --> a job for the records --> jobs, in this order --> turn, turn, ... --> over
 *
 * A job has copies of the partitions as they were when it was added. So jobs may be added at any time, by a
 * later view, too, and records change as if each job had been done at once.
 *
 * Entries of streams that a view has ended, 16,384 of each, go to the streams of the new next members before all
 * jobs, in such turns as well (chain_route). What a view says in the streams (TAKEOVER), and a floor, come after
 * them, and so do the marks for which a gate, a pause or a checkpoint waits. Where a later view ends a stream that
 * has taken some of these entries, they come before those that are left. So the changes of a partition stay in order.
 *
 * While a job or an entry is left the shard is held: no request is handled (chain_open), no change of a member before
 * or of a migration's source is taken (it comes again), no record leaves (PAUSE, checkpoints). Beats, leases,
 * acknowledgements of the next members, views and orders continue. No record of a sender is freed but by a job.
 * Senders may come: they have nothing recorded.
 *
 * It must never know why partitions change hands: succession.h, follow.h and migration/ do. Tests:
 * test/worker/test_records.c, the simulator.
 */
#ifndef SERVER_REPLICATION_RECORDS_H
#define SERVER_REPLICATION_RECORDS_H

#include "server/replication/chain_impl.h"

/* Of a record's notes, and of the numbers for which two records differ: they get notes, for a moment at least. */
unsigned records_cost_of_notes(const struct applied_window *w);
unsigned records_cost_of_bits(const struct dedup *a, const struct dedup *b);
/* Passes those of these partitions that `from` has, with their records, to another origin. NULL: this shard
 * itself. MEMORY: nothing has changed. */
MUST_USE paramo_err records_pass(struct chain *c, struct chain_origin *from, struct chain_origin *to,
                                 const uint64_t partitions[CHAIN_WORDS]);
/* All records forget the partitions that their owners do not have. */
void records_forget(struct chain *c);
/* The origin's records of these partitions, NULL: this shard's own, begin again: no number is applied there. */
MUST_USE paramo_err records_restart(struct chain *c, struct chain_origin *o,
                                    const uint64_t partitions[CHAIN_WORDS]);
/* Frees the origin's records of senders that the view no longer has. */
void records_of_gone(struct chain *c, struct chain_origin *o);
/* Frees the origin, which nothing else names any more, and its records. NULL: nothing. */
void records_end(struct chain *c, struct chain_origin *o);
/* Routes these entries, before those that are left. nothing: no chain has us for these partitions. gated: the shard
 * serves when the next members have acknowledged them. */
void records_route(struct chain *c, struct queue *entries, const uint64_t nothing[CHAIN_WORDS], bool gated);
/* The jobs that were just added have their first turn now. Without it the first turn comes later. */
void records_go(struct chain *c);
void records_fire(struct lane_timer *timer);
void records_close(struct chain *c);

#endif
