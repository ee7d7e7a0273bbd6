/*
 * Nodes that wait for a place: their list, and the answer to a node that is refused a place.
 * Must never know: which node gets a place (sched_admission.h).
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_WAITING_H
#define CLUSTER_SCHEDULER_SCHED_WAITING_H

#include "base/err.h"

struct scheduler;
struct sched_node;
struct sched_peer;

void sched_waiting_push(struct scheduler *s, struct sched_node *node);
void sched_waiting_remove(struct sched_node *node);
/* A waiting node gets this thread's message and is forgotten. Its connection has a few seconds to close. */
void sched_waiting_refuse(struct sched_node *node, paramo_err status);
/* Like sched_waiting_refuse(), for all nodes that wait. */
void sched_waiting_refuse_all(struct scheduler *s, paramo_err status, const char *text);
/* The answer to REGISTER is an error, with this thread's message. */
void sched_waiting_reply_error(struct sched_peer *peer, paramo_err status);
/* Frees a node that does not wait and has no place any more. */
void sched_waiting_forget(struct sched_node *node);

#endif
