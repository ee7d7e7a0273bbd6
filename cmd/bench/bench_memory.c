/*
 * bench memory: the memory of the server for each key, beside key and value alone; and the memory of worker and server
 * after very many requests and after many connections, beside their memory before: a ratio of 1 means that it has not
 * grown. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BATCH = 10000, WINDOW = LOAD_WINDOW_MAX, ARRAYS = 2 * WINDOW, SMALL_KEYS = 4096 };
enum { BARE_BYTES = sizeof(uint64_t) + sizeof(float) };

struct memory {
    const struct bench_settings *settings;
    struct bench_report *report;
    struct bench_job job;
};

struct both {
    struct process_facts worker, server;
};

static int facts(const struct memory *m, struct both *b)
{
    int code = process_facts(getpid(), &b->worker);
    return code != 0 ? code : process_facts(m->job.server[0], &b->server);
}

static void line_once(const struct memory *m, const char *unit, const char *raw_name, const char *settings,
                      const char *name, double value, double raw)
{
    line_pair(report_line(m->report, "memory", unit, BENCH_LOWER, raw_name, settings, "%s", name), value,
              raw);
}

static void lines_unchanged(const struct memory *m, const char *settings, const struct both *before,
                            const struct both *after)
{
    const struct process_facts *a[2] = {&before->worker, &before->server},
                               *b[2] = {&after->worker, &after->server};
    static const char *const who[2] = {"worker", "server"};
    for (int i = 0; i < 2; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%s: resident memory", who[i]);
        line_once(m, "MiB", "the same before", settings, name, b[i]->rss / 1048576, a[i]->rss / 1048576);
        (void)snprintf(name, sizeof name, "%s: descriptors", who[i]);
        line_once(m, "count", "the same before", settings, name, b[i]->descriptors, a[i]->descriptors);
        (void)snprintf(name, sizeof name, "%s: threads", who[i]);
        line_once(m, "count", "the same before", settings, name, b[i]->threads, a[i]->threads);
    }
}

/* ---- per key ---- */

static int fill(const struct memory *m, paramo_table *table, uint64_t *keys, float *ones)
{
    struct load_window w = {.worker = m->job.worker, .table = table, .size = 1};
    for (uint64_t from = 0; from < m->settings->keys; from += BATCH) {
        uint64_t left = m->settings->keys - from;
        paramo_kv kv;
        paramo_kv_init(&kv);
        kv.n = kv.vals_len = left < BATCH ? (size_t)left : BATCH;
        load_range(from, keys, kv.n);
        kv.keys = keys;
        kv.vals = ones;
        int code = load_issue(&w, LOAD_PUSH, &kv);
        if (code == 0)
            code = load_drain(&w);
        if (code != 0)
            return code;
    }
    return 0;
}

