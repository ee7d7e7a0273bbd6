/*
 * The work units of a pool: dealt, leased, done, round after round; and which worker holds which.
 *
 * The units are in the order in which they were first dealt. Round 0 deals one stream after the other (stream 0:
 * units 0, 1, 2, ...) and turns to the next stream when a worker has found the end, so the order is (stream, index).
 * A unit beyond an end is VOID: it never existed. From round 1 on all units are known. The units of each owner are
 * chained, so that a worker gets its own first; a cursor then gives all others in order, and skips blocks without a
 * FREE unit.
 *
 *   FREE --dealt--> LEASED --done--> DONE     LEASED --holder gone--> FREE     any --beyond an end--> VOID
 *
 * A unit that was done in an earlier round is FREE, so no step visits all units when a round begins. Before that,
 * while all units are done, the units of each owner are chained in turns. Until the last turn the pool is in the
 * round that is finished, and no unit is dealt.
 *
 * Must never know: calls, and which of them waits for a unit (sched_pool.h); how a unit is stored
 * (sched_pool_records.h). Tests: test/cluster/test_sched_calls.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_UNITS_H
#define CLUSTER_SCHEDULER_SCHED_UNITS_H

#include "base/map.h"
#include "cluster/scheduler/sched_calls.h"
#include "wire/pool_calls.h"

struct scheduler;
struct sched_node;

enum unit_state { UNIT_FREE, UNIT_LEASED, UNIT_DONE, UNIT_VOID };

enum { NO_UNIT = -1, RECORD_UNITS_MAX = 64, RECORD_POOL_SHIFT = 20 };
enum { POOL_CHAIN_TURN = 1 << 16 }; /* units that a turn before a round visits (bench/steps.sh) */
/* A step that looks for a FREE unit looks at as many units of a chain as a turn visits, at the counters of blocks,
 * and at the units of two blocks. */
enum { BLOCK_UNITS = 1 << 14, POOL_BLOCKS = POOL_UNITS_MAX / BLOCK_UNITS };

struct unit {
    uint32_t stream;
    uint32_t index;
    int32_t owner; /* index of the owner that did it last; NO_UNIT: not done yet */
    int32_t next;  /* the owner's next work unit of this round */
    uint8_t state;
    uint8_t round; /* the lower bits of the round in which its state was set: unit_state_of */
};

/* One customer of one incarnation of a node. */
struct owner {
    uint64_t key; /* node id and customer */
    uint64_t incarnation;
    int32_t own; /* the first of its work units in this round */
    uint32_t leases;
};

struct lease {
    uint64_t token;
    uint32_t unit;
    int32_t owner;
    struct sched_node *node;
    struct lease *next, *prev;
};

struct sched_pool {
    struct sched_pool *next;
    struct scheduler *sched;
    uint32_t place; /* its number among all pools, by the order of opening */
    char name[POOL_NAME_MAX];
    uint32_t streams, rounds;
    uint32_t round;         /* == rounds: all is done, and the work units are forgotten */
    uint32_t stream, index; /* round 0: dealt next; stream == streams: all ends are known */
    struct unit *units;
    uint32_t count, capacity;
    uint32_t voids, done, free; /* numbers of units */
    uint32_t cursor;            /* no work unit before it is FREE */
    /* FREE units of each block. While chaining: those that will be FREE when the round begins, of the units chained. */
    uint16_t free_in[POOL_BLOCKS];
    bool chaining;      /* all units of the round are done, and they are chained for the next */
    uint32_t unchained; /* units before this one are not chained yet */
    /* units and counters, for the last unit that was dealt or not found; for tests */
    uint32_t looked;
    struct owner *owners;
    uint32_t owners_count, owners_capacity;
    struct map owner_of;  /* node id and customer -> index + 1 */
    struct map leases;    /* token -> lease */
    struct map lease_of;  /* unit -> the same leases */
    struct lease *leased; /* all of them */
    uint64_t tokens;
    struct sched_call_queue deferred;
    /* Waiting callers that may be served since the last change are answered in turns, from this one on; NULL: none. */
    struct sched_call *woken;
    uint32_t woken_round; /* the round when this began last */
    struct lane_timer turn;
    struct lane_timer round_turn; /* the next turn of chaining */
};

/* The numbers of the pool are within each other's bounds. */
void pool_check(const struct sched_pool *pool);
/* The numbers of units and blocks are those of the list, and each lease is of a unit that is there. Walks all of
 * them: for assert_slow. */
bool pool_fits(const struct sched_pool *pool);
/* The pool's durable record is to be written. */
void pool_changed(struct sched_pool *pool);
void unit_move(struct sched_pool *pool, struct unit *unit, enum unit_state to);
static inline enum unit_state unit_state_of(const struct sched_pool *pool, const struct unit *unit)
{
    bool earlier = unit->state == UNIT_DONE && unit->round != (uint8_t)pool->round;
    return earlier ? UNIT_FREE : (enum unit_state)unit->state;
}
/* The holder of the unit is gone; its lease is the caller's to remove. */
void unit_release(struct sched_pool *pool, uint32_t unit);
void lease_remove(struct sched_pool *pool, struct lease *lease);
/* A lease under this token. MEMORY: nothing has changed. */
MUST_USE paramo_err lease_put(struct sched_pool *pool, uint64_t token, uint32_t unit, int32_t owner,
                              struct sched_node *node);
/* FULL, MEMORY. */
MUST_USE paramo_err pool_owner_add(struct sched_pool *pool, uint64_t key, uint64_t incarnation);
/* The FREE work units of each owner, in order. */
void pool_chain_owners(struct sched_pool *pool);
/* If the round is finished, prepares the next one, visiting `most` units, and begins it when that is done. False: units
 * are left to visit. */
bool pool_finish_round(struct sched_pool *pool, uint32_t most);
/* Ends the stream before unit `first`. The units from there on were dealt but do not exist. A DONE unit stays
 * done: the first report counts. */
void pool_stream_ends(struct sched_pool *pool, uint32_t first);
/* The result is GOT with the work unit, NONE_NOW or FINISHED. */
MUST_USE paramo_err unit_deal(struct sched_pool *pool, struct sched_node *node, uint32_t customer,
                              uint32_t round, struct pool_next_result *result);

#endif
