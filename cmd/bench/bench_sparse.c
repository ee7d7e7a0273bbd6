/*
 * bench sparse: a sparse table of one float a key, with `add`: pushes of new keys, then pushes and pulls of known keys,
 * over TCP between processes and embedded. Each is shown beside a bare prefetched table in this process (the cost of
 * the look-ups alone) and, for TCP, beside the same bare table behind a bare socket.
 *
 * Keys are random 64-bit numbers; a batch is drawn from all of them and sorted, as the API requires. Tests:
 * test/e2e/bench.sh.
 */
#include "cmd/bench/bench_bare.h"
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 10000, WINDOW = 4, BATCHES_MAX = 256 };

static const char bare_process[] = "bare prefetched table in process";
static const char bare_socket[] = "bare prefetched table behind a bare socket";

struct sparse {
    const struct bench_settings *settings;
    struct bench_report *report;
    struct bench_job job;
    struct bench_peer peer; /* pid 0: embedded, without a socket to compare with */
    struct bare_table bare;
    paramo_table *table;
    size_t batch, batches; /* keys of a batch, and number of batches */
    uint64_t *keys;        /* [batches * batch], or the keys that are inserted next */
    float *ones, *pulled;  /* one batch; WINDOW batches */
    char where[160];
};

/* ---- runs of batches: seconds ---- */

static paramo_kv batch_of(const struct sparse *m, enum load_op op, size_t i)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = m->keys + i % m->batches * m->batch;
    kv.n = m->batch;
    kv.vals = op == LOAD_PUSH ? m->ones : m->pulled + i % WINDOW * m->batch;
    kv.vals_len = m->batch;
    return kv;
}

static int run_paramo(struct sparse *m, enum load_op op, size_t from, size_t count, double *seconds)
{
    struct load_window w = {.worker = m->job.worker, .table = m->table, .size = WINDOW};
    int code = 0;
    uint64_t start = raw_now_ns();
    for (size_t i = from; i < from + count && code == 0; i++) {
        paramo_kv kv = batch_of(m, op, i);
        code = load_issue(&w, op, &kv);
    }
    int end = load_drain(&w);
    *seconds += raw_seconds_since(start);
    return code != 0 ? code : end;
}

static int run_process(struct sparse *m, enum load_op op, size_t from, size_t count, double *seconds)
{
    uint64_t start = raw_now_ns();
    for (size_t i = from; i < from + count; i++) {
        paramo_kv kv = batch_of(m, op, i);
        if (op == LOAD_PUSH)
            bare_add(&m->bare, kv.keys, kv.vals, kv.n);
        else
            bare_get(&m->bare, kv.keys, kv.vals, kv.n);
    }
    *seconds += raw_seconds_since(start);
    return 0;
}

static int run_socket(struct sparse *m, enum load_op load, size_t from, size_t count, double *seconds)
{
    enum bare_op op = load == LOAD_PUSH ? BARE_ADD : BARE_GET;
    uint64_t start = raw_now_ns();
    for (size_t asked = 0, answered = 0; answered < count;) {
        paramo_kv kv =
            batch_of(m, load, from + (asked < count && asked - answered < WINDOW ? asked : answered));
        int failed;
        if (asked < count && asked - answered < WINDOW) {
            failed = bare_request(m->peer.fd, op, kv.keys, kv.vals, kv.n);
            asked++;
        } else {
            failed = bare_answer(m->peer.fd, op, kv.vals, kv.n);
            answered++;
        }
        if (failed)
            return bench_system("bare socket");
    }
    *seconds += raw_seconds_since(start);
    return 0;
}

/* ---- lines ---- */

typedef int run_fn(struct sparse *m, enum load_op op, size_t from, size_t count, double *seconds);

struct lines {
    struct bench_line *line[2];
    size_t n;
};

static struct lines lines_open(const struct sparse *m, const char *what)
{
    struct lines l = {.n = m->peer.pid != 0 ? 2 : 1};
    const char *raw[2] = {bare_process, bare_socket};
    for (size_t i = 0; i < l.n; i++)
        l.line[i] = report_line(m->report, "sparse", "M keys/s", BENCH_HIGHER, raw[i], m->where, "%s%s",
                                m->peer.pid != 0 ? "" : "embedded, ", what);
    return l;
}

/* The seconds of `count` batches; with `pulled`, WINDOW batches at a time are pulled before, without being timed. */
static int run_batches(struct sparse *m, run_fn *run, enum load_op op, size_t from, size_t count, int pulled,
                       double *seconds)
{
    double ignored = 0;
    int code = 0;
    *seconds = 0;
    if (!pulled)
        return run(m, op, from, count, seconds);
    for (size_t i = 0; i < count && code == 0; i += WINDOW) {
        code = run(m, LOAD_PULL, from + i, WINDOW, &ignored);
        if (code == 0)
            code = run(m, op, from + i, WINDOW, seconds);
    }
    return code;
}

