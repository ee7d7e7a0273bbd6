/*
 * Whole jobs of --solver darlin in this process, beside a sequential one with a dense matrix, and beside a slow solver.
 */
#include "learn/darlin/coordinate.h"
#include "learn/objective/logistic.h"
#include "learn/objective/vector_math.h"
#include "learn/support_learn.h"
#include "learn/train/train.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Column KEYS is the bias. Some rows have a weight in no format that is used here, so all weigh 1. */
enum { ROWS = 400, KEYS = 24, ALL = KEYS + 1, BLOCKS = 6 };

static char *dir, data[4096];
static const char *const data_files[] = {data};
static double matrix[ROWS][ALL];
static int label[ROWS];

static double between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * (double)(draw(seed) >> 11) * 0x1p-53;
}

/* A quarter of the cells is not 0; keys 0 to 7 have values, the others ones. The labels follow the first ten keys. */
static int setup(void **state)
{
    (void)state;
    uint64_t seed = 7;
    dir = new_dir();
    (void)snprintf(data, sizeof data, "%s/data", dir);
    FILE *f = fopen(data, "w");
    if (f == NULL)
        abort();
    for (int r = 0; r < ROWS; r++) {
        double m = -0.5;
        for (int k = 0; k < KEYS; k++) {
            matrix[r][k] = draw(&seed) % 4 ? 0 : k < 8 ? (double)(float)between(&seed, -2, 2) : 1;
            m += k < 10 ? matrix[r][k] * (k % 3 - 1) : 0;
        }
        matrix[r][KEYS] = 1;
        label[r] = between(&seed, 0, 1) < 1 / (1 + exp(-m));
        (void)fprintf(f, "%d", label[r]);
        for (int k = 0; k < KEYS; k++)
            if (matrix[r][k] != 0)
                (void)fprintf(f, " %d:%.9g", k + 1, matrix[r][k]);
        (void)fputc('\n', f);
    }
    (void)fclose(f);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    remove_dir(dir);
    return 0;
}

static struct train_options options(double l1)
{
    struct train_options o = {.data = data_files, .data_n = 1, .servers = 1, .workers = 1, .quiet = 1};
    reader_options_init(&o.reader);
    model_info_init(&o.model, &model_lr);
    (void)strcpy(o.model.data_format, "auto");
    o.model.seed = 1;
    o.model.optimizer[0] = (struct model_optimizer){.name = DARLIN_OPTIMIZER, .l1 = l1};
    o.darlin = (struct darlin_options){.on = 1, .blocks = BLOCKS, .epsilon = 1e-8, .passes = 400};
    return o;
}

static struct train_result run(const struct train_options *o)
{
    struct train_result r;
    if (train_run(o, &r) != PARAMO_OK)
        fail_msg("%s", paramo_last_error());
    assert_true(r.leader && !r.interrupted);
    return r;
}

static double last(const struct train_result *r)
{
    return r->epoch[r->epochs - 1].objective;
}

/* ---- the sequential algorithm ---- */

/* One after the other, with dense columns. Its sums go over rows and keys in the order of solver.h, so its bits are the
 * same. */
struct sequence {
    double w[ALL], reach[ALL], before[ALL], margin[ROWS], before_margin[ROWS];
    int first[ALL + 1], blocks;
};

static void cut_blocks(struct sequence *q)
{
    double count[KEYS] = {0}, all = 0, entries = 0;
    for (int k = 0; k < KEYS; k++) {
        for (int r = 0; r < ROWS; r++)
            count[k] += matrix[r][k] != 0;
        all += count[k];
    }
    q->blocks = 0;
    for (int k = 0; k < KEYS; k++) {
        if (k == 0 || entries + count[k] > all / BLOCKS) {
            q->first[q->blocks++] = k;
            entries = 0;
        }
        entries += count[k];
    }
    q->first[q->blocks++] = KEYS;
    q->first[q->blocks] = ALL;
}

