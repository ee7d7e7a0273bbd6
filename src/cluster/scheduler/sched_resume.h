/*
 * The view that an earlier scheduler of this job has saved: its nodes, ring and tables become this scheduler's.
 * Must never know: the other durable records (sched_records.h), or how views are saved (sched_save.h).
 * Tests: test/cluster/test_restart.c; fuzz/fuzz_store.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_RESUME_H
#define CLUSTER_SCHEDULER_SCHED_RESUME_H

#include "base/cursor.h"
#include "base/err.h"

struct scheduler;
struct view;

/* Its nodes have heartbeat_timeout_ms to register again. INVALID: it is of a job of another size. */
MUST_USE paramo_err sched_resume_view(struct scheduler *s, struct reader *record);
/* Takes the nodes of the view. CORRUPT: no scheduler writes such a view. */
MUST_USE paramo_err sched_resume_nodes(struct scheduler *s, const struct view *view);

#endif
