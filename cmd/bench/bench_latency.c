/*
 * bench latency: the time of one small request over TCP between processes: push or pull of one key with one float, one
 * at a time, beside a bare ping-pong that blocks and one that waits as Paramo does. With --busy N, N processes keep the
 * cores busy, and the same requests of a job that never polls show what polling costs then. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <stdio.h>
#include <stdlib.h>

enum { BUSY_MAX = 64 };
/* ASLEEP: requests of a job whose lanes never poll */
enum { PUSH, PULL, PUSH_ASLEEP, PULL_ASLEEP, BLOCKING, PATIENT, KINDS };
enum { MEDIAN, P99, FIGURES, LIMITS = 3 };

struct latency {
    struct bench_job job, asleep; /* the second only if cores are kept busy */
    struct bench_peer blocking, patient;
    struct raw_wait wait;
    paramo_table *table, *table_asleep;
    double *us; /* trips of a sample */
    size_t trips;
};

static int paramo_trip(struct latency *l, int kind)
{
    static const uint64_t key = 7;
    static float value;
    int asleep = kind >= PUSH_ASLEEP;
    struct load_window w = {.worker = asleep ? l->asleep.worker : l->job.worker,
                            .table = asleep ? l->table_asleep : l->table,
                            .size = 1};
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.n = 1;
    kv.vals = &value;
    kv.vals_len = 1;
    int code = load_issue(&w, kind == PUSH || kind == PUSH_ASLEEP ? LOAD_PUSH : LOAD_PULL, &kv);
    return code != 0 ? code : load_drain(&w);
}

/* Median and 99th percentile of a sample, in microseconds. */
static int sample(struct latency *l, int kind, double *median, double *p99)
{
    for (size_t i = 0; i < l->trips; i++) {
        int code = 0;
        uint64_t start = raw_now_ns();
        if (kind == BLOCKING)
            code = raw_echo(l->blocking.fd, NULL) != 0 ? bench_system("bare socket") : 0;
        else if (kind == PATIENT)
            code = raw_echo(l->patient.fd, &l->wait) != 0 ? bench_system("bare socket") : 0;
        else
            code = paramo_trip(l, kind);
        if (code != 0)
            return code;
        l->us[i] = 1e-3 * (double)(raw_now_ns() - start);
    }
    *median = quantile(l->us, l->trips, 0.5);
    *p99 = quantile(l->us, l->trips, 0.99);
    return 0;
}

static int measure(struct latency *l, const struct bench_settings *s, struct bench_report *r)
{
    static const char *const limit[LIMITS] = {"bare ping-pong of 128 bytes, blocking",
                                              "bare ping-pong of 128 bytes, polling briefly, then asleep",
                                              "the same request of a job that never polls (PARAMO_POLL=0)"};
    struct bench_line *line[2][LIMITS][FIGURES]; /* push or pull */
    int limits = l->asleep.worker ? LIMITS : LIMITS - 1;
    char settings[100];
    (void)snprintf(settings, sizeof settings,
                   "%s, 1 server, one key and one float, one request at a time; busy processes: %u",
                   job_van(), (unsigned)s->busy);
    for (int op = PUSH; op <= PULL; op++)
        for (int i = 0; i < limits; i++)
            for (int f = 0; f < FIGURES; f++)
                line[op][i][f] =
                    report_line(r, "latency", "us", BENCH_LOWER, limit[i], settings, "%s, %s",
                                op == PUSH ? "push" : "pull", f == P99 ? "99th percentile" : "median");
    for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
        double at[KINDS][FIGURES];
        for (int kind = 0; kind < KINDS; kind++) {
            if (limits < LIMITS && (kind == PUSH_ASLEEP || kind == PULL_ASLEEP))
                continue;
            int code = sample(l, kind, &at[kind][MEDIAN], &at[kind][P99]);
            if (code != 0)
                return code;
        }
        for (int op = PUSH; op <= PULL && pair > 0; op++) {
            const int other[LIMITS] = {BLOCKING, PATIENT, PUSH_ASLEEP + op};
            for (int i = 0; i < limits; i++)
                for (int f = 0; f < FIGURES; f++)
                    line_pair(line[op][i][f], at[op][f], at[other[i]][f]);
        }
    }
    return 0;
}

static int open_table(struct bench_job *job, paramo_table **table)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(job->worker, "latency", &o, table);
    return err == PARAMO_OK ? 0 : bench_failed(err, "cannot open the table");
}

static int start_asleep(struct latency *l)
{
    if (setenv("PARAMO_POLL", "0", 1) != 0)
        return bench_system("environment");
    int code = job_start(&l->asleep, 1, 0);
    (void)unsetenv("PARAMO_POLL");
    return code != 0 ? code : open_table(&l->asleep, &l->table_asleep);
}

static int prepare(struct latency *l, int busy)
{
    int code = peer_start(&l->blocking, raw_echo_blocking_serve);
    if (code == 0)
        code = peer_start(&l->patient, raw_echo_patient_serve);
    if (code == 0)
        code = job_start(&l->job, 1, 0);
    if (code == 0)
        code = open_table(&l->job, &l->table);
    if (code == 0 && busy)
        code = start_asleep(l);
    if (code != 0)
        return code;
    if (raw_wait_open(&l->wait, l->patient.fd) != 0)
        return bench_system("epoll");
    l->us = malloc(l->trips * sizeof *l->us);
    return l->us ? 0 : code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
}

int bench_latency(const struct bench_settings *s, struct bench_report *r)
{
    struct latency l = {.trips = s->quick ? 50 : s->busy ? 200 : 1000};
    pid_t busy[BUSY_MAX] = {0};
    int code = prepare(&l, s->busy > 0);
    if (code == 0)
        code = busy_start(busy, s->busy < BUSY_MAX ? (size_t)s->busy : BUSY_MAX);
    if (code == 0)
        code = measure(&l, s, r);
    busy_stop(busy, BUSY_MAX);
    paramo_table_close(l.table);
    paramo_table_close(l.table_asleep);
    job_stop(&l.job);
    job_stop(&l.asleep);
    raw_wait_close(&l.wait);
    peer_stop(&l.blocking);
    peer_stop(&l.patient);
    free(l.us);
    return code;
}
