/*
 * Admission: which nodes join the job, wait for a place, or are refused.
 * Must never know: when a node is dead (sched_departure.h).
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_ADMISSION_H
#define CLUSTER_SCHEDULER_SCHED_ADMISSION_H

#include "base/cursor.h"
#include "base/err.h"

struct scheduler;
struct sched_peer;

/* seen: the number of the newest view that the node has. */
void sched_admission_register(struct scheduler *s, struct sched_peer *peer, uint64_t seen,
                              struct reader *body);
/* A place may have become free, or can no longer become free. */
void sched_admission_go_on(struct scheduler *s);
/* Frees all nodes. */
void sched_admission_fini(struct scheduler *s);

#endif
