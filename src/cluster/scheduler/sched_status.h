/*
 * The status of the job, for an admin client: what this scheduler knows, and what each server reports.
 * Servers report only when a client asks, and once more before a drained one leaves.
 * Must never know: what the numbers mean.
 * Tests: test/cluster/test_sched_status.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_STATUS_H
#define CLUSTER_SCHEDULER_SCHED_STATUS_H

#include "base/cursor.h"
#include "base/spread.h"
#include "env/lane.h"
#include "wire/head.h"

struct scheduler;
struct sched_node;
struct sched_peer;

struct sched_status {
    struct scheduler *sched;   /* whose part it is */
    struct lane_timer timer;   /* servers have been asked for reports */
    uint32_t due;              /* reports */
    struct spread pauses_gone; /* of servers that are gone */
};

/* Answers an admin client that asks for the status, within 1 s. AGAIN: there is no view yet. */
MUST_USE paramo_err sched_status_admin_query(struct sched_peer *peer, const struct wire_call *call,
                                             const struct reader *body);
/* Has a drained server sent its last report? Else it is asked, and sched_migrations_check follows. */
bool sched_status_goodbye(struct sched_node *node);
/* The server is DEAD or LEFT now. */
void sched_status_gone(struct sched_node *node);
void sched_status_fini(struct scheduler *s);

#endif
