/*
 * Announcements: what a view says, built from the parts; and which members get it.
 * Must never know: why something has changed.
 * Tests: test/cluster/test_scheduler.c, test_restart.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_ANNOUNCE_H
#define CLUSTER_SCHEDULER_SCHED_ANNOUNCE_H

#include "base/cursor.h"
#include "base/err.h"
#include "wire/head.h"

struct scheduler;
struct sched_node;
struct sched_peer;

/* The view asks this part for its bytes, and tells it when they are durable. */
void sched_announce_init(struct scheduler *s);
/* Sends the announced view to a node that may have it. */
void sched_announce_to(struct sched_node *node);
/* A node has seen a view of this number: the next is above it. REFUSED: that is no view of this job; a node's
 * claim never brings numbers near their end. */
MUST_USE paramo_err sched_announce_above(struct scheduler *s, uint64_t number);
/* An admin client asks: the view as last announced, or AGAIN while there is none. */
MUST_USE paramo_err sched_announce_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                               const struct reader *body);

#endif
