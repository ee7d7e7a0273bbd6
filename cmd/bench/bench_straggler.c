/*
 * bench straggler: workers learn one logistic regression, and one of them is slower than the others: the time to a
 * given log-loss under each consistency model, beside the time under ASP with no slow worker, and the share of it that
 * workers wait. After Li et al., "Scaling Distributed Machine Learning with the Parameter Server" (OSDI'14), section
 * 5.1, and Ho et al., "More Effective Distributed ML via a Stale Synchronous Parallel Parameter Server" (NIPS 2013).
 *
 * A batch takes STEP_MS from its pull to its push, or longer by the factor for the slow worker. The worker sleeps for
 * what is left of that time, as if it had a machine of its own, so the figures do not depend on the number of cores.
 * The log-loss is that of rows that are not learned; a customer without a clock measures it. Tests: test/e2e/bench.sh.
 */
#include "cmd/bench/bench_job.h"
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"
#include "cmd/exitcode.h"
#include "learn/plot/chart.h"

#include "paramo/paramo.h"

#include <assert.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum {
    WORKERS = 4,
    FIELDS = 8,      /* features of a row, one of each field */
    FEATURES = 250,  /* of a field */
    BATCH = 32,      /* rows */
    BATCHES = 2000,  /* of a worker, which then begins again with the first */
    HELD_OUT = 4000, /* rows */
    STEP_MS = 2,
    LOOK_MS = 10,
    END_SECONDS = 120, /* a run that has not reached the log-loss by then has failed; arbitrary */
    ALL = FIELDS * FEATURES,
    PANEL = 400 /* pixels of the plot */
};

struct row {
    uint16_t feature[FIELDS]; /* of ALL, ascending */
    uint8_t clicked;
};

static const struct bound {
    const char *name;
    int clocks;     /* 0: no worker has one */
    uint64_t bound; /* clocks that a worker may be ahead */
} models[] = {{"bsp", 1, 0}, {"ssp:1", 1, 1}, {"ssp:4", 1, 4}, {"ssp:16", 1, 16}, {"asp", 0, 0}};
enum { MODELS = sizeof models / sizeof *models, ASP = MODELS - 1 };
static const unsigned factors[] = {1, 2, 5, 10};
enum { FACTORS = sizeof factors / sizeof *factors };

struct figures {
    double seconds, waiting; /* time to the log-loss; the share of it in which workers waited for clocks */
};

struct straggler {
    paramo_node *node;
    struct row *learned, *held_out; /* [WORKERS * BATCHES * BATCH], [HELD_OUT] */
    double target;                  /* log-loss */
};

/* One run, or one of its workers. */
struct run {
    const struct straggler *job;
    const struct bound *model;
    unsigned factor; /* of worker 0 */
    char table[32];
    atomic_int stop;
};
struct learner {
    struct run *run;
    unsigned index;
    paramo_worker *worker;
    paramo_table *table;
    pthread_t thread;
    uint64_t first; /* clock */
    double waited;
    paramo_err err;
    char why[PARAMO_ERROR_MAX];
};

/* ---- rows ---- */

static double unit(uint64_t *seed)
{
    return ((double)(load_key((*seed)++) >> 11) + 0.5) * 0x1p-53;
}

/* Draws rows: clicks with the probability of a known model, and features by a law that favours the first ones. Returns
 * the log-loss of that model on these rows. */
static double draw_rows(struct row *rows, size_t n, uint64_t seed)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double margin = -1;
        for (unsigned f = 0; f < FIELDS; f++) {
            const double u = unit(&seed);
            const unsigned feature = f * FEATURES + (unsigned)(u * u * u * FEATURES);
            uint64_t weight = 1000000007u + feature;
            rows[i].feature[f] = (uint16_t)feature;
            margin += 1.6 * (unit(&weight) - 0.5);
        }
        const double p = 1 / (1 + exp(-margin));
        rows[i].clicked = unit(&seed) < p;
        sum -= log(rows[i].clicked ? p : 1 - p);
    }
    return sum / (double)n;
}

static double logloss(const struct row *rows, size_t n, const float *weights)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double margin = 0;
        for (unsigned f = 0; f < FIELDS; f++)
            margin += (double)weights[rows[i].feature[f]];
        sum += log1p(exp(rows[i].clicked ? -margin : margin));
    }
    return sum / (double)n;
}

/* ---- a worker ---- */

static void sleep_until(uint64_t ns)
{
    const struct timespec at = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) != 0)
        ;
}

