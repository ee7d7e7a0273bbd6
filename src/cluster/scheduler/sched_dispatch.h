/*
 * Dispatch: what happens on a control connection goes to the part that handles it.
 * Must never know: what a call does; only which part takes it.
 * Tests: test/cluster/test_scheduler.c, test_sched_calls.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_DISPATCH_H
#define CLUSTER_SCHEDULER_SCHED_DISPATCH_H

#include "van/van.h"

/* Of each control connection; user is its struct sched_peer. */
extern const struct van_user sched_dispatch_user;

#endif
