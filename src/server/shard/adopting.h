/*
 * A view that names many new tables is not adopted in one step, because each table takes memory that the system must
 * supply: 5 to 60 us each. The shard makes the tables in turns first, and keeps the view before until it has all. For
 * other nodes this looks like a view that arrives later. Orders of the scheduler that arrive after the view wait for
 * it.
 *
 *     shard_set_view --> few new tables ------------------> adopt()
 *                   \-> make some, next turn, ..., all ---^
 *                        a newer view takes the place of the one that waits; tables that are made stay
 *
 * Without memory for a table or a timer, the view is adopted at once, and the shard does for the tables what it can.
 * This module never knows what a table holds. Tests: test/server/test_shard_tables.c.
 */
#ifndef SERVER_SHARD_ADOPTING_H
#define SERVER_SHARD_ADOPTING_H

#include "server/shard/shard_impl.h"

struct shard_adopting {
    struct shard *shard;
    void (*adopt)(struct shard *s, struct view *view);
    struct view *view; /* the newest one, which waits for its tables; NULL: none does */
    int self;          /* our index in it, or -1 */
    uint64_t runs[PARTITION_WORDS];
    uint32_t at;        /* which table is the next to be looked for */
    struct map tables;  /* by id: they have no view yet */
    struct queue tasks; /* of the lane, which came after the view */
    struct lane_timer timer;
};

/* adopt: takes the view, which is newer than the present one, if there is one. */
void adopting_init(struct shard *s, void (*adopt)(struct shard *s, struct view *view));
/* This shard's node in the view; NULL: it is not there. */
const struct view_node *adopting_node(const struct shard *s, const struct view *view);
/* -1: no partition is ours. */
int adopting_index(const struct shard *s, const struct view *view);
/* Adopts a view that is newer than the present one, now or later. */
void adopting_begin(struct shard *s, struct view *view);
/* shard_defers (shard.h). */
MUST_USE bool adopting_defers(struct shard *s, struct lane_task *task);
/* The table that was made for a view; the caller owns it. NULL: none was. */
struct shard_table *adopting_take_table(struct shard *s, uint32_t id);
void adopting_close(struct shard *s);

#endif