/* Lists the features of the batch, ascending, each once; where[] gets their indices. Returns how many. */
static size_t batch_keys(const struct row *rows, uint64_t *keys, uint16_t *where)
{
    size_t n = 0;
    memset(where, 0, ALL * sizeof *where);
    for (size_t i = 0; i < BATCH; i++)
        for (unsigned f = 0; f < FIELDS; f++)
            where[rows[i].feature[f]] = 1;
    for (unsigned k = 0; k < ALL; k++)
        if (where[k]) {
            where[k] = (uint16_t)n;
            keys[n++] = k;
        }
    return n;
}

static void batch_gradient(const struct row *rows, const uint16_t *where, const float *weights,
                           float *gradient, size_t n)
{
    memset(gradient, 0, n * sizeof *gradient);
    for (size_t i = 0; i < BATCH; i++) {
        double margin = 0;
        for (unsigned f = 0; f < FIELDS; f++)
            margin += (double)weights[where[rows[i].feature[f]]];
        const float g = (float)(1 / (1 + exp(-margin)) - rows[i].clicked) / BATCH;
        for (unsigned f = 0; f < FIELDS; f++)
            gradient[where[rows[i].feature[f]]] += g;
    }
}

/* Waits until the batch may be pulled. */
static paramo_err may_pull(struct learner *l, uint64_t batch)
{
    const uint64_t bound = l->run->model->bound, start = raw_now_ns();
    paramo_err err = PARAMO_E_TIMEOUT;
    if (!l->run->model->clocks || batch < bound)
        return PARAMO_OK;
    while (err == PARAMO_E_TIMEOUT && !atomic_load(&l->run->stop))
        err = paramo_clock_wait(l->worker, l->first + batch - bound, 200);
    l->waited += raw_seconds_since(start);
    return err == PARAMO_E_TIMEOUT ? PARAMO_OK : err;
}

static paramo_err learn_batch(struct learner *l, uint64_t batch)
{
    const struct straggler *job = l->run->job;
    const struct row *rows = job->learned + ((size_t)l->index * BATCHES + batch % BATCHES) * BATCH;
    uint64_t keys[BATCH * FIELDS], ts;
    uint16_t where[ALL];
    float weights[BATCH * FIELDS], gradient[BATCH * FIELDS];
    const uint64_t start = raw_now_ns(), step = (l->index == 0 ? l->run->factor : 1) * STEP_MS * 1000000u;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = batch_keys(rows, keys, where);
    kv.vals = weights;
    kv.vals_len = kv.n;
    paramo_err err = paramo_pull(l->worker, l->table, &kv, NULL, &ts);
    if (!err)
        err = paramo_wait(l->worker, ts, END_SECONDS * 1000);
    if (err)
        return err;
    batch_gradient(rows, where, weights, gradient, kv.n);
    sleep_until(start + step);
    kv.vals = gradient;
    err = paramo_push(l->worker, l->table, &kv, NULL, &ts);
    return err ? err : paramo_wait(l->worker, ts, END_SECONDS * 1000);
}

static paramo_err learn(struct learner *l)
{
    paramo_err err = PARAMO_OK;
    for (uint64_t batch = 0; !err; batch++) {
        err = may_pull(l, batch);
        if (atomic_load(&l->run->stop))
            break;
        if (!err)
            err = learn_batch(l, batch);
        if (!err && l->run->model->clocks)
            err = paramo_clock(l->worker, NULL);
    }
    return err;
}

static void *learner_main(void *arg)
{
    struct learner *l = arg;
    l->err = learn(l);
    if (l->err) {
        (void)snprintf(l->why, sizeof l->why, "%s", paramo_last_error());
        atomic_store(&l->run->stop, 1);
    }
    return NULL;
}

/* ---- a run --------------------------------------------------------------------------------------------- */

static paramo_err learner_open(struct learner *l, struct run *run, unsigned index)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_DENSE;
    o.rows = ALL;
    o.dim = 1;
    o.optimizer = PARAMO_OPT_FTRL;
    *l = (struct learner){.run = run, .index = index};
    paramo_err err = paramo_worker_open(run->job->node, index + 1, &l->worker);
    if (!err)
        err = paramo_table_open(l->worker, run->table, &o, &l->table);
    if (!err && index < WORKERS && run->model->clocks)
        err = paramo_clock_join(l->worker, &l->first);
    return err;
}

