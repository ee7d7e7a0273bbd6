/*
 * A move of arcs from their owner to another shard, for src/server only: giving.c is the owner's side,
 * taking.c the target's. The scheduler orders each step (wire/move_order.h), and its views say how it ended.
 *
 *     owner:   GIVE                                  PAUSE
 *       COPYING ------- all rows sent: FULL -------> PAUSING --- all have all: PAUSED ---> a view, or END
 *          |  BEGIN, ROWS ... with CHAIN of what        |  RECORDS, LAST
 *          v  is done to these arcs meanwhile           v
 *     target:  TAKE
 *       FILLING ---------------- FULL -------------- RECORDS, LAST ----------------------> a view, or END
 *
 * - One stream (forward.c), one order: rows are as they are when they are sent, and what is done to them
 *   later comes behind them. What comes before a row does no harm: the row comes whole.
 * - From FULL on an answer waits for the target as for a member of the chain.
 * - A pause makes all members and the target equal before the view changes who is before whom: what one has
 *   and another lacks would be lost, or done twice, by a change of places. Requests for these arcs wait;
 * those that only read are served, unless the target is to be the owner. The owner may give a move up for as
 * long as it has not said that it has paused (too slow, no memory); afterwards it waits for a view that has
 * the target, for END, or for a view of another scheduler, which knows of no move: never for a timer.
 * - From PAUSED on the target may be in the chain without our hearing of it, so its lease counts for reads of
 *   these arcs as a next member's does. A move that is given up is over: a late PAUSE is refused by its id.
 * - A target that is a member already and lacks nothing (it is to be the owner) gets no rows: only the pause
 *   is left. One that is to come nearer to the owner gets the rows of those tables that its level did not
 *   have; its records give way to the owner's, which know of all tables, when the move is committed: before,
 *   updates that they speak of may be on their way by the chain.
 *
 * One of each at a time in a shard. All on the lane. Tests: test/worker/test_move_sim.c.
 */
#ifndef SERVER_MOVING_H
#define SERVER_MOVING_H

#include "server/chained.h"
#include "wire/move_order.h"

/* Arbitrary. */
enum {
    GIVE_WINDOW = 8 << 20, /* bytes of rows that are not acknowledged */
    GIVE_BLOCK_BYTES = 1 << 20,
    GIVE_TURN_ROWS = 8192, /* looked at, before requests have their turn */
    GIVE_TURN_MS = 1,
    GIVE_PAUSE_MS = 1000, /* for all to have all; else the move is given up */
    MOVE_STALL_MS = 5000  /* without news from the other side */
};

/* ---- giving.c ---- */
enum give_state { GIVE_COPYING, GIVE_FULL, GIVE_PAUSING, GIVE_PAUSED };
/* For who looks on (the simulator), with the move's id. */
enum give_state giving_state(const struct give *g, uint64_t *id);
/* The target's node. */
uint32_t giving_target(const struct give *g);
/* Does the target get this table's rows? */
bool giving_has(const struct give *g, const struct shard_table *t);
/* True: a change sent to it is answered only when it is acknowledged. */
bool giving_waits(const struct give *g);
void giving_rows_acked(struct give *g, size_t bytes);
/* Has a pause come to its end? */
void giving_check(struct chain *c);
/* Streams are others now: what a pause waits for is in these. */
void giving_mark(struct chain *c);
/* Must this request wait, and what its peer sends behind it? */
bool giving_holds(struct shard *s, const struct wire_head *head, const struct van_seg *seg);
MUST_USE paramo_err giving_begin(struct chain *c, const struct move_order *m);
/* done comes once if this is OK. */
MUST_USE paramo_err giving_pause(struct chain *c, const struct move_order *m, shard_moved done, void *arg);
/* It is over, whoever has the arcs now. chain_reopen must follow: requests may have waited. NULL give:
 * nothing. */
void giving_end(struct chain *c);

/* ---- taking.c ---- */
enum take_state { TAKE_FILLING, TAKE_FULL, TAKE_LAST };
/* As giving_state. */
enum take_state taking_state(const struct take *k, uint64_t *id);
bool taking_has(const struct chain *c, unsigned arc);
/* All of them; NULL: none. */
const uint64_t *taking_arcs(const struct chain *c);
/* The same, and no chain has had us for it. */
bool taking_new(const struct chain *c, unsigned arc);
/* Do this table's rows come, in the move that there is? */
bool taking_gets(const struct chain *c, const struct shard_table *t);
bool taking_from(const struct chain_source *source);
/* A sender has said goodbye to the owner. */
void taking_forget(struct chain *c, const struct chain_message *m);
void taking_source_gone(struct chain *c, const struct chain_source *source);
/* More than a frame of requests may have. */
size_t taking_frame_bytes(const struct shard *s);
MUST_USE paramo_err taking_frame(struct chain_source *source, const struct wire_head *head,
                                 const struct van_seg *seg, unsigned nseg);
MUST_USE paramo_err taking_begin(struct chain *c, const struct move_order *m, shard_moved done, void *arg);
/* All has come, and been acknowledged: the owner may have paused, and the scheduler may commit. */
bool taking_whole(const struct chain *c);
/* There is a new view. */
void taking_view(struct chain *c);
/* By the view: a chain has us now, or never will (nor if it is over). Else it goes on. */
void taking_end(struct chain *c, bool over);
void taking_close(struct chain *c);
/* END of this move. */
void taking_ordered(struct chain *c, const struct move_order *m);

/* ---- both (giving.c) ---- */
/* The view may say how a move ended. */
void moving_view(struct chain *c);
void moving_close(struct chain *c);
/* Rows are about to come from elsewhere: what moves is given up. AGAIN: it has been paused for, and may be
 * committed. */
MUST_USE paramo_err moving_suspend(struct shard *s);

#endif
