/*
 * Pushes to an aggregated table that wait until those of the other workers have come, so that all of a clock are one
 * change to the chain (docs/CONSISTENCY.md, section 5). A push that waits has changed nothing, as if it was still in
 * its connection. What waits is closed, by one change or by one for each push, when
 *
 *     - the clock has as many pushes here as the one before had; after a clock without pushes here, as many senders
 *       have pushed as workers count;
 *     - COLLECTING_MS have passed since the first push, or COMBINED_PUSHES_MAX are reached;
 *     - with the next push the shard would have more than COLLECTING_BYTES, or more than COLLECTIONS_MAX collections;
 *     - a request comes that must find the pushes done: collecting_before.
 *
 * It must never know how a change is made of several pushes (replication/combining.h), nor how a
 * collection is closed: collecting_turn.h does. Tests:
 * test/worker/test_combined.c, the simulator.
 */
#ifndef SERVER_SHARD_COLLECTING_H
#define SERVER_SHARD_COLLECTING_H

#include "server/replication/combining.h"
#include "server/shard/kept.h"

enum {
    /* Arbitrary: workers of one job differ by less, and only a clock that has fewer pushes than the one before takes so
     * long. */
    COLLECTING_MS = 50,
    /* Of a shard, because one request may close all collections: then a step takes about as long as for one chunk. */
    COLLECTING_BYTES = 512 << 10,
    COLLECTIONS_MAX = 32
};

/* Of one table and clock. */
struct collection {
    struct collection *next;
    uint32_t table;
    uint64_t clock, since;
    struct queue pushes; /* struct kept */
    size_t count, bytes;
};

/* Of each table that had a collection: how many pushes were collected in its latest clock, and in the one before
 * that. */
struct collecting_past {
    struct collecting_past *next;
    uint32_t table;
    uint64_t clock;
    size_t pushes, before;
};

struct shard_collecting {
    struct shard *shard;
    struct collection *first; /* the newest */
    size_t count, bytes;      /* of all collections */
    struct collecting_past *past;
    void (*close)(struct shard *s, struct collection *x); /* handles its pushes, and frees them */
    bool closing; /* a push that is handled now is not collected again */
    struct lane_timer timer;
};

/* close: collecting_turn.h. */
void collecting_init(struct shard *s, void (*close)(struct shard *s, struct collection *x));
/* The shard closes: no connection is left. */
void collecting_close(struct shard *s);
/* A new request, checked as slice.c does: collects it, if it is a push that can be. hold: as kept_defer. */
bool collecting_takes(struct peer *peer, struct shard_table *t, const struct wire_head *head,
                      const struct van_seg *seg, unsigned nseg, struct van_hold **hold);
/* Closes what the request must find done. */
void collecting_before(struct shard *s, const struct wire_head *head);
/* Another view comes: what was collected waits for it. */
void collecting_give_back(struct shard *s);
/* The connection is over. */
void collecting_drop(struct shard *s, const struct peer *peer);
/* Does the sender's push of this number wait here? */
bool collecting_has(const struct shard *s, const struct sender *sender, uint64_t number);

#endif