static void learner_close(struct learner *l)
{
    paramo_table_close(l->table);
    paramo_worker_close(l->worker);
}

/* The log-loss of the held-out rows with the current parameters. */
static paramo_err look(const struct learner *l, double *loss)
{
    uint64_t keys[ALL], ts;
    float weights[ALL];
    paramo_kv kv;
    paramo_kv_init(&kv);
    for (unsigned i = 0; i < ALL; i++)
        keys[i] = i;
    kv.keys = keys;
    kv.n = kv.vals_len = ALL;
    kv.vals = weights;
    paramo_err err = paramo_pull(l->worker, l->table, &kv, NULL, &ts);
    if (!err)
        err = paramo_wait(l->worker, ts, END_SECONDS * 1000);
    if (!err)
        *loss = logloss(l->run->job->held_out, HELD_OUT, weights);
    return err;
}

/* Measures until the log-loss is reached, or a worker has failed. */
static int watch(struct learner *looks, double *seconds)
{
    const uint64_t start = raw_now_ns();
    const struct run *run = looks->run;
    double loss = INFINITY;
    for (uint64_t at = start; !atomic_load(&run->stop); at += LOOK_MS * 1000000u) {
        sleep_until(at);
        paramo_err err = look(looks, &loss);
        *seconds = raw_seconds_since(start);
        if (err)
            return bench_failed(err, "cannot pull the parameters");
        if (loss <= run->job->target)
            return 0;
        if (*seconds > END_SECONDS)
            break;
    }
    char text[160];
    (void)snprintf(text, sizeof text,
                   "%s, one of %d workers %u times slower: log-loss %.4f, not %.4f, after %.0f s",
                   run->model->name, WORKERS, run->factor, loss, run->job->target, *seconds);
    return atomic_load(&run->stop) ? 0 : code_fail("bench", PARAMO_E_TIMEOUT, text);
}

static int run_learners(struct run *run, struct learner *l, struct figures *out)
{
    unsigned started = 0;
    paramo_err err = PARAMO_OK;
    for (unsigned i = 0; i <= WORKERS && !err; i++)
        err = learner_open(&l[i], run, i);
    if (err)
        return bench_failed(err, "cannot open a worker and its table");
    while (started < WORKERS && pthread_create(&l[started].thread, NULL, learner_main, &l[started]) == 0)
        started++;
    int code =
        started == WORKERS ? watch(&l[WORKERS], &out->seconds) : bench_system("no thread for a worker");
    atomic_store(&run->stop, 1);
    for (unsigned i = 0; i < started; i++) {
        (void)pthread_join(l[i].thread, NULL);
        out->waiting += l[i].waited / (WORKERS * out->seconds);
        if (l[i].err && code == 0) {
            (void)paramo_error_set(l[i].err, "%s", l[i].why);
            code = bench_failed(l[i].err, "a worker failed");
        }
    }
    return code;
}

static int measure(const struct straggler *job, const struct bound *model, unsigned factor,
                   struct figures *out)
{
    static unsigned runs;
    struct run run = {.job = job, .model = model, .factor = factor};
    struct learner l[WORKERS + 1] = {0}; /* the last one measures */
    *out = (struct figures){0};
    (void)snprintf(run.table, sizeof run.table, "straggler%u", runs++);
    int code = run_learners(&run, l, out);
    for (unsigned i = 0; i <= WORKERS; i++)
        learner_close(&l[i]);
    return code;
}

/* ---- the path ------------------------------------------------------------------------------------------ */

static struct bench_line *new_line(struct bench_report *r, const struct bound *model, unsigned factor)
{
    return report_line(r, "straggler", "s", BENCH_LOWER, "asp, no worker slowed",
                       "one process, 4 workers, batches of 32 rows that take 2 ms; time to a given log-loss",
                       factor > 1 ? "%s, one of 4 workers %ux slower" : "%s, no worker slowed", model->name,
                       factor);
}

/* One pair of each line: a round of all models with all factors. */
static int measure_round(const struct straggler *job, struct bench_line *line[MODELS][FACTORS],
                         double waiting[MODELS][FACTORS])
{
    for (unsigned f = 0; f < FACTORS; f++) {
        struct figures beside, is;
        int code = measure(job, &models[ASP], 1, &beside);
        for (unsigned m = 0; m < MODELS && code == 0; m++) {
            code = measure(job, &models[m], factors[f], &is);
            if (code == 0)
                line_pair(line[m][f], is.seconds, beside.seconds);
            waiting[m][f] += is.waiting;
        }
        if (code != 0)
            return code;
    }
    return 0;
}