static void step_block(struct sequence *q, int from, int end, double l1, double damping)
{
    double g[ALL] = {0}, u[ALL] = {0}, change[ALL];
    float width[ROWS] = {0}, way[ROWS] = {0};
    for (int k = from; k < end; k++)
        for (int r = 0; r < ROWS; r++)
            if (matrix[r][k] != 0) {
                const float x = fabsf((float)matrix[r][k]);
                width[r] += x;
                way[r] += q->reach[k] > 0 ? x * (float)q->reach[k] : INFINITY;
            }
    for (int k = from; k < end; k++)
        for (int r = 0; r < ROWS; r++)
            if (matrix[r][k] != 0) {
                const double m = q->margin[r], e = link_exp(-fabs(m)), p = (m < 0 ? e : 1.0) / (1.0 + e),
                             bend = e / ((1.0 + e) * (1.0 + e));
                g[k] += (p - label[r]) * matrix[r][k];
                u[k] += coordinate_curvature(bend, (double)way[r]) * (double)width[r] * fabs(matrix[r][k]);
            }
    for (int k = from; k < end; k++) {
        const double next = coordinate_step(q->w[k], g[k], u[k] * damping, l1, q->reach[k]);
        q->reach[k] = coordinate_reach(q->reach[k], next - q->w[k], u[k] * damping, l1);
        change[k] = next - q->w[k];
        q->w[k] = next;
    }
    for (int k = from; k < end; k++)
        for (int r = 0; r < ROWS; r++)
            if (matrix[r][k] != 0 && change[k] != 0)
                q->margin[r] += change[k] * matrix[r][k];
}

static double objective_along(const struct sequence *q, double l1, double way)
{
    double loss = 0, penalty = 0;
    for (int r = 0; r < ROWS; r++) {
        const double m = q->margin[r] + way * (q->margin[r] - q->before_margin[r]);
        loss += (m > 0 ? m : 0) + log1p_unit(link_exp(-fabs(m))) - label[r] * m;
    }
    for (int k = 0; k < ALL; k++)
        penalty += l1 * fabs(q->w[k] + way * (q->w[k] - q->before[k]));
    return loss + penalty;
}

/* After a pass, goes on in its direction where that is better. */
static void go_on(struct sequence *q, double l1)
{
    double best = 0;
    for (double way = 0.5; way <= 32; way *= 2)
        if (objective_along(q, l1, way) < objective_along(q, l1, best))
            best = way;
    for (int r = 0; best > 0 && r < ROWS; r++)
        q->margin[r] += best * (q->margin[r] - q->before_margin[r]);
    for (int k = 0; best > 0 && k < ALL; k++)
        q->w[k] += best * (q->w[k] - q->before[k]);
}

static void test_equals_the_sequential_algorithm(void **state)
{
    (void)state;
    static struct sequence q;
    const double l1 = 2;
    struct train_options o = options(l1);
    o.darlin.fixed = o.darlin.unfiltered = 1;
    o.darlin.passes = 12;
    struct train_result r = run(&o);
    assert_true(r.epochs == 12 && r.delayed == 0);
    cut_blocks(&q);
    assert_true(q.blocks > BLOCKS && q.blocks == (int)r.blocks);
    for (size_t pass = 0; pass < r.epochs; pass++) {
        memcpy(q.before, q.w, sizeof q.before);
        memcpy(q.before_margin, q.margin, sizeof q.margin);
        for (int b = 0; b < q.blocks; b++)
            step_block(&q, q.first[b], q.first[b + 1], l1, 1);
        if (pass + 1 < r.epochs) /* the last one stays where it is */
            go_on(&q, l1);
        const double mine = objective_along(&q, l1, 0);
        assert_memory_equal(&mine, &r.epoch[pass].objective, sizeof mine);
    }
    train_result_free(&r);
}

/* ---- a slow solver ---- */

/* Newton's method for one weight at a time, each to the end of what doubles can tell. Returns the objective. */
static double slow_solve(double l1, double bias_l1, int bias, double *w)
{
    static double margin[ROWS];
    double objective = 0;
    memset(margin, 0, sizeof margin);
    memset(w, 0, ALL * sizeof *w);
    for (int round = 0; round < 3000; round++)
        for (int k = 0; k < KEYS + bias; k++)
            for (int i = 0; i < 3; i++) {
                double g = 0, h = 1e-12;
                for (int r = 0; r < ROWS; r++) {
                    const double p = 1 / (1 + exp(-margin[r]));
                    g += (p - label[r]) * matrix[r][k];
                    h += p * (1 - p) * matrix[r][k] * matrix[r][k];
                }
                const double next = coordinate_step(w[k], g, h, k == KEYS ? bias_l1 : l1, 0.5);
                for (int r = 0; r < ROWS; r++)
                    margin[r] += (next - w[k]) * matrix[r][k];
                if (next == w[k])
                    break;
                w[k] = next;
            }
    for (int r = 0; r < ROWS; r++)
        objective += log1p(exp(margin[r])) - label[r] * margin[r];
    for (int k = 0; k < ALL; k++)
        objective += (k == KEYS ? bias_l1 : l1) * fabs(w[k]);
    return objective;
}

