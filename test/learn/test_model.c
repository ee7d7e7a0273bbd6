/*
 * Every model of the table: what its definition must have for the training, the files and the options to work, and
 * its gradient against differences of its margins.
 */
#include "learn/model/compute.h"
#include "learn/model/model.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 12, FEATURES = 5, KEYS = 20, FIELDS = 4 };

/* As the first rows of the data do. */
static void begin_fields(struct model_info *info)
{
    for (size_t k = 0; k < info->ops->settings; k++)
        if (info->ops->setting[k].field == FIELD_COUNT)
            info->setting[k] = FIELDS;
}

static void test_definitions_are_whole(void **state)
{
    (void)state;
    for (size_t i = 0; model_at(i) != NULL; i++) {
        const struct model_ops *ops = model_at(i);
        struct model_info info;
        assert_ptr_equal(model_find(ops->name), ops);
        assert_true(strlen(ops->name) <= MODEL_NAME_MAX && ops->settings <= MODEL_MAX_SETTINGS);
        assert_true(ops->tables >= 1 && ops->tables <= MODEL_MAX_TABLES);
        model_info_init(&info, ops);
        begin_fields(&info);
        assert_string_equal(ops->table[0].name, "w");
        assert_string_equal(ops->table[0].prefix, "");
        assert_true(ops->table[0].bias && ops->shape(&info, 0).dim == 1);
        for (size_t t = 0; t < ops->tables; t++) {
            assert_true(strlen(ops->table[t].name) <= MODEL_NAME_MAX);
            assert_non_null(optimizers_find(ops->table[t].optimizer));
            assert_true(ops->shape(&info, t).dim > 0 && model_alpha(&info, t, 1) > 0);
        }
        for (size_t k = 0; k < ops->settings; k++) {
            const struct model_setting *s = &ops->setting[k];
            assert_true(!s->whole ||
                        (info.setting[k] >= s->min && info.setting[k] <= s->max && s->max <= UINT16_MAX));
            assert_true(s->whole || s->initial > 0);
            assert_true(s->field == FIELD_UNUSED || (s->whole && ops->fields == MODEL_NEEDS_FIELDS));
            assert_true(s->field != FIELD_COUNT || (s->initial == 0 && s->fixed));
        }
    }
    assert_null(model_find("no such model"));
    assert_null(optimizers_find("no such optimizer"));
}

/* sum_r residual_r margin_r over all outputs, whose derivative by a parameter is the gradient. */
static double objective(const struct model_info *info, const struct batch *b, float *const *param,
                        struct workspace *s)
{
    double sum = 0;
    compute_margins(info, b, param, s);
    for (size_t i = 0; i < b->rows * model_outputs(info); i++)
        sum += (double)s->residual[i] * (double)s->margin[i];
    return sum;
}

/* By the parameter *x: central differences with steps h and 2 h, from which the error of order h^2 is removed. */
static double slope(const struct model_info *info, const struct batch *b, float *const *param, float *x,
                    struct workspace *s)
{
    const float keep = *x, h = 0x1p-4f;
    double d[2];
    for (int i = 0; i < 2; i++) {
        const float step = i == 0 ? h : 2 * h;
        *x = keep + step;
        d[i] = objective(info, b, param, s);
        *x = keep - step;
        d[i] = (d[i] - objective(info, b, param, s)) / (2 * (double)step);
    }
    *x = keep;
    return (4 * d[0] - d[1]) / 3;
}

static void gradient_of(const struct model_info *info, const struct batch *b, uint64_t seed)
{
    struct params param = {0}, grad = {0};
    struct workspace s = {0};
    const uint64_t *key;
    assert_int_equal(params_fit(&param, info, b->unique), PARAMO_OK);
    assert_int_equal(params_fit(&grad, info, b->unique), PARAMO_OK);
    assert_int_equal(workspace_fit(&s, info, b->rows, b->unique), PARAMO_OK);
    for (size_t t = 0; t < info->ops->tables; t++) {
        const size_t fixed = model_fixed_rows(info, t), rows = fixed > 0 ? fixed : b->unique;
        for (size_t i = 0; i < rows * model_row_values(info, t); i++)
            param.table[t][i] = draw_float(&seed) / 2 + (t == 0 ? 1 : (float)model_shape(info, t).mean);
    }
    for (size_t i = 0; i < b->rows * model_outputs(info); i++)
        s.residual[i] = draw_float(&seed);
    (void)objective(info, b, param.table, &s); /* leaves the scratch that the gradient needs */
    compute_gradient(info, b, param.table, &s, grad.table);
    for (size_t t = 0; t < info->ops->tables; t++)
        for (size_t i = 0; i < model_keys(info, t, b, &key) * model_row_values(info, t); i++) {
            const double by_differences = slope(info, b, param.table, &param.table[t][i], &s);
            if (fabs(by_differences - (double)grad.table[t][i]) > 1e-3 * (1 + fabs(by_differences)))
                fail_msg("%s, table %s, value %zu: gradient %g, by differences %g", info->ops->name,
                         info->ops->table[t].name, i, (double)grad.table[t][i], by_differences);
        }
    params_free(&param);
    params_free(&grad);
    workspace_free(&s);
}

