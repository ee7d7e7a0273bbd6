/*
 * POOL_OPEN, POOL_NEXT, POOL_DONE, POOL_END: dealing out work in work units (paramo_pool_* in paramo.h says
 * what they mean). It never knows the data of a unit. Tests: test/wire/test_calls.c.
 */
#ifndef WIRE_POOL_CALLS_H
#define WIRE_POOL_CALLS_H

#include "base/cursor.h"

enum {
    POOL_NAME_MAX = 256, /* with its zero byte */
    POOL_STREAMS_MAX = 1 << 20,
    POOL_ROUNDS_MAX = 1 << 20,
    POOL_UNITS_MAX = 1 << 24 /* of one pool */
};

/* As paramo_work_unit. */
struct work_unit {
    uint32_t stream;
    uint32_t round;
    uint64_t index;
    uint64_t token;
};

enum pool_state { POOL_GOT = 0, POOL_NONE_NOW = 1, POOL_FINISHED = 2 };

struct pool_open {
    char name[POOL_NAME_MAX];
    uint32_t streams, rounds;
};
struct pool_next {
    char name[POOL_NAME_MAX];
    uint32_t customer, round, timeout_ms;
};
struct pool_next_result {
    uint8_t state; /* enum pool_state */
    struct work_unit unit;
    uint64_t view; /* the receiver waits for it: the work unit's last holder is dead in it */
};
/* Body of POOL_DONE and of POOL_END. */
struct pool_report {
    char name[POOL_NAME_MAX];
    struct work_unit unit;
};

void pool_open_encode(const struct pool_open *m, struct writer *w);
MUST_USE paramo_err pool_open_decode(struct reader *r, struct pool_open *m);
void pool_next_encode(const struct pool_next *m, struct writer *w);
MUST_USE paramo_err pool_next_decode(struct reader *r, struct pool_next *m);
void pool_next_result_encode(const struct pool_next_result *m, struct writer *w);
MUST_USE paramo_err pool_next_result_decode(struct reader *r, struct pool_next_result *m);
void pool_report_encode(const struct pool_report *m, struct writer *w);
MUST_USE paramo_err pool_report_decode(struct reader *r, struct pool_report *m);

#endif