static void print_table(struct bench_line *line[MODELS][FACTORS], double waiting[MODELS][FACTORS],
                        uint64_t pairs)
{
    (void)printf("\ntime to the log-loss, s, and the share of their time that the workers waited\n  %-8s",
                 "");
    for (unsigned f = 0; f < FACTORS; f++)
        (void)printf(factors[f] > 1 ? "  one of 4 %2ux slower" : "     no worker slower", factors[f]);
    for (unsigned m = 0; m < MODELS; m++) {
        (void)printf("\n  %-8s", models[m].name);
        for (unsigned f = 0; f < FACTORS; f++)
            (void)printf("       %6.2f  %3.0f %%", line_median(line[m][f]),
                         100 * waiting[m][f] / (double)pairs);
    }
    (void)printf("\n");
}

static void draw(struct svg *svg, double x, const char *title, struct chart_axis y,
                 double of[MODELS][FACTORS])
{
    struct chart_series series[MODELS];
    struct chart_axis by = {
        .title = "the slow worker's batches take this many times as long", .low = 1, .high = 10};
    double factor[FACTORS];
    y.low = 0;
    for (unsigned f = 0; f < FACTORS; f++)
        factor[f] = factors[f];
    for (unsigned m = 0; m < MODELS; m++) {
        series[m] = (struct chart_series){.name = models[m].name,
                                          .style = CHART_LINE_POINTS,
                                          .colour = m,
                                          .n = FACTORS,
                                          .x = factor,
                                          .y = of[m]};
        chart_include(&y, of[m], FACTORS);
    }
    chart_range(&y);
    const struct chart chart = {.title = title, .x = by, .y = y, .series = series, .n = MODELS};
    chart_draw(svg, x, 0, PANEL, PANEL, &chart);
}

static int plot(const char *path, struct bench_line *line[MODELS][FACTORS], double waiting[MODELS][FACTORS],
                uint64_t pairs)
{
    double seconds[MODELS][FACTORS], share[MODELS][FACTORS];
    struct svg *svg = NULL;
    for (unsigned m = 0; m < MODELS; m++)
        for (unsigned f = 0; f < FACTORS; f++) {
            seconds[m][f] = line_median(line[m][f]);
            share[m][f] = 100 * waiting[m][f] / (double)pairs;
        }
    paramo_err err = svg_new(2.0 * PANEL, PANEL, "one of four workers slowed", &svg);
    if (!err) {
        draw(svg, 0, "time to a given log-loss", (struct chart_axis){.title = "time (s)"}, seconds);
        draw(svg, PANEL, "time that the workers wait",
             (struct chart_axis){.title = "waiting (% of the time)"}, share);
        err = svg_write(svg, path);
    }
    svg_free(svg);
    return err ? code_fail("bench", err, paramo_last_error()) : 0;
}

int bench_straggler(const struct bench_settings *s, struct bench_report *r)
{
    struct bench_job job = {0};
    struct straggler all = {.learned = malloc(sizeof(struct row) * WORKERS * BATCHES * BATCH),
                            .held_out = malloc(sizeof(struct row) * HELD_OUT)};
    struct bench_line *line[MODELS][FACTORS];
    double waiting[MODELS][FACTORS] = {0};
    int code = all.learned && all.held_out
                   ? job_start_embedded(&job)
                   : code_fail("bench", PARAMO_E_MEMORY, "out of memory for the rows");
    if (code == 0) {
        all.node = job.node;
        (void)draw_rows(all.learned, (size_t)WORKERS * BATCHES * BATCH, 1);
        const double best = draw_rows(all.held_out, HELD_OUT, (uint64_t)1 << 40);
        all.target = best + (s->quick ? 0.12 : 0.06);
        for (unsigned m = 0; m < MODELS; m++)
            for (unsigned f = 0; f < FACTORS; f++)
                line[m][f] = new_line(r, &models[m], factors[f]);
    }
    for (uint64_t pair = 0; pair < s->pairs && code == 0; pair++)
        code = measure_round(&all, line, waiting);
    if (code == 0 && !s->json)
        print_table(line, waiting, s->pairs);
    if (code == 0 && s->plot)
        code = plot(s->plot, line, waiting, s->pairs);
    job_stop(&job);
    free(all.learned);
    free(all.held_out);
    return code;
}
