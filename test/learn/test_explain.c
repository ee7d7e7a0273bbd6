#include "learn/eval/score.h"
#include "learn/explain/explain.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 6, FEATURES = 6, KEYS = 12, FIELDS = 4, DIM = 3 };

/* A model of drawn values: a row for most keys, some weights 0. */
struct drawn {
    struct model model;
    uint64_t key[MODEL_MAX_TABLES + 1][KEYS + FIELDS + 1];
    float value[MODEL_MAX_TABLES + 1][(KEYS + FIELDS + 1) * 64];
};

static void draw_table(struct drawn *d, size_t t, uint64_t *seed)
{
    const struct model_info *info = &d->model.info;
    const size_t fixed = model_fixed_rows(info, t), dim = model_row_values(info, t);
    struct model_table *table = &d->model.table[t];
    *table = (struct model_table){.dim = (uint32_t)dim, .keys = d->key[t], .values = d->value[t]};
    for (uint64_t k = 0; k < (fixed > 0 ? fixed : KEYS); k++)
        if (fixed > 0 || draw(seed) % 8 != 0)
            d->key[t][table->n++] = k;
    if (info->ops->table[t].bias)
        d->key[t][table->n++] = BATCH_BIAS_KEY;
    for (size_t i = 0; i < table->n * dim; i++)
        d->value[t][i] =
            t == 0 && draw(seed) % 8 == 0 ? 0.0f : draw_float(seed) + (float)model_shape(info, t).mean;
}

/* Rows of sightings and squares for std. */
static void draw_scale(struct drawn *d, uint64_t *seed)
{
    struct model_table *table = &d->model.scale;
    d->model.info.scale = SCALE_STD;
    *table = (struct model_table){.dim = 2,
                                  .n = KEYS,
                                  .keys = d->key[MODEL_MAX_TABLES],
                                  .values = d->value[MODEL_MAX_TABLES],
                                  .file = (paramo_tensors *)d}; /* never opened */
    for (uint64_t k = 0; k < KEYS; k++) {
        d->key[MODEL_MAX_TABLES][k] = k;
        d->value[MODEL_MAX_TABLES][2 * k] = 4;
        d->value[MODEL_MAX_TABLES][2 * k + 1] = 4 + (float)(draw(seed) % 64);
    }
}

static void draw_model(struct drawn *d, const struct model_ops *ops, uint32_t classes, int scaled,
                       uint64_t seed)
{
    memset(d, 0, sizeof *d);
    struct model_info *info = &d->model.info;
    model_info_init(info, ops);
    if (classes > 0) {
        info->objective = objective_of(objective_find("softmax"));
        info->objective.classes = classes;
    }
    for (size_t i = 0; i < ops->settings; i++) {
        if (ops->setting[i].field == FIELD_COUNT)
            info->setting[i] = FIELDS;
        if (strcmp(ops->setting[i].option, "dim") == 0)
            info->setting[i] = DIM;
    }
    d->model.n = ops->tables;
    for (size_t t = 0; t < ops->tables; t++)
        draw_table(d, t, &seed);
    if (scaled)
        draw_scale(d, &seed);
}

static struct block draw_block(uint64_t seed, uint16_t *field)
{
    struct block b = random_block(seed, ROWS, FEATURES, KEYS, 1, 1);
    for (size_t i = 0; i < b.features; i++)
        field[i] = (uint16_t)(draw(&seed) % (FIELDS + 1)); /* some are not counted */
    b.field = field;
    return b;
}

struct wanted {
    uint32_t output, outputs;
    double margin;
    float all[8];
};

static paramo_err keep(void *arg, const struct scored_rows *rows)
{
    struct wanted *w = arg;
    assert_int_equal(rows->n, 1);
    w->margin = (double)rows->margin[w->output * rows->stride];
    for (uint32_t c = 0; c < w->outputs; c++)
        w->all[c] = rows->margin[c * rows->stride];
    return PARAMO_OK;
}

/* The margin that predict uses for a row in which only the features of the set are there. */
static double margin_of(const struct model *m, const struct block *b, size_t row, unsigned set,
                        uint32_t output, struct wanted *w)
{
    const size_t from = b->offset[row], n = b->offset[row + 1] - from;
    uint32_t offset[2] = {0, 0};
    uint64_t key[FEATURES];
    float value[FEATURES], label = 0;
    uint16_t field[FEATURES];
    for (size_t i = 0; i < n; i++)
        if (set >> i & 1) {
            key[offset[1]] = b->key[from + i];
            value[offset[1]] = !b->value ? 1.0f : b->value[from + i];
            field[offset[1]++] = b->field[from + i];
        }
    struct block one = {.rows = 1,
                        .features = offset[1],
                        .label = &label,
                        .offset = offset,
                        .key = key,
                        .value = value,
                        .field = field};
    struct score_lookup lookup = {.model = m};
    struct score_source source = score_model(&lookup);
    struct scorer *scorer;
    *w = (struct wanted){.output = output, .outputs = model_outputs(&m->info)};
    assert_int_equal(scorer_new(&scorer), PARAMO_OK);
    assert_int_equal(scorer_block(scorer, &source, &one, keep, w), PARAMO_OK);
    scorer_free(scorer);
    return w->margin;
}

