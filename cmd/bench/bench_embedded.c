/*
 * bench embedded: pushes within one process (PARAMO_ROLE_ALL): a batch of known keys whose rows were just pulled, one
 * request at a time, beside a plain loop that applies the same optimizer to as many rows at known places. The
 * difference is all the work of Paramo but the arithmetic. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"

#include "paramo/paramo.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 10000, BATCHES = 16 };

/* Plain rows: `dim` parameters, then the optimizer's state, one row after the other. */
struct plain {
    float *rows;
    uint32_t *place; /* BATCHES * BATCH: the row of each key of each batch */
    size_t n_rows, row_floats, dim;
    const paramo_table_options *o;
};

static void plain_add(const struct plain *p, const uint32_t *place, const float *g)
{
    for (size_t i = 0; i < BATCH; i++) {
        float *w = p->rows + place[i] * p->row_floats;
        for (size_t j = 0; j < p->dim; j++)
            w[j] += g[i * p->dim + j];
    }
}

static void plain_adagrad(const struct plain *p, const uint32_t *place, const float *g)
{
    for (size_t i = 0; i < BATCH; i++) {
        float *w = p->rows + place[i] * p->row_floats, *n = w + p->dim;
        for (size_t j = 0; j < p->dim; j++) {
            float x = g[i * p->dim + j];
            n[j] += x * x;
            w[j] -= p->o->alpha * x / (p->o->beta + sqrtf(n[j]));
        }
    }
}

/* FTRL-proximal: McMahan et al., KDD 2013, Algorithm 1, with the weight kept. */
static void plain_ftrl(const struct plain *p, const uint32_t *place, const float *g)
{
    const paramo_table_options *o = p->o;
    for (size_t i = 0; i < BATCH; i++) {
        float *w = p->rows + place[i] * p->row_floats, *z = w + p->dim, *n = z + p->dim;
        for (size_t j = 0; j < p->dim; j++) {
            float x = g[i * p->dim + j];
            float root = sqrtf(n[j] + x * x);
            z[j] += x - (root - sqrtf(n[j])) / o->alpha * w[j];
            n[j] += x * x;
            float sign = z[j] < 0 ? -1.0F : 1.0F;
            w[j] = sign * z[j] <= o->l1 ? 0 : -(z[j] - sign * o->l1) / ((o->beta + root) / o->alpha + o->l2);
        }
    }
}

static const struct {
    const char *name;
    paramo_optimizer optimizer;
    uint32_t dim, state;
    void (*apply)(const struct plain *p, const uint32_t *place, const float *g);
} kinds[] = {
    {"add, 1 float", PARAMO_OPT_ADD, 1, 0, plain_add},
    {"add, 16 floats", PARAMO_OPT_ADD, 16, 0, plain_add},
    {"ftrl, 1 float", PARAMO_OPT_FTRL, 1, 2, plain_ftrl},
    {"adagrad, 16 floats", PARAMO_OPT_ADAGRAD, 16, 1, plain_adagrad},
};

struct embedded {
    paramo_worker *worker;
    paramo_table *table;
    uint64_t *keys;
    float *gradient, *pulled;
    struct plain plain;
};

static int request(struct embedded *e, enum load_op op, size_t batch, double *seconds)
{
    struct load_window w = {.worker = e->worker, .table = e->table, .size = 1};
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = e->keys + batch * BATCH;
    kv.n = BATCH;
    kv.vals = op == LOAD_PUSH ? e->gradient : e->pulled;
    kv.vals_len = BATCH * e->plain.dim;
    uint64_t start = raw_now_ns();
    int code = load_issue(&w, op, &kv);
    if (code == 0)
        code = load_drain(&w);
    *seconds += raw_seconds_since(start);
    return code;
}

/* Reads the rows as a pull does, so that the caches have them. */
static void plain_read(const struct plain *p, const uint32_t *place, float *out)
{
    for (size_t i = 0; i < BATCH; i++)
        for (size_t j = 0; j < p->dim; j++)
            out[i * p->dim + j] = p->rows[place[i] * p->row_floats + j];
}

