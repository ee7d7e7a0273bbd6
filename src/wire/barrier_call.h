/*
 * BARRIER: enter the barrier of a group and customer; the answer comes when all have entered, with the number
 * that the scheduler gave the barrier. It never knows members. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_BARRIER_CALL_H
#define WIRE_BARRIER_CALL_H

#include "base/cursor.h"

struct barrier_call {
    uint32_t group;    /* sum of 1, 2, 4 */
    uint32_t customer; /* tells several barriers of one group apart */
    uint32_t timeout_ms;
};
struct barrier_result {
    uint64_t number; /* from 1, per group and customer */
};

void barrier_call_encode(const struct barrier_call *m, struct writer *w);
MUST_USE paramo_err barrier_call_decode(struct reader *r, struct barrier_call *m);
void barrier_result_encode(const struct barrier_result *m, struct writer *w);
MUST_USE paramo_err barrier_result_decode(struct reader *r, struct barrier_result *m);

#endif