/* With one output and with several, over rows in which features and fields repeat, and fields are missing. A key has
 * several fields, and a field that is not counted comes, too. */
static void test_gradients_are_those_of_the_margins(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct block b = random_block(seed, ROWS, FEATURES, KEYS, 1, seed % 2 == 0);
        uint16_t field[ROWS * FEATURES];
        for (size_t i = 0; i < b.offset[ROWS]; i++)
            field[i] = (uint16_t)(b.key[i] % 13 == 0 ? UINT16_MAX : (b.key[i] + (i % 7 == 0)) % FIELDS);
        for (size_t i = 0; model_at(i) != NULL; i++) {
            struct model_info info;
            model_info_init(&info, model_at(i));
            begin_fields(&info);
            for (size_t k = 0; k < info.ops->settings; k++) /* small: each parameter is tried */
                if (info.ops->setting[k].whole && info.setting[k] > FIELDS)
                    info.setting[k] = FIELDS;
            if (seed > 7) {
                info.objective = objective_of(&objective_softmax);
                info.objective.classes = 3;
            }
            b.field = info.ops->fields != MODEL_NO_FIELDS ? field : NULL;
            assert_int_equal(batcher_cut(batcher, &b, ROWS / 2, &list), PARAMO_OK);
            assert_ptr_equal(list.batch[0].field, b.field);
            for (size_t k = 0; k < list.n; k++)
                gradient_of(&info, &list.batch[k], seed);
        }
        b.field = NULL;
        block_free(&b);
    }
    batch_list_free(&list);
    batcher_free(batcher);
}

/* Each output of several has the margins that a model of its values alone has. */
static void test_outputs_are_models_of_their_own(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    uint64_t seed = 5;
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    struct block b = random_block(seed, ROWS, FEATURES, KEYS, 1, 1);
    assert_int_equal(batcher_cut(batcher, &b, ROWS, &list), PARAMO_OK);
    struct model_info many, one;
    model_info_init(&many, model_find("fm"));
    one = many;
    many.objective = objective_of(&objective_softmax);
    many.objective.classes = 3;
    struct params all = {0}, own = {0};
    struct workspace s = {0}, single = {0};
    const size_t keys = list.batch[0].unique;
    assert_int_equal(params_fit(&all, &many, keys), PARAMO_OK);
    assert_int_equal(params_fit(&own, &one, keys), PARAMO_OK);
    assert_int_equal(workspace_fit(&s, &many, ROWS, keys), PARAMO_OK);
    assert_int_equal(workspace_fit(&single, &one, ROWS, keys), PARAMO_OK);
    for (size_t t = 0; t < many.ops->tables; t++)
        for (size_t i = 0; i < keys * model_row_values(&many, t); i++)
            all.table[t][i] = draw_float(&seed);
    compute_margins(&many, &list.batch[0], all.table, &s);
    for (uint32_t c = 0; c < 3; c++) {
        for (size_t t = 0; t < many.ops->tables; t++) {
            const size_t dim = model_shape(&many, t).dim;
            for (size_t i = 0; i < keys * dim; i++)
                own.table[t][i] = all.table[t][i / dim * 3 * dim + c * dim + i % dim];
        }
        compute_margins(&one, &list.batch[0], own.table, &single);
        assert_memory_equal(single.margin, s.margin + c * ROWS, ROWS * sizeof *s.margin);
    }
    params_free(&all);
    params_free(&own);
    workspace_free(&s);
    workspace_free(&single);
    batch_list_free(&list);
    batcher_free(batcher);
    block_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_definitions_are_whole),
                                       cmocka_unit_test(test_gradients_are_those_of_the_margins),
                                       cmocka_unit_test(test_outputs_are_models_of_their_own)};
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
