/*
 * Every model of the table: what its definition must have for the training, the files and the options to work, and
 * its gradient against differences of its margins.
 */
#include "learn/model/model.h"
#include "learn/model/params.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 12, FEATURES = 5, KEYS = 20, FIELDS = 4 };

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
            assert_true(!s->whole || (s->initial >= s->min && s->initial <= s->max && s->max <= UINT16_MAX));
            assert_true(s->whole || s->initial > 0);
        }
    }
    assert_null(model_find("no such model"));
    assert_null(optimizers_find("no such optimizer"));
}

/* sum_r residual_r margin_r, whose derivative by a parameter is the gradient. */
static double objective(const struct model_info *info, const struct batch *b, float *const *param,
                        struct row_scratch *s)
{
    double sum = 0;
    info->ops->margins(info, b, param, s->model, s->margin);
    for (size_t r = 0; r < b->rows; r++)
        sum += (double)s->residual[r] * (double)s->margin[r];
    return sum;
}

static void gradient_of(const struct model_info *info, const struct batch *b, uint64_t seed)
{
    struct params param = {0}, grad = {0};
    struct row_scratch s = {0};
    assert_int_equal(params_fit(&param, info, b->unique), PARAMO_OK);
    assert_int_equal(params_fit(&grad, info, b->unique), PARAMO_OK);
    assert_int_equal(row_scratch_fit(&s, info, b->rows), PARAMO_OK);
    for (size_t t = 0; t < info->ops->tables; t++)
        for (size_t i = 0; i < b->unique * info->ops->shape(info, t).dim; i++)
            param.table[t][i] = draw_float(&seed) / 2 + (t == 0 ? 1 : 0);
    for (size_t r = 0; r < b->rows; r++)
        s.residual[r] = draw_float(&seed);
    if (info->ops->mask != NULL)
        info->ops->mask(info, b, param.table);
    (void)objective(info, b, param.table, &s); /* leaves the scratch that the gradient needs */
    info->ops->gradient(info, b, param.table, s.model, s.residual, grad.table);
    for (size_t t = 0; t < info->ops->tables; t++)
        for (size_t i = 0; i < model_keys(info, t, b) * info->ops->shape(info, t).dim; i++) {
            float keep = param.table[t][i];
            param.table[t][i] = keep + 0.25f;
            double up = objective(info, b, param.table, &s);
            param.table[t][i] = keep - 0.25f;
            double down = objective(info, b, param.table, &s);
            param.table[t][i] = keep;
            if (fabs((up - down) * 2 - (double)grad.table[t][i]) > 1e-3)
                fail_msg("%s, table %s, value %zu: gradient %g, by differences %g", info->ops->name,
                         info->ops->table[t].name, i, (double)grad.table[t][i], (up - down) * 2);
        }
    params_free(&param);
    params_free(&grad);
    row_scratch_free(&s);
}

/* Margins are linear, or of degree two in all parameters and linear in each, so wide differences are exact. */
static void test_gradients_are_those_of_the_margins(void **state)
{
    (void)state;
    struct batcher *batcher;
    struct batch_list list = {0};
    assert_int_equal(batcher_new(&batcher), PARAMO_OK);
    for (uint64_t seed = 1; seed <= 10; seed++) {
        struct block b = random_block(seed, ROWS, FEATURES, KEYS, 1, seed % 2 == 0);
        uint16_t field[ROWS * FEATURES];
        for (size_t r = 0; r < ROWS; r++)
            for (uint32_t i = b.offset[r]; i < b.offset[r + 1]; i++) {
                field[i] = (uint16_t)(i % FIELDS);
                b.key[i] = b.key[i] % 3 * FEATURES + (i - b.offset[r]); /* distinct in a row */
            }
        for (size_t i = 0; model_at(i) != NULL; i++) {
            struct model_info info;
            model_info_init(&info, model_at(i));
            b.field = info.ops->fields ? field : NULL;
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

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_definitions_are_whole),
                                       cmocka_unit_test(test_gradients_are_those_of_the_margins)};
    return cmocka_run_group_tests_name("model", tests, NULL, NULL);
}
