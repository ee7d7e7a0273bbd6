/*
 * The scheduler's order REPORT: collects what each shard of a server holds. It never knows what the scheduler does
 * with the report. Tests: test/e2e/status.sh, test/cluster/test_sched_status.c.
 */
#ifndef NODE_REPORTING_H
#define NODE_REPORTING_H

#include "node/node.h"

/* On the control lane. */
void member_slot_report(struct member_slot *member_slot, uint64_t order);

#endif