/* The greatest violation of the optimality conditions by the saved model. */
static double worst_violation(const char *path, double l1, double bias_l1, int bias)
{
    struct model m;
    double w[ALL] = {0}, worst = 0;
    assert_int_equal(modelio_open(path, &m), PARAMO_OK);
    for (size_t i = 0; i < m.table[0].n; i++)
        w[m.table[0].keys[i] == BATCH_BIAS_KEY ? KEYS : m.table[0].keys[i] - 1] =
            (double)m.table[0].values[i];
    modelio_close(&m);
    for (int k = 0; k < KEYS + bias; k++) {
        double g = 0;
        for (int r = 0; r < ROWS; r++) {
            double margin = 0;
            for (int j = 0; j < ALL; j++)
                margin += w[j] * matrix[r][j];
            g += (1 / (1 + exp(-margin)) - label[r]) * matrix[r][k];
        }
        const double violation = coordinate_violation(w[k], g, k == KEYS ? bias_l1 : l1);
        worst = violation > worst ? violation : worst;
    }
    assert_true(bias || w[KEYS] == 0);
    return worst;
}

static void test_reaches_the_minimum(void **state)
{
    (void)state;
    static const struct {
        double l1;
        enum darlin_bias bias;
        unsigned delay, workers;
        int unfiltered, parts;
    } cases[] = {{2, DARLIN_BIAS_L1, 0, 1, 0, 1},   {2, DARLIN_BIAS_FREE, 0, 1, 1, 3},
                 {2, DARLIN_BIAS_NONE, 0, 1, 0, 1}, {10, DARLIN_BIAS_L1, 4, 1, 0, 4},
                 {2, DARLIN_BIAS_L1, 0, 3, 0, 6},   {2, DARLIN_BIAS_L1, 3, 2, 0, 6}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const double l1 = cases[i].l1, bias_l1 = cases[i].bias == DARLIN_BIAS_FREE ? 0 : l1;
        const int bias = cases[i].bias != DARLIN_BIAS_NONE;
        double w[ALL];
        struct train_options o = options(l1);
        char out[4200];
        (void)snprintf(out, sizeof out, "%s/model", dir);
        o.model_out = out;
        o.darlin.bias = cases[i].bias;
        o.darlin.delay = cases[i].delay;
        o.darlin.unfiltered = cases[i].unfiltered;
        o.workers = cases[i].workers;
        o.reader.part_bytes = (size_t)(40000 / cases[i].parts);
        struct train_result r = run(&o);
        const double least = slow_solve(l1, bias_l1, bias, w);
        assert_true(r.converged && r.saved);
        assert_true(fabs(last(&r) - least) <= 1e-6 * least);
        assert_true(worst_violation(out, l1, bias_l1, bias) < 0.01 * l1);
        assert_int_equal(r.delayed, cases[i].delay);
        size_t visited = 0;
        for (size_t e = 0; e < r.epochs; e++)
            visited += r.epoch[e].active < r.epoch[e].keys;
        assert_true(cases[i].unfiltered ? visited == 0 : visited > 0);
        assert_int_equal(r.epoch[r.epochs - 1].active, KEYS + bias); /* the last pass is full */
        train_result_free(&r);
    }
}

/* Without delay each pass is at least as good as the one before. */
static void test_descends(void **state)
{
    (void)state;
    for (unsigned blocks = 1; blocks <= KEYS; blocks *= 8) {
        struct train_options o = options(1);
        o.darlin.blocks = blocks;
        struct train_result r = run(&o);
        for (size_t e = 1; e < r.epochs; e++)
            assert_true(r.epoch[e].objective <= r.epoch[e - 1].objective * (1 + 1e-14));
        train_result_free(&r);
    }
}

static void test_repeats_its_bits(void **state)
{
    (void)state;
    struct train_options o = options(2);
    o.darlin.delay = 2;
    struct train_result a = run(&o), b = run(&o);
    assert_int_equal(a.epochs, b.epochs);
    for (size_t e = 0; e < a.epochs; e++)
        assert_memory_equal(&a.epoch[e].objective, &b.epoch[e].objective, sizeof a.epoch[e].objective);
    train_result_free(&a);
    train_result_free(&b);
}

/* A saved model is where the next job begins. */
static void test_continues(void **state)
{
    (void)state;
    struct train_options o = options(2);
    char out[4200];
    (void)snprintf(out, sizeof out, "%s/from", dir);
    o.model_out = out;
    o.darlin.epsilon = 1e-5;
    struct train_result r = run(&o);
    o.model_in = out;
    o.model_out = NULL;
    struct train_result next = run(&o);
    assert_true(next.converged && next.epochs < r.epochs && next.epoch[0].objective < last(&r) * (1 + 1e-6));
    train_result_free(&r);
    train_result_free(&next);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equals_the_sequential_algorithm),
        cmocka_unit_test(test_reaches_the_minimum),
        cmocka_unit_test(test_descends),
        cmocka_unit_test(test_repeats_its_bits),
        cmocka_unit_test(test_continues),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