static int per_key(const struct memory *m)
{
    struct both before, after;
    paramo_table *table;
    paramo_table_options o;
    paramo_table_stats stats = {.size = sizeof stats};
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(m->job.worker, "memory", &o, &table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    uint64_t *keys = malloc(BATCH * sizeof *keys);
    float *ones = malloc(BATCH * sizeof *ones);
    int code = keys && ones ? facts(m, &before)
                            : code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
    for (size_t i = 0; i < BATCH && code == 0; i++)
        ones[i] = 1;
    if (code == 0)
        code = fill(m, table, keys, ones);
    if (code == 0)
        code = facts(m, &after);
    if (code == 0 && (err = paramo_table_stat(m->job.worker, table, &stats)) != PARAMO_OK)
        code = bench_failed(err, "cannot ask for the table's size");
    if (code == 0) {
        char settings[96];
        (void)snprintf(settings, sizeof settings, "%s, 1 server, %llu keys of one float, add", job_van(),
                       (unsigned long long)stats.rows);
        line_once(m, "bytes", "key and value alone", settings, "server: table memory per key",
                  (double)stats.bytes / (double)stats.rows, BARE_BYTES);
        line_once(m, "bytes", "key and value alone", settings, "server: resident memory per key",
                  (after.server.rss - before.server.rss) / (double)stats.rows, BARE_BYTES);
    }
    free(ones);
    free(keys);
    paramo_table_close(table);
    return code;
}

/* ---- many requests ---- */

static int push_small(const struct memory *m, paramo_table *table, uint64_t count)
{
    struct load_window w = {.worker = m->job.worker, .table = table, .size = WINDOW};
    static uint64_t keys[ARRAYS];
    static float vals[ARRAYS];
    int code = 0;
    for (uint64_t i = 0; i < count && code == 0; i++) {
        paramo_kv kv;
        paramo_kv_init(&kv);
        keys[i % ARRAYS] = load_key(i % SMALL_KEYS);
        kv.keys = &keys[i % ARRAYS];
        kv.vals = &vals[i % ARRAYS];
        kv.n = kv.vals_len = 1;
        code = load_issue(&w, LOAD_PUSH, &kv);
    }
    int end = load_drain(&w);
    return code != 0 ? code : end;
}

static int many_requests(const struct memory *m)
{
    struct both before, after;
    paramo_table *table;
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(m->job.worker, "requests", &o, &table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    int code = push_small(m, table, 2 * SMALL_KEYS); /* so that pools and tables have their final size */
    if (code == 0)
        code = facts(m, &before);
    if (code == 0)
        code = push_small(m, table, m->settings->count);
    if (code == 0)
        code = facts(m, &after);
    if (code == 0) {
        char settings[96];
        (void)snprintf(settings, sizeof settings, "%s, 1 server, after %llu pushes of one key, 64 in flight",
                       job_van(), (unsigned long long)m->settings->count);
        lines_unchanged(m, settings, &before, &after);
    }
    paramo_table_close(table);
    return code;
}

/* ---- many connections ---- */

/* Opens and closes workers, one after the other, each with connections of its own. */
static int connect_often(const struct memory *m, uint32_t from, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        paramo_worker *worker;
        paramo_table *table;
        paramo_err err = paramo_worker_open(m->job.node, from + (uint32_t)i, &worker);
        if (err != PARAMO_OK)
            return bench_failed(err, "cannot open a worker");
        err = paramo_table_open(worker, "requests", NULL, &table);
        int code = err == PARAMO_OK ? 0 : bench_failed(err, "cannot open the table");
        if (code == 0) {
            static const uint64_t key = 7;
            static float value;
            struct load_window w = {.worker = worker, .table = table, .size = 1};
            paramo_kv kv;
            paramo_kv_init(&kv);
            kv.keys = &key;
            kv.vals = &value;
            kv.n = kv.vals_len = 1;
            code = load_issue(&w, LOAD_PUSH, &kv);
            if (code == 0)
                code = load_drain(&w);
            paramo_table_close(table);
        }
        paramo_worker_close(worker);
        if (code != 0)
            return code;
    }
    return 0;
}

static int many_connections(const struct memory *m)
{
    enum { WARM_UP = 10 };
    struct both before, after;
    int code = connect_often(m, 1, WARM_UP);
    if (code == 0)
        code = facts(m, &before);
    if (code == 0)
        code = connect_often(m, 1 + WARM_UP, m->settings->connections);
    if (code == 0)
        code = facts(m, &after);
    if (code == 0) {
        char settings[96];
        (void)snprintf(settings, sizeof settings, "%s, 1 server, after %llu workers opened, used and closed",
                       job_van(), (unsigned long long)m->settings->connections);
        lines_unchanged(m, settings, &before, &after);
    }
    return code;
}

int bench_memory(const struct bench_settings *s, struct bench_report *r)
{
    struct memory m = {.settings = s, .report = r};
    int code = job_start(&m.job, 1, 0);
    if (code == 0)
        code = per_key(&m);
    if (code == 0)
        code = many_requests(&m);
    if (code == 0)
        code = many_connections(&m);
    job_stop(&m.job);
    return code;
}
