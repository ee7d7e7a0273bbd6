/*
 * A move of partitions from their owner to another shard, for src/server only: giving.c is the owner's side,
 * taking.c the target's. The scheduler orders each step (wire/migration_order.h), and its views say how it
 * ended.
 *
 *     owner:   GIVE                                  PAUSE
 *       COPYING ------- all rows sent: FULL -------> PAUSING --- all have all: PAUSED ---> a view, or END
 *          |  BEGIN, ROWS ... with CHAIN of what        |  RECORDS, LAST
 *          v  is done to these partitions meanwhile           v
 *     target:  TAKE
 *       FILLING ---------------- FULL -------------- RECORDS, LAST ----------------------> a view, or END
 *
 * - One stream (forward.c), one order: rows are as they are when they are sent, and what is done to them
 *   later comes behind them. What comes before a row does no harm: the row comes whole.
 * - From FULL on an answer waits for the target as for a member of the chain.
 * - A pause makes all members and the target equal before the view changes who is before whom: what one has
 *   and another lacks would be lost, or done twice, by a change of places. Requests for these partitions
 * wait; those that only read are served, unless the target is to be the owner. The owner may give a move up
 * for as long as it has not said that it has paused (too slow, no memory); afterwards it waits for a view
 * that has the target, for END, or for a view of another scheduler, which knows of no move: never for a
 * timer.
 * - From PAUSED on the target may be in the chain without our hearing of it, so its lease counts for reads of
 *   these partitions as a next member's does. A move that is given up is over: a late PAUSE is refused by its
 * id.
 * - A target that is a member already and lacks nothing (it is to be the owner) gets no rows: only the pause
 *   is left. One that is to come nearer to the owner gets the rows of those tables that its level did not
 *   have; its records give way to the owner's, which know of all tables, when the move is committed: before,
 *   updates that they speak of may be on their way by the chain.
 *
 * One of each at a time in a shard. All on the lane. Tests: test/worker/test_migration_sim.c.
 */
#ifndef SERVER_MIGRATION_MIGRATION_H
#define SERVER_MIGRATION_MIGRATION_H

#include "server/replication/chained.h"
#include "wire/migration_order.h"

/* Arbitrary. */
enum {
    MIGRATION_WINDOW_BYTES = 8 << 20, /* bytes of rows that are not acknowledged */
    MIGRATION_BLOCK_BYTES = 1 << 20,
    MIGRATION_TURN_ROWS = 8192, /* looked at, before requests have their turn */
    MIGRATION_TURN_MS = 1,
    MIGRATION_PAUSE_MS = 1000, /* for all to have all; else the move is given up */
    MIGRATION_STALL_MS = 5000  /* without news from the other side */
};

/* ---- giving.c ---- */
enum migration_source_state {
    MIGRATION_SOURCE_COPYING,
    MIGRATION_SOURCE_FULL,
    MIGRATION_SOURCE_PAUSING,
    MIGRATION_SOURCE_PAUSED
};
/* For who looks on (the simulator), with the move's id. */
enum migration_source_state migration_source_state(const struct migration_source *g, uint64_t *id);
/* The target's node. */
uint32_t migration_source_target_node(const struct migration_source *g);
/* Does the target get this table's rows? */
bool migration_source_sends_table(const struct migration_source *g, const struct shard_table *t);
/* True: a change sent to it is answered only when it is acknowledged. */
bool migration_source_needs_ack(const struct migration_source *g);
void migration_source_rows_acked(struct migration_source *g, size_t bytes);
/* Has a pause come to its end? */
void migration_source_check_pause(struct chain *c);
/* Streams are others now: what a pause waits for is in these. */
void migration_source_mark_streams(struct chain *c);
/* Must this request wait, and what its peer sends behind it? */
bool migration_source_defers(struct shard *s, const struct wire_head *head, const struct van_seg *seg);
MUST_USE paramo_err migration_source_begin(struct chain *c, const struct migration_order *m);
/* done comes once if this is OK. */
MUST_USE paramo_err migration_source_pause(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* It is over, whoever has the partitions now. chain_reopen must follow: requests may have waited. NULL give:
 * nothing. */
void migration_source_end(struct chain *c);

/* ---- taking.c ---- */
enum migration_target_state { MIGRATION_TARGET_FILLING, MIGRATION_TARGET_FULL, MIGRATION_TARGET_LAST };
/* As migration_source_state. */
enum migration_target_state migration_target_state(const struct migration_target *k, uint64_t *id);
bool migration_target_has(const struct chain *c, unsigned partition);
/* All of them; NULL: none. */
const uint64_t *migration_target_partitions(const struct chain *c);
/* The same, and no chain has had us for it. */
bool migration_target_is_new(const struct chain *c, unsigned partition);
/* Do this table's rows come, in the move that there is? */
bool migration_target_gets_table(const struct chain *c, const struct shard_table *t);
bool migration_target_is_source(const struct chain_source *source);
/* A sender has said goodbye to the owner. */
void migration_target_forget_sender(struct chain *c, const struct chain_message *m);
void migration_target_source_closed(struct chain *c, const struct chain_source *source);
/* More than a frame of requests may have. */
size_t migration_target_frame_bytes(const struct shard *s);
MUST_USE paramo_err migration_target_frame(struct chain_source *source, const struct wire_head *head,
                                           const struct van_seg *seg, unsigned nseg);
MUST_USE paramo_err migration_target_begin(struct chain *c, const struct migration_order *m,
                                           shard_migration_done done, void *arg);
/* All has come, and been acknowledged: the owner may have paused, and the scheduler may commit. */
bool migration_target_complete(const struct chain *c);
/* There is a new view. */
void migration_target_view_changed(struct chain *c);
/* By the view: a chain has us now, or never will (nor if it is over). Else it goes on. */
void migration_target_end(struct chain *c, bool over);
void migration_target_close(struct chain *c);
/* END of this move. */
void migration_target_end_ordered(struct chain *c, const struct migration_order *m);

/* ---- both (giving.c) ---- */
/* The view may say how a move ended. */
void migration_view_changed(struct chain *c);
void migration_close(struct chain *c);
/* Rows are about to come from elsewhere: what moves is given up. AGAIN: it has been paused for, and may be
 * committed. */
MUST_USE paramo_err migration_suspend(struct shard *s);

#endif
