/*
 * Orders: what this scheduler tells a member to do (wire/order.h). Each is repeated until the member has
 * answered it, and ends exactly once.
 * Must never know: what an order means; the part that gives it encodes it and reads the result.
 * Tests: test/cluster/test_orders.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_ORDERS_H
#define CLUSTER_SCHEDULER_SCHED_ORDERS_H

#include "base/cursor.h"
#include "base/err.h"

struct scheduler;
struct sched_call;
struct sched_node;

/* done comes once: OK and the result; the member's error (this thread's message); NODE_LOST when the node is
 * gone. It never comes from inside this function, nor after the scheduler's end. Takes what fields owns.
 * FULL: the member has too many; NODE_LOST. */
MUST_USE paramo_err sched_order_issue(struct sched_node *node, uint32_t what, struct writer *fields,
                                      void (*done)(void *arg, struct sched_node *node, paramo_err status,
                                                   struct reader *result),
                                      void *arg);
/* Sends those that were last sent at least overdue ago. */
void sched_orders_send(struct sched_node *node, uint64_t overdue);
/* The connection is lost: all are sent again on the next one. */
void sched_orders_unsend(struct sched_node *node);
/* The node is gone: each ends with NODE_LOST. tell: call done. */
void sched_orders_drop(struct sched_node *node, bool tell);
/* The term has risen above that of an unknown earlier scheduler. Members may have seen the numbers of the
 * orders given so far. Each ends with CANCELLED. */
void sched_orders_cancel(struct scheduler *s);
void sched_order_done_call(struct sched_call *call, struct reader *body);

#endif