/* Shapley's formula over all sets of the other features. */
static double shapley(const double *margin, size_t n, size_t i)
{
    double sum = 0, ways[FEATURES + 1] = {1};
    for (size_t k = 0; k < n; k++) /* |S|! (n - |S| - 1)! / n! */
        ways[k] = tgamma((double)k + 1) * tgamma((double)(n - k)) / tgamma((double)n + 1);
    for (unsigned set = 0; set < 1u << n; set++)
        if (!(set >> i & 1))
            sum += ways[__builtin_popcount(set)] * (margin[set | 1u << i] - margin[set]);
    return sum;
}

static void near(const struct model_ops *ops, const char *what, size_t i, double got, double want)
{
    if (!(fabs(got - want) <= 1e-5 * (1 + fabs(want))))
        fail_msg("%s: %s %zu is %.9g, not %.9g", ops->name, what, i, got, want);
}

static void check_row(const struct model *m, const struct block *b, size_t row, int output)
{
    const struct model_ops *ops = m->info.ops;
    const size_t n = b->offset[row + 1] - b->offset[row];
    struct explanation e;
    struct wanted w;
    double margin[1 << FEATURES], sum;
    assert_int_equal(explain_row(m, b, row, output, &e), PARAMO_OK);
    assert_int_equal(e.n, n);
    for (unsigned set = 0; set < 1u << n; set++)
        margin[set] = margin_of(m, b, row, set, e.output, &w);
    for (uint32_t c = 0; c < e.outputs; c++) {
        assert_true(e.margin[c] == w.all[c]); /* the same bits */
        assert_true(output != EXPLAIN_BEST || w.all[c] <= w.all[e.output]);
    }
    near(ops, "base", row, e.base, margin[0]);
    sum = e.base;
    for (size_t i = 0; i < n; i++) {
        near(ops, "share", i, e.term[i].share, shapley(margin, n, i));
        sum += e.term[i].share;
        assert_int_equal(e.term[i].key, b->key[b->offset[row] + i]);
        if (ops->order == 1)
            near(ops, "weight", i, e.term[i].weight, e.term[i].share);
    }
    near(ops, "sum", row, sum, margin[(1u << n) - 1]);
    explain_free(&e);
}

static void shares_are_shapley_values_for_each_model(void **state)
{
    (void)state;
    static struct drawn d;
    for (size_t k = 0; model_at(k); k++)
        for (uint64_t seed = 1; seed <= 8; seed++) {
            uint16_t field[ROWS * FEATURES];
            struct block b = draw_block(seed, field);
            draw_model(&d, model_at(k), seed % 3 == 0 ? 4 : 0, seed % 2 == 0, seed);
            for (size_t row = 0; row < b.rows; row++)
                check_row(&d.model, &b, row, seed % 3 != 0 ? 0 : row % 2 == 0 ? EXPLAIN_BEST : 3);
            b.field = NULL;
            block_free(&b);
        }
}

static void a_key_that_repeats_has_a_share_for_each_place(void **state)
{
    (void)state;
    static struct drawn d;
    uint64_t key[3] = {2, 2, BATCH_BIAS_KEY};
    uint32_t offset[2] = {0, 3};
    float value[3] = {1, -2, 0.5f}, label = 0;
    uint16_t field[3] = {0, 1, 2};
    struct block b = {.rows = 1,
                      .features = 3,
                      .label = &label,
                      .offset = offset,
                      .key = key,
                      .value = value,
                      .field = field};
    for (size_t k = 0; model_at(k); k++) {
        draw_model(&d, model_at(k), 0, 0, 5);
        check_row(&d.model, &b, 0, 0);
    }
}

/* sum of w_i t_i^k over the points is the integral of t^k. */
static void the_rule_is_exact(void **state)
{
    (void)state;
    double point[300], weight[300];
    for (size_t n = 1; n <= 300; n += n < 20 ? 1 : 70) {
        explain_rule(n, point, weight);
        for (size_t k = 0; k < 2 * n; k++) {
            double sum = 0;
            for (size_t i = 0; i < n; i++)
                sum += weight[i] * pow(point[i], (double)k);
            assert_true(fabs(sum - 1 / (double)(k + 1)) < 1e-12);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(shares_are_shapley_values_for_each_model),
        cmocka_unit_test(a_key_that_repeats_has_a_share_for_each_place),
        cmocka_unit_test(the_rule_is_exact),
    };
    return cmocka_run_group_tests_name("explain", tests, NULL, NULL);
}
