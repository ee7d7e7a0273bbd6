/*
 * Rows as a range of keys, beside the same rows with an array of keys: bytes of a row in both directions, with headers, and
 * rows a second. Two servers over TCP; rows of one float, to which a push adds.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"

#include "paramo/paramo.h"

#include <stdio.h>
#include <stdlib.h>

struct ranges {
    struct bench_job job;
    paramo_table *table;
    uint64_t rows;
    uint64_t *keys;
    float *values;
};

struct figures {
    double bytes, rows_per_s;
};

static paramo_err request(struct ranges *m, enum load_op op, int range, uint64_t *ts)
{
    paramo_worker *worker = m->job.worker;
    if (range) {
        paramo_range r;
        paramo_range_init(&r);
        r.end = m->rows;
        r.vals = m->values;
        r.vals_len = m->rows;
        return op == LOAD_PUSH ? paramo_push_range(worker, m->table, &r, NULL, ts)
                               : paramo_pull_range(worker, m->table, &r, NULL, ts);
    }
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = m->keys;
    kv.n = m->rows;
    kv.vals = m->values;
    kv.vals_len = m->rows;
    return op == LOAD_PUSH ? paramo_push(worker, m->table, &kv, NULL, ts)
                           : paramo_pull(worker, m->table, &kv, NULL, ts);
}

static int measure_one(struct ranges *m, enum load_op op, int range, struct figures *f)
{
    paramo_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    uint64_t ts, start = raw_now_ns();
    paramo_worker_counters(m->job.worker, &before);
    paramo_err err = request(m, op, range, &ts);
    if (err == PARAMO_OK)
        err = paramo_wait(m->job.worker, ts, 0);
    if (err != PARAMO_OK)
        return bench_failed(err, "a request");
    double rows = (double)m->rows;
    f->rows_per_s = rows / raw_seconds_since(start);
    paramo_worker_counters(m->job.worker, &after);
    f->bytes =
        (double)(after.bytes_sent - before.bytes_sent + after.bytes_received - before.bytes_received) / rows;
    return 0;
}

static int measure(struct ranges *m, const char *kind, const struct bench_settings *s, struct bench_report *r)
{
    char settings[100];
    (void)snprintf(settings, sizeof settings, "%s, 2 servers, %s f32 table, %llu rows", job_van(), kind,
                   (unsigned long long)m->rows);
    for (int op = LOAD_PUSH; op <= LOAD_PULL; op++) {
        const char *verb = op == LOAD_PUSH ? "push" : "pull";
        struct bench_line *bytes = report_line(r, "ranges", "bytes/row", BENCH_LOWER, "with an array of keys",
                                               settings, "%s of a range: bytes", verb);
        struct bench_line *rows = report_line(r, "ranges", "1/s", BENCH_HIGHER, "with an array of keys",
                                              settings, "%s of a range: rows", verb);
        for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
            struct figures range, keys;
            int code = measure_one(m, (enum load_op)op, 1, &range);
            if (code == 0)
                code = measure_one(m, (enum load_op)op, 0, &keys);
            if (code != 0)
                return code;
            if (pair > 0) {
                line_pair(bytes, range.bytes, keys.bytes);
                line_pair(rows, range.rows_per_s, keys.rows_per_s);
            }
        }
    }
    return 0;
}

static int measure_table(struct ranges *m, paramo_table_kind kind, const struct bench_settings *s,
                         struct bench_report *r)
{
    const char *name = kind == PARAMO_TABLE_DENSE ? "dense" : "sparse";
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = kind;
    o.rows = kind == PARAMO_TABLE_DENSE ? m->rows : 0;
    paramo_err err = paramo_table_open(m->job.worker, name, &o, &m->table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    int code = measure(m, name, s, r);
    paramo_table_close(m->table);
    return code;
}

int bench_ranges(const struct bench_settings *s, struct bench_report *r)
{
    struct ranges m = {.rows = s->quick ? 100000 : 1000000};
    int code = job_start(&m.job, 2, 0);
    m.keys = malloc(m.rows * sizeof *m.keys);
    m.values = calloc(m.rows, sizeof *m.values); /* zeros: sums stay finite however long it runs */
    if (code == 0 && (!m.keys || !m.values))
        code = bench_system("keys and values");
    for (uint64_t i = 0; code == 0 && i < m.rows; i++)
        m.keys[i] = i;
    if (code == 0)
        code = measure_table(&m, PARAMO_TABLE_DENSE, s, r);
    if (code == 0)
        code = measure_table(&m, PARAMO_TABLE_SPARSE, s, r);
    job_stop(&m.job);
    free(m.keys);
    free(m.values);
    return code;
}
