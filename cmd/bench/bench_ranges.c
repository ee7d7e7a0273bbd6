/*
 * bench ranges: rows by a range of keys, beside the same rows by an array of keys; and one column of rows of 16 floats,
 * beside whole rows: the bytes of a row in both directions, with headers, and rows a second. There are two servers over
 * TCP; a push adds to the floats of the rows. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"

#include "paramo/paramo.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* How a request names its rows. */
enum way { WITH_KEYS, AS_RANGE, ONE_COLUMN };

struct ranges {
    struct bench_job job;
    paramo_table *table;
    uint32_t dim;
    uint64_t rows;
    uint64_t *keys;
    float *values;
};

struct figures {
    double bytes, rows_per_s;
};

static paramo_err request(struct ranges *m, enum load_op op, enum way way, uint64_t *ts)
{
    paramo_worker *worker = m->job.worker;
    if (way != WITH_KEYS) {
        paramo_request_options o;
        paramo_request_options_init(&o);
        o.columns = way == ONE_COLUMN;
        paramo_range r;
        paramo_range_init(&r);
        r.end = m->rows;
        r.vals = m->values;
        r.vals_len = m->rows * (way == ONE_COLUMN ? 1 : m->dim);
        return op == LOAD_PUSH ? paramo_push_range(worker, m->table, &r, &o, ts)
                               : paramo_pull_range(worker, m->table, &r, &o, ts);
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

static int measure_one(struct ranges *m, enum load_op op, enum way way, struct figures *f)
{
    paramo_counters before = {.size = sizeof before}, after = {.size = sizeof after};
    uint64_t ts, start = raw_now_ns();
    paramo_worker_counters(m->job.worker, &before);
    paramo_err err = request(m, op, way, &ts);
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
    bool wide = m->dim > 1;
    const char *than = wide ? "of whole rows" : "with an array of keys";
    enum way way = wide ? ONE_COLUMN : AS_RANGE, other = wide ? AS_RANGE : WITH_KEYS;
    (void)snprintf(settings, sizeof settings, "%s, 2 servers, %s f32 table, %llu rows of %u", job_van(), kind,
                   (unsigned long long)m->rows, m->dim);
    for (int op = LOAD_PUSH; op <= LOAD_PULL; op++) {
        const char *verb = op == LOAD_PUSH ? "push" : "pull";
        struct bench_line *bytes = report_line(r, "ranges", "bytes/row", BENCH_LOWER, than, settings,
                                               "%s of %s: bytes", verb, wide ? "a column" : "a range");
        struct bench_line *rows = report_line(r, "ranges", "1/s", BENCH_HIGHER, than, settings,
                                              "%s of %s: rows", verb, wide ? "a column" : "a range");
        for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
            struct figures those, others;
            int code = measure_one(m, (enum load_op)op, way, &those);
            if (code == 0)
                code = measure_one(m, (enum load_op)op, other, &others);
            if (code != 0)
                return code;
            if (pair > 0) {
                line_pair(bytes, those.bytes, others.bytes);
                line_pair(rows, those.rows_per_s, others.rows_per_s);
            }
        }
    }
    return 0;
}

static int measure_table(struct ranges *m, paramo_table_kind kind, uint32_t dim,
                         const struct bench_settings *s, struct bench_report *r)
{
    const char *name = kind == PARAMO_TABLE_DENSE ? "dense" : "sparse";
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = kind;
    o.dim = m->dim = dim;
    o.rows = kind == PARAMO_TABLE_DENSE ? m->rows : 0;
    char table[20];
    (void)snprintf(table, sizeof table, "%s%u", name, dim);
    paramo_err err = paramo_table_open(m->job.worker, table, &o, &m->table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    int code = measure(m, name, s, r);
    paramo_table_close(m->table);
    return code;
}

int bench_ranges(const struct bench_settings *s, struct bench_report *r)
{
    enum { WIDE = 16 };
    struct ranges m = {.rows = s->quick ? 100000 : 1000000};
    int code = job_start(&m.job, 2, 0);
    m.keys = malloc(m.rows * sizeof *m.keys);
    m.values = calloc(m.rows * WIDE, sizeof *m.values); /* zeros, so that sums stay finite */
    if (code == 0 && (!m.keys || !m.values))
        code = bench_system("keys and values");
    for (uint64_t i = 0; code == 0 && i < m.rows; i++)
        m.keys[i] = i;
    for (uint32_t dim = 1; code == 0 && dim <= WIDE; dim += WIDE - 1) {
        code = measure_table(&m, PARAMO_TABLE_DENSE, dim, s, r);
        if (code == 0)
            code = measure_table(&m, PARAMO_TABLE_SPARSE, dim, s, r);
    }
    job_stop(&m.job);
    free(m.keys);
    free(m.values);
    return code;
}
