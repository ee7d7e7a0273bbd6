/*
 * The scheduler: the paper's server manager and task scheduler (OSDI'14, section 4). It keeps membership,
 * ranks, the ring, views, table names, barriers, pools of work units and small values. A state machine on one
 * lane, entered by messages and timers only; never on the path of a push or pull.
 *
 *   GATHERING --all registered--> RUNNING --no worker left, or shutdown--> ENDING
 *   ENDING --no member left, or end_wait_ms--> OVER
 *
 * With recovery_ms, a job whose workers have all died waits for a new worker before it ends. That
 * wait is not saved: the next scheduler that finds no worker starts it again.
 *
 *   A node:  JOINED --connection lost--> ABSENT --rejoin_ms--> DEAD
 *             |  ^----same incarnation-----+                    ^
 *             |--silent for heartbeat_timeout_ms ---------------+--a new node takes its place--> JOINED
 *             +--LEAVE--> LEFT
 *
 * With a store (cluster/meta/store.h) the job survives its scheduler. What members learn is durable before
 * they learn it, and the next scheduler continues from there under a higher term. The nodes then have
 * heartbeat_timeout_ms to register again.
 *
 * The parts, each a file with its own header, stand together in scheduler.c. Each calls those above it in this
 * list, and tells those below it by functions that they gave it:
 *
 *   roster, peers          which nodes there are, and their connections
 *   save, calls, orders    what is durable; what members ask for; what they are told to do
 *   view, ring, lost       the view's number and tables; the owner of each partition; which rows are gone
 *   barrier, pool, kv      what members share
 *   waiting, end           nodes without a place; the end of the job
 *   migrations, tables, ckpt, recovery     what happens to partitions, tables and lost rows
 *   announce               builds views, and sends them
 *   admission, departure, status, drain    nodes come and go
 *   resume, records, dispatch              the state of an earlier scheduler; which part handles what
 *
 * Must never know: configuration files and the environment; rows, keys and values. All functions on the lane.
 * Tests: test/cluster/test_scheduler.c, test_sched_*.c, test_cluster_sim.c, test_restart.c, test_lead.c,
 * test_orders.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHEDULER_H
#define CLUSTER_SCHEDULER_SCHEDULER_H

#include "cluster/scheduler/scheduler_config.h"

struct scheduler;

/* INVALID: what the store holds is a job of another size. */
MUST_USE paramo_err scheduler_create(const struct scheduler_config *config, struct scheduler **scheduler);
/* The incarnation of the scheduler in the view, when it has no member of its own. */
uint64_t scheduler_incarnation(const struct scheduler *scheduler);
/* The address that members connect to, with the real port. */
const char *scheduler_address(const struct scheduler *scheduler);
/* Ends the job for all, as a SHUTDOWN call does (SHUTDOWN when status is that). Nothing if it is over
 * already. */
void scheduler_end(struct scheduler *scheduler, paramo_err status, const char *text);
/* Closes every connection and frees; over is not called any more. NULL is allowed. */
void scheduler_destroy(struct scheduler *scheduler);

#endif
