/*
 * The durable records of pools, their owners and their work units: written, and read back by a scheduler that takes
 * over. Must never know: when records are written (sched_save.h), or what is dealt. Tests:
 * test/cluster/test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_POOL_RECORDS_H
#define CLUSTER_SCHEDULER_SCHED_POOL_RECORDS_H

#include "base/cursor.h"
#include "base/err.h"
#include "cluster/scheduler/sched_save.h"

struct scheduler;

/* Durable records: writes one, writes the next of all (sched_save_ops.write_next), reads one back: pools first, then
 * owners, then work units. sched_pool_restored comes last. */
void sched_pool_record(const struct scheduler *s, enum record_kind kind, uint64_t key, struct writer *w);
bool sched_pool_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w);
MUST_USE paramo_err sched_pool_restore(struct scheduler *s, enum record_kind kind, uint64_t key,
                                       struct reader *record);
void sched_pool_restored(struct scheduler *s);

#endif
