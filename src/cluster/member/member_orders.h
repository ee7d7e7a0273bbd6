/*
 * The scheduler's orders to a member. The node gets each order once. The answer to an order is a call, which the
 * scheduler does once.
 * Must never know: what an order means.
 * Tests: test/cluster/test_orders.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_ORDERS_H
#define CLUSTER_MEMBER_MEMBER_ORDERS_H

#include "base/cursor.h"
#include "wire/head.h"

struct member;

/* An order has been carried out: its result (what it owns is taken), or its failure, with this thread's
 * message. It reaches the scheduler although connections break. Does nothing if the member has ended. */
void member_order_done(struct member *m, uint64_t order, paramo_err status, struct writer *result);
/* Nothing of the order was carried out, because there was no memory: the scheduler sends it again, after a heartbeat
 * or later. Does nothing if the member has ended. */
void member_order_later(struct member *m, uint64_t order);

/* ---- for member.c --------------------------------------------------------------------------------------- */

MUST_USE paramo_err member_order_got(struct member *m, const struct wire_order *head, struct reader *body);
/* Sends the answers that had to wait for room among the calls. */
void member_orders_answer(struct member *m);
/* After the calls have ended. */
void member_orders_fini(struct member *m);

#endif
