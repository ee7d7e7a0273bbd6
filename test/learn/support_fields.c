#include "learn/support_fields.h"
#include "learn/model/compute.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 10, FEATURES = 7, MANY = 150, KEYS = 18, FIELDS = 4 };

double field_value(const struct batch *b, size_t i)
{
    return b->value == NULL ? 1.0 : (double)b->value[i];
}

double field_linear(const struct batch *b, size_t row, const double *w)
{
    double sum = w[b->unique - 1];
    for (size_t i = b->start[row] - b->start[0]; i < b->start[row + 1] - b->start[0]; i++)
        sum += w[b->index[i]] * field_value(b, i);
    return sum;
}

struct tables {
    float *param[MODEL_MAX_TABLES], *grad[MODEL_MAX_TABLES], *first[MODEL_MAX_TABLES];
    double *slow[MODEL_MAX_TABLES];
    size_t values[MODEL_MAX_TABLES];
};

static size_t rows_of(const struct model_info *info, size_t table, const struct batch *b)
{
    const size_t fixed = model_fixed_rows(info, table);
    return fixed > 0 ? fixed : b->unique;
}

static void draw_tables(struct tables *t, const struct model_info *info, const struct batch *b,
                        uint64_t *seed)
{
    for (size_t k = 0; k < info->ops->tables; k++) {
        t->values[k] = rows_of(info, k, b) * model_shape(info, k).dim;
        t->param[k] = calloc(t->values[k], sizeof *t->param[k]);
        t->grad[k] = calloc(t->values[k], sizeof *t->grad[k]);
        t->first[k] = calloc(t->values[k], sizeof *t->first[k]);
        t->slow[k] = calloc(t->values[k], sizeof *t->slow[k]);
        for (size_t i = 0; i < t->values[k]; i++)
            t->param[k][i] = k == 0 && draw(seed) % 8 == 0
                                 ? 0.0f
                                 : draw_float(seed) * 0.7f + (float)model_shape(info, k).mean;
    }
}

static void free_tables(struct tables *t)
{
    for (size_t k = 0; k < MODEL_MAX_TABLES; k++) {
        free(t->param[k]);
        free(t->grad[k]);
        free(t->first[k]);
        free(t->slow[k]);
    }
}

/* sum_r residual_r margin_r, whose derivative by a parameter is the gradient. */
static double objective(const struct model_info *info, const struct batch *b, field_margin_fn *reference,
                        const float *residual, const struct tables *t)
{
    double sum = 0;
    for (size_t r = 0; r < b->rows; r++)
        sum += (double)residual[r] * reference(info, b, r, t->slow);
    return sum;
}

static double slope(const struct model_info *info, const struct batch *b, field_margin_fn *reference,
                    const float *residual, const struct tables *t, double *x)
{
    const double keep = *x, h = 1e-4;
    *x = keep + h;
    const double up = objective(info, b, reference, residual, t);
    *x = keep - h;
    const double down = objective(info, b, reference, residual, t);
    *x = keep;
    return (up - down) / (2 * h);
}

static void near(double got, double want, const struct model_info *info, const char *what, size_t i)
{
    if (!(fabs(got - want) <= 2e-4 * (1 + fabs(want))))
        fail_msg("%s: %s %zu is %.9g, by the formula %.9g", info->ops->name, what, i, got, want);
}

static void compare(const struct model_info *info, const struct batch *b, field_margin_fn *reference,
                    const struct workspace *s, struct tables *t)
{
    const uint64_t *key;
    for (size_t k = 0; k < info->ops->tables; k++)
        for (size_t i = 0; i < t->values[k]; i++)
            t->slow[k][i] = (double)t->param[k][i];
    for (size_t r = 0; r < b->rows; r++)
        near((double)s->margin[r], reference(info, b, r, t->slow), info, "margin", r);
    for (size_t k = 0; k < info->ops->tables; k++)
        for (size_t i = 0; i < model_keys(info, k, b, &key) * model_shape(info, k).dim; i++)
            near((double)t->grad[k][i], slope(info, b, reference, s->residual, t, &t->slow[k][i]), info,
                 info->ops->table[k].name, i);
}

static void one_batch(const struct model_info *info, const struct batch *b, field_margin_fn *reference,
                      uint64_t seed)
{
    struct workspace s = {0};
    struct tables t = {0};
    float margin[ROWS];
    draw_tables(&t, info, b, &seed);
    assert_int_equal(workspace_fit(&s, info, b->rows, b->unique), PARAMO_OK);
    for (size_t r = 0; r < b->rows; r++)
        s.residual[r] = draw_float(&seed);
    for (size_t level = 0; level < vector_count(); level++) {
        vector_limit(vector_names[level]);
        compute_margins(info, b, t.param, &s);
        compute_gradient(info, b, t.param, &s, t.grad);
        if (level == 0) {
            compare(info, b, reference, &s, &t);
            memcpy(margin, s.margin, b->rows * sizeof *margin);
        }
        assert_memory_equal(s.margin, margin, b->rows * sizeof *margin);
        for (size_t k = 0; k < info->ops->tables; k++) {
            if (level == 0)
                memcpy(t.first[k], t.grad[k], t.values[k] * sizeof *t.first[k]);
            assert_memory_equal(t.grad[k], t.first[k], t.values[k] * sizeof *t.first[k]);
        }
    }
    vector_limit(NULL);
    free_tables(&t);
    workspace_free(&s);
}

void check_field_model(const struct model_ops *ops, field_margin_fn *reference)
{
    static const uint32_t dims[] = {1, 2, 4, 7, 8, 12, 16, 20};
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    for (uint64_t seed = 1; seed <= 48; seed++) {
        const int many =
            seed == 8 || seed == 10; /* rows longer than what a model works on at once; dim 1 and 4 */
        struct block b = random_block(seed, ROWS, many ? MANY : FEATURES, KEYS, 3, seed % 2 == 0);
        uint16_t field[ROWS * MANY];
        struct model_info info;
        uint64_t s = seed;
        model_info_init(&info, ops);
        for (size_t k = 0; k < ops->settings; k++) {
            if (ops->setting[k].field == FIELD_COUNT)
                info.setting[k] = FIELDS;
            if (strcmp(ops->setting[k].option, "dim") == 0)
                info.setting[k] = dims[seed % 8];
        }
        for (size_t i = 0; i < b.features; i++)
            field[i] = (uint16_t)(draw(&s) % 11 == 0 ? UINT16_MAX - draw(&s) % 3 : draw(&s) % FIELDS);
        b.field = field;
        assert_int_equal(batcher_cut(batcher, &b, ROWS / 2, &list), PARAMO_OK);
        for (size_t k = 0; k < list.n; k++)
            one_batch(&info, &list.batch[k], reference, seed);
        b.field = NULL;
        block_free(&b);
    }
    batch_list_free(&list);
    batcher_free(batcher);
}