/* Takes a sample of Paramo and one of each raw limit, with the same batches. */
static int sample(struct sparse *m, const struct lines *l, enum load_op op, size_t from, size_t count,
                  int pulled, int warm_up)
{
    run_fn *const raw[2] = {run_process, run_socket};
    double keys = 1e-6 * (double)(count * m->batch), seconds, raw_seconds;
    int code = run_batches(m, run_paramo, op, from, count, pulled, &seconds);
    for (size_t i = 0; i < l->n && code == 0; i++) {
        code = run_batches(m, raw[i], op, from, count, pulled, &raw_seconds);
        if (code == 0 && !warm_up)
            line_pair(l->line[i], keys / seconds, keys / raw_seconds);
    }
    return code;
}

static int measure_insert(struct sparse *m)
{
    struct lines l = lines_open(m, "push of new keys");
    size_t pairs = (size_t)m->settings->pairs;
    size_t count = (size_t)(m->settings->keys / (pairs * m->batch));
    for (size_t pair = 0; pair < pairs; pair++) {
        m->batches = count;
        for (size_t i = 0; i < count; i++)
            load_range((pair * count + i) * m->batch, m->keys + i * m->batch, m->batch);
        int code = sample(m, &l, LOAD_PUSH, 0, count, 0, 0);
        if (code != 0)
            return code;
    }
    return 0;
}

static int measure_known(struct sparse *m, const char *what, enum load_op op, int pulled)
{
    struct lines l = lines_open(m, what);
    size_t count = m->settings->quick ? 4 : 64;
    for (size_t pair = 0; pair <= m->settings->pairs; pair++) { /* the first warms up */
        int code = sample(m, &l, op, pair * count, count, pulled, pair == 0);
        if (code != 0)
            return code;
    }
    return 0;
}

/* ---- both ways of running ---- */

static int prepare(struct sparse *m)
{
    uint64_t keys = m->settings->keys;
    size_t inserted = (size_t)(keys / m->settings->pairs);
    m->batch = keys / m->settings->pairs < BATCH ? inserted : BATCH;
    m->batches = keys / m->batch < BATCHES_MAX ? (size_t)(keys / m->batch) : BATCHES_MAX;
    size_t room = m->batches * m->batch > inserted ? m->batches * m->batch : inserted;
    m->keys = malloc(room * sizeof *m->keys);
    m->ones = malloc(m->batch * sizeof *m->ones);
    m->pulled = calloc(WINDOW * m->batch, sizeof *m->pulled);
    if (!m->keys || !m->ones || !m->pulled || bare_open(&m->bare, keys) != 0)
        return code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
    for (size_t i = 0; i < m->batch; i++)
        m->ones[i] = 1;
    if (m->peer.pid != 0 && (bare_request(m->peer.fd, BARE_OPEN, NULL, NULL, (size_t)keys) != 0 ||
                             bare_answer(m->peer.fd, BARE_OPEN, NULL, (size_t)keys) != 0))
        return bench_system("bare socket");
    (void)snprintf(m->where, sizeof m->where,
                   "%s, 1 server, %.3g M keys of one float, add, batches of %zu, window %d",
                   m->peer.pid != 0 ? job_van() : "embedded", 1e-6 * (double)keys, m->batch, (int)WINDOW);
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(m->job.worker, "sparse", &o, &m->table);
    return err == PARAMO_OK ? 0 : bench_failed(err, "cannot open the table");
}

static int measure(struct sparse *m)
{
    int code = measure_insert(m);
    if (code != 0)
        return code;
    uint64_t seed = 1;
    size_t inserted =
        (size_t)(m->settings->keys / (m->settings->pairs * m->batch) * m->settings->pairs * m->batch);
    m->batches = inserted / m->batch < BATCHES_MAX ? inserted / m->batch : BATCHES_MAX;
    for (size_t i = 0; i < m->batches; i++)
        load_draw(&seed, inserted, m->keys + i * m->batch, m->batch);
    code = measure_known(m, "push of known keys", LOAD_PUSH, 0);
    if (code == 0)
        code = measure_known(m, "pull of known keys", LOAD_PULL, 0);
    if (code == 0)
        code = measure_known(m, "push of keys just pulled", LOAD_PUSH, 1);
    return code;
}

static int run(const struct bench_settings *s, struct bench_report *r, int embedded)
{
    struct sparse m = {.settings = s, .report = r};
    int code = embedded ? 0 : peer_start(&m.peer, bare_serve);
    if (code == 0)
        code = embedded ? job_start_embedded(&m.job) : job_start(&m.job, 1, 0);
    if (code == 0)
        code = prepare(&m);
    if (code == 0)
        code = measure(&m);
    paramo_table_close(m.table);
    job_stop(&m.job);
    peer_stop(&m.peer);
    bare_close(&m.bare);
    free(m.pulled);
    free(m.ones);
    free(m.keys);
    return code;
}

int bench_sparse(const struct bench_settings *s, struct bench_report *r)
{
    int code = run(s, r, 0);
    return code == 0 ? run(s, r, 1) : code;
}
