/*
 * The counters of a scoring server, and their text for Prometheus. Any thread may count.
 *
 * Durations go into buckets whose width is at most 1/16 of the duration. Quantiles are over the current window and the
 * one before it; stats_rotate() begins a window. A quantile is the upper end of its bucket, so it is at most 1/16 too
 * high. It never knows of HTTP. Tests: test/learn/test_stats.c.
 */
#ifndef LEARN_SERVE_STATS_H
#define LEARN_SERVE_STATS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define STATS_WINDOW_S 30 /* arbitrary */

/* The statuses that the server answers with. Answers that libmicrohttpd gives by itself are not counted. */
#define STATS_STATUSES(X) X(200) X(400) X(404) X(405) X(413) X(500) X(503)
enum {
#define STATS_ENUM(code) STATS_##code,
    STATS_STATUSES(STATS_ENUM)
#undef STATS_ENUM
        STATS_STATUS_COUNT
};

#define STATS_SUB     16               /* buckets for each power of two */
#define STATS_BUCKETS (61 * STATS_SUB) /* up to 2^64 ns */

struct stats_window {
    atomic_uint_least64_t count[STATS_BUCKETS];
};

struct stats {
    atomic_uint_least64_t requests[STATS_STATUS_COUNT];
    atomic_uint_least64_t rows, bytes_in, bytes_out, timeouts;
    atomic_uint_least64_t connections, connections_refused, connections_open;
    atomic_uint_least64_t unsent; /* bytes of answers that wait for their clients */
    atomic_uint_least64_t reloads, reload_failures;
    atomic_uint_least64_t scored, scored_ns; /* answered requests for scores, with any status */
    struct stats_window window[2];
    atomic_uint now; /* the window that is filled */
};

/* The values that the caller adds when it writes the counters. */
struct stats_gauges {
    double model_age_s; /* since the model was saved */
    const char *model;  /* its kind; NULL: there is none yet */
    int ready;
};

void stats_answer(struct stats *s, int status);
void stats_duration(struct stats *s, uint64_t ns);
/* Begins a window, in place of the older one. One thread at a time. */
void stats_rotate(struct stats *s);
/* Quantile q (0 to 1) of the durations, in nanoseconds; 0 if the windows have no request. */
uint64_t stats_quantile(const struct stats *s, double q);
void stats_write(const struct stats *s, const struct stats_gauges *gauges, FILE *out);

#endif
