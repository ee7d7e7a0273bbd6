/*
 * Pools of work units: dealt to nodes, leased until done, dealt again when the holder is gone.
 * Must never know: what a work unit is.
 * Tests: test/cluster/test_sched_calls.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_POOL_H
#define CLUSTER_SCHEDULER_SCHED_POOL_H

#include "base/cursor.h"
#include "base/err.h"
#include "cluster/scheduler/sched_save.h"

struct scheduler;
struct sched_call;
struct sched_node;

enum { SCHED_POOLS_MAX = 4096 };

struct sched_pools {
    struct sched_pool *first;
    uint32_t count;
};

void sched_pool_open(struct sched_call *call, struct reader *body);
void sched_pool_next(struct sched_call *call, struct reader *body);
void sched_pool_done(struct sched_call *call, struct reader *body);
void sched_pool_end(struct sched_call *call, struct reader *body);
/* Work units that the node holds. */
size_t sched_pool_held(const struct sched_node *node);
void sched_pool_node_gone(struct sched_node *node);
void sched_pool_fini(struct scheduler *s);

/* Durable records: one, the next of all (sched_save_ops.write_next), and back: pools first, then owners, then work
 * units; at last sched_pool_restored. */
void sched_pool_record(const struct scheduler *s, enum record_kind kind, uint64_t key, struct writer *w);
bool sched_pool_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w);
MUST_USE paramo_err sched_pool_restore(struct scheduler *s, enum record_kind kind, uint64_t key,
                                       struct reader *record);
void sched_pool_restored(struct scheduler *s);

#endif
