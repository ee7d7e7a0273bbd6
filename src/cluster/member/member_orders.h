/*
 * The scheduler's orders to a member: each is handed over once, and its answer is a call, which is done once.
 * It never knows what an order means. Tests: test/cluster/test_orders.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_ORDERS_H
#define CLUSTER_MEMBER_MEMBER_ORDERS_H

#include "cluster/member/member.h"
#include "wire/head.h"

MUST_USE paramo_err member_order_got(struct member *m, const struct wire_order *head, struct reader *body);
/* Sends the answers that had to wait for room among the calls. */
void member_orders_answer(struct member *m);
/* After the calls have ended. */
void member_orders_fini(struct member *m);

#endif
