/*
 * Draining: a server gives its partitions to others, and then leaves the job.
 * Must never know: how partitions migrate (sched_migrations.h).
 * Tests: test/cluster/test_sched_migrations.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_DRAIN_H
#define CLUSTER_SCHEDULER_SCHED_DRAIN_H

#include "base/cursor.h"
#include "base/err.h"
#include "wire/head.h"

struct scheduler;
struct sched_call;
struct sched_peer;

void sched_drain_init(struct scheduler *s);
/* CALL_DRAIN of a server: its partitions go to others, then it is told to leave. */
void sched_drain_call(struct sched_call *call, struct reader *body);
/* Like sched_drain_call(), from an admin client. */
MUST_USE paramo_err sched_drain_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                            struct reader *body);
/* Everything up to this save is durable: admin clients that waited for it are answered. */
void sched_drain_saved(struct scheduler *s, uint64_t save);

#endif
