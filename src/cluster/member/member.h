/*
 * A member: a node's membership in a cluster. It connects to the scheduler, registers, keeps the newest view,
 * and sends heartbeats. It carries calls to the scheduler (member_calls.h) and its orders to the node
 * (member_orders.h).
 *
 *   CONNECTING --welcome--> REGISTERING --id, complete view--> JOINED --END, fenced, scheduler lost--> ENDED
 *      ^                      |                               |
 *      +----- connection lost +-------------------------------+     (back-off: 20 ms, doubled to 500 ms)
 *
 * A lost connection is logged once, at once. The time for which the member reconnects depends on the answer of the
 * address. A refused connection is strong evidence of a dead process (scheduler_wait_ms). Otherwise the process may
 * be stopped or overloaded (heartbeat_timeout_ms). If the scheduler keeps its state, the member tries for ten minutes
 * in any case. Calls wait as long as their deadlines allow, and are repeated. Several addresses are tried in turn:
 * only the leader listens.
 *
 * Threads: every function and callback runs on one lane (the node's control lane); other threads post.
 * Callbacks come from the lane's rounds, never from inside a member_* function but member_destroy and
 * member_fail. A callback may call any member_* function except member_destroy, and must not wait. A member
 * never touches data connections. Tests: test/cluster/test_member.c, test_cluster_sim.c.
 */
#ifndef CLUSTER_MEMBER_MEMBER_H
#define CLUSTER_MEMBER_MEMBER_H

#include "cluster/member/member_config.h"

struct member;

/* Begins to connect. */
MUST_USE paramo_err member_create(const struct member_config *config, struct member **member);
/* Closes the connection and ends calls in flight with CLOSED (their done is called from here); no other
 * callback comes. Without member_leave before, the scheduler counts it as a death. NULL is allowed. */
void member_destroy(struct member *member);

/* This node cannot continue; this thread's message says why. Closes the connection, which the scheduler
 * counts as a death, and calls on_ended (or on_joined) from here. Does nothing if the member has ended or is
 * leaving. */
void member_fail(struct member *member, paramo_err status);

/* The newest view, or NULL before the first; the caller takes its own reference to keep it. */
struct view *member_view(struct member *member);
uint32_t member_id(const struct member *member); /* 0 before joining */
uint32_t member_rank(const struct member *member);
bool member_recovered(const struct member *member);
/* The address of the scheduler that was reached last, or is being tried. */
const char *member_scheduler(const struct member *member);

#endif
