/*
 * Barriers: one for each group and customer, numbered from 1 for the life of the job.
 * Must never know: tables, partitions, views.
 * Tests: test/cluster/test_sched_calls.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_BARRIER_H
#define CLUSTER_SCHEDULER_SCHED_BARRIER_H

#include "base/cursor.h"
#include "base/err.h"
#include "base/map.h"

struct scheduler;
struct sched_save_cursor;
struct sched_call;
struct sched_node;

enum { SCHED_BARRIERS_MAX = 65536 /* groups times customers */ };

struct sched_barriers {
    struct map by_key; /* customer << 3 | group -> barrier */
};

void sched_barrier_enter(struct sched_call *call, struct reader *body);
void sched_barrier_node_gone(struct sched_node *node);
void sched_barrier_fini(struct scheduler *s);

/* Durable records: writes one, writes the next of all (sched_save_ops.write_next), reads one back. */
void sched_barrier_record(const struct scheduler *s, uint64_t key, struct writer *w);
bool sched_barrier_next_records(const struct scheduler *s, struct sched_save_cursor *cursor,
                                struct writer *w);
MUST_USE paramo_err sched_barrier_restore(struct scheduler *s, uint64_t key, struct reader *record);

#endif
