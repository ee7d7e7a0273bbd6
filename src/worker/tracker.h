/*
 * The requests of one customer by timestamp: which are in flight, and how the last failed ones ended. Memory
 * is bounded by what may be in flight.
 *
 * A timestamp in flight is in slot `timestamp mod slots`. A new one whose slot is held by a slow old request
 * is skipped. So one load tells whether a timestamp has completed, from any thread and without the lane.
 * Timestamps ascend with gaps. It never knows what a request is. Tests: test/worker/test_tracker.c.
 */
#ifndef WORKER_TRACKER_H
#define WORKER_TRACKER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

enum {
    TRACKER_LIMIT = 4096,              /* in flight; arbitrary, four times the window of chunk numbers */
    TRACKER_SLOTS = 2 * TRACKER_LIMIT, /* at least half are free, so that few timestamps are skipped */
    TRACKER_FAILURES_BITS = 10,
    TRACKER_FAILURES = 1 << TRACKER_FAILURES_BITS
};

struct tracker_failure {
    uint64_t ts;
    paramo_err status;
    bool told;     /* the status was reported: wait_all does not report it again */
    uint16_t next; /* of its bucket: index + 1; 0: the last */
    char text[ERR_TEXT_MAX];
};

struct tracker {
    _Atomic uint64_t issued; /* the last timestamp given */
    atomic_uint in_flight;
    _Atomic uint64_t *slots;
    _Atomic uint64_t *answers; /* by slot: the timestamp in the upper 48 bits, answers so far in the lower */
    /* The last failures: a ring, and buckets by timestamp. A waiter whose bucket is empty takes no lock. The
     * spin lock is held for a few records of one bucket; tracker_all_result walks the ring under it, if a
     * failure is unreported. */
    atomic_flag failures_lock;
    atomic_uint failures_untold;
    unsigned failures_next, failures_count;
    struct tracker_failure *failures;          /* the first failures_count are filled */
    _Atomic uint16_t bucket[TRACKER_FAILURES]; /* index + 1; 0: empty */
};

MUST_USE paramo_err tracker_init(struct tracker *t);
void tracker_fini(struct tracker *t);
/* Any thread: a new timestamp in flight, from 1; AGAIN when TRACKER_LIMIT are. */
MUST_USE paramo_err tracker_issue(struct tracker *t, uint64_t *ts);
static inline bool tracker_has_room(struct tracker *t)
{
    return atomic_load(&t->in_flight) < TRACKER_LIMIT;
}
/* Remembers how a request that failed ended; before tracker_complete. told: a callback gets the status.
 */
void tracker_failed(struct tracker *t, uint64_t ts, paramo_err status, const char *text, bool told);
/* The request is over: its arrays are the caller's. Once per timestamp, from any thread. */
void tracker_complete(struct tracker *t, uint64_t ts);

/* Any thread: not in flight. True for a timestamp never given, 0 among them (an empty slot holds 0, too). */
static inline bool tracker_done(struct tracker *t, uint64_t ts)
{
    return ts == 0 || atomic_load_explicit(&t->slots[ts % TRACKER_SLOTS], memory_order_acquire) != ts;
}
/* INVALID for a timestamp never given; else how it ended, with its message. */
MUST_USE paramo_err tracker_result(struct tracker *t, uint64_t ts);

/* How a completed request ended, without marking it reported; also OK if it is no longer known. */
paramo_err tracker_peek(struct tracker *t, uint64_t ts, char text[ERR_TEXT_MAX]);
/* One more answer to a request in flight; one thread at a time. */
void tracker_answered(struct tracker *t, uint64_t ts);
/* INVALID for a timestamp never given, NOT_FOUND when a later request has its slot. */
MUST_USE paramo_err tracker_answers(struct tracker *t, uint64_t ts, uint32_t *count);

/* All requests that are in flight when it begins. */
struct tracker_all {
    struct tracker *tracker;
    uint64_t upto;
    unsigned cursor; /* slots below this have completed */
};
void tracker_all_begin(struct tracker *t, struct tracker_all *all);
bool tracker_all_done(struct tracker_all *all);
/* The first of their failures that was not reported. */
MUST_USE paramo_err tracker_all_result(struct tracker_all *all);

#endif
