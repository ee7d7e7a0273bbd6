/*
 * CLOCK_JOIN, CLOCK_TELL, CLOCK_WAIT, CLOCK_LEAVE: the clocks of the job's workers. A worker counts from its join to
 * its leave; that time is a session, which is named by the call that began it. A clock is the number of iterations
 * that a worker has ended, so telling it again changes nothing. It never knows tables. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_CLOCK_CALLS_H
#define WIRE_CLOCK_CALLS_H

#include "base/cursor.h"
#include "wire/calls.h"

/* Clocks and sessions are below this. */
#define CLOCK_COUNT_MAX (UINT64_C(1) << 56)

struct clock_join {
    uint32_t customer; /* of the node */
};
/* The session of the CLOCK_JOIN with this number (its sequence), of this node. A caller that has given up the call
 * knows it, too: the scheduler may have counted the worker. */
static inline uint64_t clock_session(uint32_t node, uint64_t call)
{
    return (uint64_t)node << 32 | (uint32_t)(call / CALL_PLACES);
}
struct clock_joined {
    uint64_t session;
    uint64_t minimum; /* of all workers that count: the worker begins with it */
    /* the number of workers that count, with this one; 0 takes no bytes: the caller does not know the field */
    uint32_t workers;
};
struct clock_tell {
    uint64_t session, clock;
};
/* Answered when all workers that count have reached the clock. */
struct clock_wait {
    uint64_t session, clock;
    uint32_t timeout_ms;
};
struct clock_leave {
    uint64_t session;
};
/* The answer to CLOCK_TELL and CLOCK_WAIT. */
struct clock_result {
    uint64_t minimum;
    /* the worker that raised the minimum last, or stopped counting; node 0: none yet */
    uint32_t node, customer;
    uint32_t workers; /* that count; as in clock_joined */
};

void clock_join_encode(const struct clock_join *m, struct writer *w);
MUST_USE paramo_err clock_join_decode(struct reader *r, struct clock_join *m);
void clock_joined_encode(const struct clock_joined *m, struct writer *w);
MUST_USE paramo_err clock_joined_decode(struct reader *r, struct clock_joined *m);
void clock_tell_encode(const struct clock_tell *m, struct writer *w);
MUST_USE paramo_err clock_tell_decode(struct reader *r, struct clock_tell *m);
void clock_wait_encode(const struct clock_wait *m, struct writer *w);
MUST_USE paramo_err clock_wait_decode(struct reader *r, struct clock_wait *m);
void clock_leave_encode(const struct clock_leave *m, struct writer *w);
MUST_USE paramo_err clock_leave_decode(struct reader *r, struct clock_leave *m);
void clock_result_encode(const struct clock_result *m, struct writer *w);
MUST_USE paramo_err clock_result_decode(struct reader *r, struct clock_result *m);

#endif