static int measure(struct embedded *e, size_t kind, const struct bench_settings *s, struct bench_report *r)
{
    struct bench_line *line = report_line(
        r, "embedded", "M keys/s", BENCH_HIGHER, "plain loop of the optimizer over as many rows, just read",
        "one process, 1 server, 1 M keys known, batches of 10,000 just pulled, "
        "one request at a time",
        "push, %s", kinds[kind].name);
    size_t count = s->quick ? 4 : 64;
    for (uint64_t pair = 0; pair <= s->pairs; pair++) { /* the first warms up */
        double push = 0, plain = 0, ignored = 0;
        for (size_t i = 0; i < count; i++) {
            size_t batch = i % BATCHES;
            int code = request(e, LOAD_PULL, batch, &ignored);
            if (code == 0)
                code = request(e, LOAD_PUSH, batch, &push);
            if (code != 0)
                return code;
        }
        for (size_t i = 0; i < count; i++) {
            const uint32_t *place = e->plain.place + i % BATCHES * BATCH;
            plain_read(&e->plain, place, e->pulled);
            uint64_t start = raw_now_ns();
            kinds[kind].apply(&e->plain, place, e->gradient);
            plain += raw_seconds_since(start);
        }
        if (pair > 0)
            line_pair(line, 1e-6 * (double)(count * BATCH) / push, 1e-6 * (double)(count * BATCH) / plain);
    }
    return 0;
}

static int fill(struct embedded *e, size_t n_keys)
{
    double ignored = 0;
    for (size_t from = 0; from < n_keys; from += BATCH) { /* all keys, through batch 0 */
        load_range(from, e->keys, BATCH);
        int code = request(e, LOAD_PUSH, 0, &ignored);
        if (code != 0)
            return code;
    }
    uint64_t seed = 1;
    for (size_t i = 0; i < BATCHES; i++) {
        load_draw(&seed, n_keys, e->keys + i * BATCH, BATCH);
        for (size_t k = 0; k < BATCH; k++)
            e->plain.place[i * BATCH + k] = (uint32_t)(load_key(e->keys[i * BATCH + k]) % n_keys);
    }
    return 0;
}

static int run_kind(struct embedded *e, size_t kind, const struct bench_settings *s, struct bench_report *r)
{
    size_t n_keys = s->quick ? 100000 : 1000000;
    uint32_t dim = kinds[kind].dim;
    char name[32];
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.dim = dim;
    o.optimizer = kinds[kind].optimizer;
    (void)snprintf(name, sizeof name, "embedded%zu", kind);
    paramo_err err = paramo_table_open(e->worker, name, &o, &e->table);
    if (err != PARAMO_OK)
        return bench_failed(err, "cannot open the table");
    e->plain =
        (struct plain){.n_rows = n_keys, .dim = dim, .row_floats = dim * (1 + kinds[kind].state), .o = &o};
    e->plain.rows = calloc(n_keys * e->plain.row_floats, sizeof(float));
    e->plain.place = malloc(sizeof(uint32_t) * BATCHES * BATCH);
    e->keys = malloc(sizeof(uint64_t) * BATCHES * BATCH);
    e->gradient = malloc(sizeof(float) * BATCH * dim);
    e->pulled = malloc(sizeof(float) * BATCH * dim);
    int code = 0;
    if (!e->plain.rows || !e->plain.place || !e->keys || !e->gradient || !e->pulled)
        code = code_fail("bench", PARAMO_E_MEMORY, "out of memory for the measurement");
    for (size_t i = 0; i < (size_t)BATCH * dim && code == 0; i++)
        e->gradient[i] = (float)(i % 7) * 0.01F - 0.03F;
    for (size_t i = 0; i < n_keys * e->plain.row_floats && code == 0; i++)
        e->plain.rows[i] = 1e-3F; /* so that pages are mapped, and no number is denormal */
    if (code == 0)
        code = fill(e, n_keys);
    if (code == 0)
        code = measure(e, kind, s, r);
    paramo_table_close(e->table);
    free(e->pulled);
    free(e->gradient);
    free(e->keys);
    free(e->plain.place);
    free(e->plain.rows);
    return code;
}

int bench_embedded(const struct bench_settings *s, struct bench_report *r)
{
    struct bench_job job = {0};
    int code = job_start_embedded(&job);
    struct embedded e = {.worker = job.worker};
    for (size_t kind = 0; kind < sizeof kinds / sizeof *kinds && code == 0; kind++)
        code = run_kind(&e, kind, s, r);
    job_stop(&job);
    return code;
}
