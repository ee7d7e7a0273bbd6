/*
 * bench rate: a stream of small requests over TCP between processes: one key with one float each, 64 in flight, beside
 * bare sockets that answer every message, with one call for each message and with one call for all available ones.
 * Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"

#include "paramo/paramo.h"

#include <stdio.h>

/* ARRAYS: enough that no two requests in flight use the same one. */
enum { WINDOW = LOAD_WINDOW_MAX, KEYS = 4096, ARRAYS = 2 * WINDOW };

struct rate {
    struct bench_job job;
    struct bench_peer single, many;
    struct raw_wait wait;
    paramo_table *table;
    size_t count;
};

static int paramo_stream(struct rate *m, enum load_op op, double *per_s)
{
    struct load_window w = {.worker = m->job.worker, .table = m->table, .size = WINDOW};
    static uint64_t keys[ARRAYS];
    static float vals[ARRAYS];
    int code = 0;
    uint64_t start = raw_now_ns();
    for (size_t i = 0; i < m->count && code == 0; i++) {
        paramo_kv kv;
        paramo_kv_init(&kv);
        keys[i % ARRAYS] = load_key(i % KEYS);
        kv.keys = &keys[i % ARRAYS];
        kv.n = 1;
        kv.vals = &vals[i % ARRAYS];
        kv.vals_len = 1;
        code = load_issue(&w, op, &kv);
    }
    int end = load_drain(&w);
    *per_s = (double)m->count / raw_seconds_since(start);
    return code != 0 ? code : end;
}

static int raw_stream(struct rate *m, int many, double *per_s)
{
    uint64_t start = raw_now_ns();
    int failed = many ? raw_stream_many(m->many.fd, &m->wait, m->count, WINDOW)
                      : raw_stream_single(m->single.fd, m->count, WINDOW);
    *per_s = (double)m->count / raw_seconds_since(start);
    return failed ? bench_system("bare socket") : 0;
}

static int measure(struct rate *m, const struct bench_settings *s, struct bench_report *r)
{
    struct bench_line *line[2][2];
    char settings[80];
    (void)snprintf(settings, sizeof settings, "%s, 1 server, one key and one float, 64 in flight", job_van());
    for (int op = LOAD_PUSH; op <= LOAD_PULL; op++)
        for (int many = 0; many < 2; many++)
            line[op][many] = report_line(r, "rate", "1/s", BENCH_HIGHER,
                                         many ? "bare socket, 128 bytes, many messages to a call"
                                              : "bare socket, 128 bytes, a call per message",
                                         settings, "small %s", op ? "pulls" : "pushes");
    for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
        double at[2], raw[2];
        int code = 0;
        for (int i = 0; i < 2 && code == 0; i++) {
            code = paramo_stream(m, (enum load_op)i, &at[i]);
            if (code == 0)
                code = raw_stream(m, i, &raw[i]);
        }
        if (code != 0)
            return code;
        for (int i = 0; i < 4 && pair > 0; i++)
            line_pair(line[i >> 1][i & 1], at[i >> 1], raw[i & 1]);
    }
    return 0;
}

static int prepare(struct rate *m)
{
    int code = peer_start(&m->single, raw_stream_single_serve);
    if (code == 0)
        code = peer_start(&m->many, raw_stream_many_serve);
    if (code == 0)
        code = job_start(&m->job, 1, 0);
    if (code != 0)
        return code;
    if (raw_wait_open(&m->wait, m->many.fd) != 0)
        return bench_system("epoll");
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(m->job.worker, "rate", &o, &m->table);
    return err == PARAMO_OK ? 0 : bench_failed(err, "cannot open the table");
}

int bench_rate(const struct bench_settings *s, struct bench_report *r)
{
    struct rate m = {.count = s->quick ? 2000 : 50000};
    int code = prepare(&m);
    if (code == 0)
        code = measure(&m, s, r);
    paramo_table_close(m.table);
    job_stop(&m.job);
    raw_wait_close(&m.wait);
    peer_stop(&m.single);
    peer_stop(&m.many);
    return code;
}
