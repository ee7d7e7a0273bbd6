/*
 * Departures: nodes that leave, die, or do not come back in time.
 * Must never know: what a node's death means to barriers and pools (scheduler.c), or which node gets its
 * place (sched_admission.h).
 * Tests: test/cluster/test_scheduler.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_DEPARTURE_H
#define CLUSTER_SCHEDULER_SCHED_DEPARTURE_H

#include "base/err.h"

struct scheduler;
struct sched_node;

void sched_departure_connection_lost(struct sched_node *node);
void sched_departure_left(struct sched_node *node);
/* Called by the scheduler's clock: nodes that were silent for too long are dead. */
void sched_departure_check_silence(struct scheduler *s);
/* A node of a saved view has heartbeat_timeout_ms to register again. */
MUST_USE paramo_err sched_departure_await(struct sched_node *node);

#endif
