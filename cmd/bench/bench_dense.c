/*
 * bench dense: dense values over TCP between processes: each request pushes (`add`) or pulls one row of a dense f32
 * table, beside a bare socket whose far end adds to the same kind of array (push) or sends it (pull). Tests:
 * test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"

#include "paramo/paramo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 8 }; /* so that the rows in flight differ, on both sides */

struct dense {
    size_t bytes, count, window;
    struct bench_job *job;
    struct bench_peer *peer;
    paramo_table *table;
    float *rows;
};

static int paramo_values(struct dense *d, enum load_op op, double *rate)
{
    struct load_window w = {.worker = d->job->worker, .table = d->table, .size = d->window};
    uint64_t keys[ROWS];
    size_t floats = d->bytes / sizeof(float);
    uint64_t start = raw_now_ns();
    int code = 0;
    for (size_t i = 0; i < d->count && code == 0; i++) {
        size_t row = i % ROWS;
        paramo_kv kv;
        paramo_kv_init(&kv);
        keys[row] = row;
        kv.keys = &keys[row];
        kv.n = 1;
        kv.vals = d->rows + row * floats;
        kv.vals_len = floats;
        code = load_issue(&w, op, &kv);
    }
    int end = load_drain(&w);
    *rate = (double)(d->count * d->bytes) / raw_seconds_since(start) / 1e9;
    return code != 0 ? code : end;
}

static int raw_values(const struct dense *d, enum load_op op, double *rate)
{
    struct raw_dense raw = {.row_bytes = d->bytes, .n_rows = ROWS, .window = d->window, .rows = d->rows};
    uint64_t start = raw_now_ns();
    int failed = op == LOAD_PUSH ? raw_dense_push(d->peer->fd, &raw, d->count)
                                 : raw_dense_pull(d->peer->fd, &raw, d->count);
    *rate = (double)(d->count * d->bytes) / raw_seconds_since(start) / 1e9;
    return failed ? bench_system("bare socket") : 0;
}

static int measure(struct dense *d, const struct bench_settings *s, struct bench_report *r)
{
    static const size_t windows[] = {1, 8};
    const char *size = d->bytes >= (size_t)16 << 20 ? "16 MiB" : "1 MiB";
    char settings[100];
    (void)snprintf(settings, sizeof settings, "%s, 1 server, dense f32 table, add, one value a request",
                   job_van());
    for (int op = LOAD_PUSH; op <= LOAD_PULL; op++) {
        for (size_t i = 0; i < sizeof windows / sizeof *windows; i++) {
            struct bench_line *line = report_line(
                r, "dense", "GB/s", BENCH_HIGHER,
                op == LOAD_PUSH ? "bare TCP socket whose receiver runs the same add" : "bare TCP socket",
                settings, "%s %s, window %zu", op == LOAD_PUSH ? "push" : "pull", size, windows[i]);
            d->window = windows[i];
            for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
                double value, raw;
                int code = paramo_values(d, (enum load_op)op, &value);
                if (code == 0)
                    code = raw_values(d, (enum load_op)op, &raw);
                if (code != 0)
                    return code;
                if (pair > 0)
                    line_pair(line, value, raw);
            }
        }
    }
    return 0;
}

static int measure_size(struct dense *d, const struct bench_settings *s, struct bench_report *r)
{
    struct raw_dense raw = {.row_bytes = d->bytes, .n_rows = ROWS};
    paramo_table_options o;
    char name[32];
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_DENSE;
    o.dim = (uint32_t)(d->bytes / sizeof(float));
    o.rows = ROWS;
    (void)snprintf(name, sizeof name, "dense%zu", d->bytes);
    paramo_err err = paramo_table_open(d->job->worker, name, &o, &d->table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    int code = 0;
    d->rows = aligned_alloc(64, ROWS * d->bytes);
    if (!d->rows || raw_dense_open(d->peer->fd, &raw) != 0)
        code = bench_system("dense values");
    if (code == 0) {
        memset(d->rows, 0, ROWS * d->bytes); /* zeros, so that sums stay finite */
        code = measure(d, s, r);
    }
    free(d->rows);
    d->rows = NULL;
    paramo_table_close(d->table);
    return code;
}

int bench_dense(const struct bench_settings *s, struct bench_report *r)
{
    struct bench_job job = {0};
    struct bench_peer peer = {0};
    struct dense d = {.job = &job, .peer = &peer};
    int code = peer_start(&peer, raw_dense_serve);
    if (code == 0)
        code = job_start(&job, 1, 0);
    for (size_t mib = 1; mib <= 16 && code == 0; mib += 15) {
        d.bytes = mib << 20;
        d.count = s->quick ? (mib == 1 ? 16 : 8) : (mib == 1 ? 96 : 12);
        code = measure_size(&d, s, r);
    }
    job_stop(&job);
    peer_stop(&peer);
    return code;
}
