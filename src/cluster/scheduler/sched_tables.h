/*
 * Tables: the calls that open and make them. While lost rows are restored no new table is made: the call waits.
 * Must never know: rows and keys.
 * Tests: test/cluster/test_scheduler.c, test_sched_lost.c, test_sched_ckpt.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_TABLES_H
#define CLUSTER_SCHEDULER_SCHED_TABLES_H

#include "cluster/scheduler/sched_calls.h"

struct view_table;

struct sched_tables {
    struct sched_call_queue deferred; /* TABLE_OPEN of new tables while rows are lost */
};

void sched_tables_open_call(struct sched_call *call, struct reader *body);
/* No rows are lost any more: handles the deferred calls. */
void sched_tables_resume(struct scheduler *s);
/* A table of a checkpoint: makes it if there is none of its name. TABLE_EXISTS: it has other options. */
MUST_USE paramo_err sched_tables_make(struct scheduler *s, const struct view_table *table);

#endif
