/*
 * bench replicate, bench failover: what copies of rows cost and gain. `replicate`: pushes to a job with one and with
 * two copies of each row, beside the same pushes to a job of as many servers without copies. `failover`: the time from
 * the death of a server, which is killed under load, to the answer to the first push with rows of it, beside the time
 * after which a bare connection ends because its process is killed. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { SERVERS = 3, COPIES_MAX = 2, BATCH = 1000, WINDOW = 8, KEYS = 100000, BATCHES = 32 };

static const char bare[] = "the same without copies";

/* ---- what copies cost ---- */

struct load {
    struct bench_job job;
    paramo_table *table;
};

struct replicate {
    struct load with[COPIES_MAX + 1];
    uint64_t *keys; /* BATCHES batches */
    float *ones;    /* one batch */
    size_t pushes;  /* of a sample */
};

static int load_start(struct load *l, unsigned replicas)
{
    int code = job_start(&l->job, SERVERS, replicas);
    if (code != 0)
        return code;
    paramo_table_options o;
    paramo_table_options_init(&o);
    paramo_err err = paramo_table_open(l->job.worker, "copied", &o, &l->table);
    return err == PARAMO_OK ? 0 : bench_failed(err, "cannot open the table");
}

static void load_stop(struct load *l)
{
    paramo_table_close(l->table);
    job_stop(&l->job);
}

/* Draws batches of keys from the whole table, so that every server has a part of each. */
static int make_batches(struct replicate *m)
{
    uint64_t seed = 1;
    m->keys = malloc(sizeof *m->keys * BATCHES * BATCH);
    m->ones = malloc(sizeof *m->ones * BATCH);
    if (!m->keys || !m->ones)
        return code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
    for (size_t i = 0; i < BATCHES; i++)
        load_draw(&seed, KEYS, m->keys + i * BATCH, BATCH);
    for (size_t i = 0; i < BATCH; i++)
        m->ones[i] = 1;
    return 0;
}

/* Issues `count` pushes of n keys each, `window` in flight. Sets the seconds that they took. */
static int push(struct replicate *m, struct load *l, size_t count, size_t n, size_t window, double *seconds)
{
    struct load_window w = {.worker = l->job.worker, .table = l->table, .size = window};
    int code = 0;
    uint64_t start = raw_now_ns();
    for (size_t i = 0; i < count && code == 0; i++) {
        paramo_kv kv;
        paramo_kv_init(&kv);
        kv.keys = m->keys + i % BATCHES * BATCH;
        kv.vals = m->ones;
        kv.n = kv.vals_len = n;
        code = load_issue(&w, LOAD_PUSH, &kv);
    }
    int end = load_drain(&w);
    *seconds = raw_seconds_since(start);
    return code != 0 ? code : end;
}

static int measure_cost(struct replicate *m, const struct bench_settings *s, struct bench_report *r)
{
    char settings[120];
    struct bench_line *many[COPIES_MAX + 1], *one[COPIES_MAX + 1];
    (void)snprintf(settings, sizeof settings,
                   "%s, %d servers, sparse, one float, batches of %d, %d in flight", job_van(), (int)SERVERS,
                   (int)BATCH, (int)WINDOW);
    for (int k = 1; k <= COPIES_MAX; k++)
        many[k] = report_line(r, "replicate", "M keys/s", BENCH_HIGHER, bare, settings, "push, %d cop%s", k,
                              k > 1 ? "ies" : "y");
    (void)snprintf(settings, sizeof settings, "%s, %d servers, one key and one float, one at a time",
                   job_van(), (int)SERVERS);
    for (int k = 1; k <= COPIES_MAX; k++)
        one[k] = report_line(r, "replicate", "us", BENCH_LOWER, bare, settings, "small push, %d cop%s, mean",
                             k, k > 1 ? "ies" : "y");
    for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
        double batch[COPIES_MAX + 1], small[COPIES_MAX + 1];
        for (int k = 0; k <= COPIES_MAX; k++) {
            int code = push(m, &m->with[k], m->pushes, BATCH, WINDOW, &batch[k]);
            if (code == 0)
                code = push(m, &m->with[k], m->pushes, 1, 1, &small[k]);
            if (code != 0)
                return code;
        }
        double keys = 1e-6 * (double)(m->pushes * BATCH), us = 1e6 / (double)m->pushes;
        for (int k = 1; k <= COPIES_MAX && pair > 0; k++) {
            line_pair(many[k], keys / batch[k], keys / batch[0]);
            line_pair(one[k], us * small[k], us * small[0]);
        }
    }
    return 0;
}

int bench_replicate(const struct bench_settings *s, struct bench_report *r)
{
    struct replicate m = {.pushes = s->quick ? 50 : 500};
    int code = make_batches(&m);
    for (unsigned k = 0; k <= COPIES_MAX && code == 0; k++)
        code = load_start(&m.with[k], k);
    if (code == 0)
        code = measure_cost(&m, s, r);
    if (code == 0)
        bench_applied_window(s, r);
    for (unsigned k = 0; k <= COPIES_MAX; k++)
        load_stop(&m.with[k]);
    free(m.ones);
    free(m.keys);
    return code;
}

/* ---- what copies gain ---- */

/* The far end sends nothing until it is killed. */
static void serve_silence(int fd)
{
    char byte;
    while (recv(fd, &byte, 1, 0) > 0)
        ;
}

static int time_of_bare_death(double *ms)
{
    struct bench_peer peer = {0};
    char byte;
    int code = peer_start(&peer, serve_silence);
    if (code != 0)
        return code;
    uint64_t start = raw_now_ns();
    if (kill(peer.pid, SIGKILL) != 0 || recv(peer.fd, &byte, 1, 0) > 0)
        code = bench_system("bare connection");
    *ms = 1e3 * raw_seconds_since(start);
    peer_stop(&peer);
    return code;
}

/* There is one job for each death, because a job needs time to complete its copies again. */
static int time_of_death(struct replicate *m, double *ms)
{
    struct load *l = &m->with[1];
    double seconds = 0;
    l->job.quiet = 1;
    int code = load_start(l, 1);
    if (code == 0)
        code = push(m, l, m->pushes, BATCH, WINDOW, &seconds);
    if (code == 0) {
        uint64_t start = raw_now_ns();
        job_kill_server(&l->job, SERVERS / 2);
        code = push(m, l, 1, BATCH, 1, &seconds);
        *ms = 1e3 * raw_seconds_since(start);
    }
    load_stop(l);
    *l = (struct load){0};
    return code;
}

int bench_failover(const struct bench_settings *s, struct bench_report *r)
{
    struct replicate m = {.pushes = BATCHES};
    char settings[120];
    (void)snprintf(settings, sizeof settings,
                   "%s, %d servers, 1 copy, batches of %d keys, one server killed by SIGKILL", job_van(),
                   (int)SERVERS, (int)BATCH);
    struct bench_line *line =
        report_line(r, "failover", "ms", BENCH_LOWER, "a bare connection tells that its peer was killed",
                    settings, "from a server's death to the next push");
    int code = make_batches(&m);
    for (uint64_t pair = 0; pair < s->pairs && code == 0; pair++) {
        double ms, raw_ms;
        code = time_of_death(&m, &ms);
        if (code == 0)
            code = time_of_bare_death(&raw_ms);
        if (code == 0)
            line_pair(line, ms, raw_ms);
    }
    free(m.ones);
    free(m.keys);
    return code;
}
