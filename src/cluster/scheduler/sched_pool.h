/*
 * Pools of work units: the calls of workers that open one, ask for a unit, wait for one, and report it.
 * Must never know: what a work unit is; in which order units are dealt (sched_units.h).
 * Tests: test/cluster/test_sched_calls.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_POOL_H
#define CLUSTER_SCHEDULER_SCHED_POOL_H

#include "base/cursor.h"
#include "base/err.h"

struct pool_open;
struct scheduler;
struct sched_call;
struct sched_node;
struct sched_pool;

enum { SCHED_POOLS_MAX = 4096 };

struct sched_pools {
    struct sched_pool *first;
    uint32_t count;
    uint32_t most; /* POOL_CHAIN_TURN, fewer in tests */
};

void sched_pool_init(struct scheduler *s);
/* A new pool, the last of all. FULL, MEMORY. */
MUST_USE paramo_err sched_pool_add(struct scheduler *s, const struct pool_open *m, struct sched_pool **out);
void sched_pool_open(struct sched_call *call, struct reader *body);
void sched_pool_next(struct sched_call *call, struct reader *body);
void sched_pool_done(struct sched_call *call, struct reader *body);
void sched_pool_end(struct sched_call *call, struct reader *body);
/* Work units that the node holds. */
size_t sched_pool_held(const struct sched_node *node);
void sched_pool_node_gone(struct sched_node *node);
void sched_pool_fini(struct scheduler *s);

#endif
