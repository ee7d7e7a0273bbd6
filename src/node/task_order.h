/*
 * The order of tasks at the node that runs them (Li et al., OSDI'14, section 3.4: execute-after dependencies). A call
 * may name earlier calls, of any caller, that must have ended at this node before it begins. It never knows messages,
 * time or threads: its owner says what has arrived and what has ended, and learns what may begin. One owner. Tests:
 * test/node/test_task_order.c.
 *
 * Calls arrive in any order, also before those that they name. A caller is a session (64 random bits of a worker),
 * which numbers its calls. For each caller there is a window of the last ORDER_WINDOW numbers:
 *
 *     not known any more | high - WINDOW + 1   1 0 0 1 1 0 ...   high | not yet arrived
 *                                     ended (and failed) or not
 *
 * A number that is not known counts as not yet arrived: then a call may wait forever, but never begins too early.
 */
#ifndef NODE_TASK_ORDER_H
#define NODE_TASK_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { ORDER_WINDOW = 8192, ORDER_NAMES_MAX = 64, ORDER_CALLERS_MAX = 16384 };

struct task_order;
struct order_caller;
struct order_edge;

/* A call as another one names it. */
struct order_name {
    uint64_t session, number;
    uint32_t to; /* the node or group that it was sent to: other nodes do not wait for it */
};

/* A call that has arrived. The owner's memory, from order_arrive to order_end. */
struct order_call {
    uint32_t at; /* the node that it was sent to (embedded: of several in the process) */
    uint64_t session, number;
    bool failed; /* a call that it names has failed: it must not run */
    /* private */
    struct order_caller *caller;
    struct order_edge *edges;
    size_t edges_count, edges_open;
    struct order_call *next; /* of those that may begin */
};

/* callers: how many are remembered. One more caller replaces the one without open calls that was idle longest. */
MUST_USE paramo_err order_create(size_t callers, struct task_order **order);
/* All calls have ended. */
void order_destroy(struct task_order *order);

/* A call whose at, session and number are set has arrived, and names n others. It may begin if order_may_begin.
 * INVALID: it names itself, or a later call of its caller. FULL: too many callers have open calls. MEMORY. After an
 * error the call is not known. */
MUST_USE paramo_err order_arrive(struct task_order *order, struct order_call *call,
                                 const struct order_name *names, size_t n);
static inline bool order_may_begin(const struct order_call *call)
{
    return call->edges_open == 0;
}
/* It stops waiting, although calls that it names have not ended. */
void order_withdraw(struct task_order *order, struct order_call *call);
/* A call that may begin has ended; failed: those that name it fail. Returns those that may begin now, linked by
 * next. */
MUST_USE struct order_call *order_end(struct task_order *order, struct order_call *call, bool failed);

#endif
