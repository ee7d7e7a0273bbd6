/*
 * Is the shard loading a checkpoint? The state of loading.c, for modules that only need the answer. It must never
 * know how a load proceeds.
 * Tests: test/server/test_loading.c.
 */
#ifndef SERVER_SNAPSHOT_LOAD_STATE_H
#define SERVER_SNAPSHOT_LOAD_STATE_H

#include "server/shard/shard_impl.h"

struct loading;

struct shard_loads {
    struct loading *current; /* NULL: none is in progress */
    uint64_t begun;          /* so far */
    uint64_t spent;          /* by all turns with senders' records of loads; for tests */
    uint64_t over;           /* the number of the last GO order */
    uint64_t aborted; /* id of the last load that ended before GO; 0: none, or a later one was loaded */
    bool restoring;   /* lost rows of ours will be restored: requests wait */
};

/* Is a load, a hold or a restore in progress? */
static inline bool loading_now(const struct shard *s)
{
    return s->loads->current != NULL;
}

/* Do requests wait: for the end of a load, or because lost rows of ours will be restored? */
static inline bool loading_holds(const struct shard *s)
{
    return loading_now(s) || s->loads->restoring;
}

/* Counts what a turn with records of senders has cost. */
static inline void loading_spend(struct shard *s, unsigned cost)
{
    s->loads->spent += cost;
}

#endif
