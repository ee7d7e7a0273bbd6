/*
 * Removal of many rows in steps of the lane: CLEAR, and partitions that leave or come back. The rows are gone from
 * clearing_begin on: recorded, forwarded, never read again. Removing them takes steps. Until the last step,
 * everything that wants rows of these partitions waits: requests of clients, changes from the member before (which
 * sends them again), rows of a migration, a load. Other partitions, beats and leases continue.
 *
 *     few rows -----------------------------------------> removed at once
 *     a whole table, and no snapshot needs its rows ----> its store is taken away, and freed in steps
 *     new rows of a large dense table ------------------> added to t->clearing without values; the sweep fills them in
 *     other rows ---------------------------------------> their partitions are added to t->clearing; a sweep
 *                                                         removes the rows; it restarts for new partitions
 *
 * Nothing of this is replicated or migrated. Each member removes the rows of its own copy, and no removed row
 * leaves it. A checkpoint that begins during a sweep has none of these rows.
 *
 * It must never know why the rows go. Tests: test/worker/test_clearing.c.
 */
#ifndef SERVER_SHARD_CLEARING_H
#define SERVER_SHARD_CLEARING_H

#include "server/shard/shard_impl.h"

struct shard_clearing {
    struct shard *shard;
    void (*over)(struct shard *s); /* a removal has ended: requests that waited for it are handled */
    struct lane_timer timer;       /* the next step */
    unsigned tables;               /* of which rows are being removed */
    bool ended;                    /* since the last turn */
};

void clearing_init(struct shard *s, void (*over)(struct shard *s));
void clearing_close(struct shard *s);

/* All rows of these partitions (NULL: of the table, which has no others) are gone from now on; dense rows
 * have their initial values again. Needs no memory. */
void clearing_begin(struct shard *s, struct shard_table *t, const uint64_t *partitions);
/* Like clearing_begin(), for one of many tables in one step: *room is what the step may still remove at once
 * (clearing_room at its beginning). A table for which it is too little loses its rows in later steps. */
void clearing_begin_some(struct shard *s, struct shard_table *t, const uint64_t *partitions, size_t *room);
size_t clearing_room(const struct shard *s);
/* DENSE: may this many new rows get their initial values at once? Then *room shrinks. If not: they are made without,
 * and clearing_fill gives them their values in steps. */
bool clearing_fills_at_once(const struct shard *s, const struct shard_table *t, uint64_t rows, size_t *room);
void clearing_fill(struct shard *s, struct shard_table *t, const uint64_t *partitions);
/* Are there removed rows on any of these partitions that still take memory? Then nothing may read or add rows
 * there. */
bool clearing_touches(const struct shard_table *t, const uint64_t *partitions);
/* Must the request wait for that? */
bool clearing_holds(struct shard *s, const struct wire_head *h, const struct van_seg *seg);
/* Rows were deleted: their memory may be freed. */
void clearing_update(struct shard *s, struct shard_table *t);

#endif
