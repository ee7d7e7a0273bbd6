#include "learn/model/compute.h"
#include "learn/support_fields.h"
#include "learn/support_learn.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Eq. (4) of Pan et al. as it stands: all pairs. The settings are dim, factor-init and fields. */
static double slow_margin(const struct model_info *info, const struct batch *b, size_t row,
                          double *const *param)
{
    const size_t dim = (size_t)info->setting[0], fields = model_fields(info);
    const double *v = param[1], *r = param[2];
    const size_t from = b->start[row] - b->start[0], to = b->start[row + 1] - b->start[0];
    double sum = field_linear(b, row, param[0]);
    for (size_t i = from; i < to; i++)
        for (size_t j = i + 1; j < to; j++) {
            const size_t f = b->field[i], g = b->field[j];
            double dot = 0;
            if (f >= fields || g >= fields)
                continue;
            for (size_t k = 0; k < dim; k++)
                dot += v[b->index[i] * dim + k] * v[b->index[j] * dim + k];
            sum +=
                (f < g ? r[f * fields + g] : r[g * fields + f]) * dot * field_value(b, i) * field_value(b, j);
        }
    return sum;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    check_field_model(&model_fwfm, slow_margin);
}

/* A field with one feature in a row has no pair of its own: its weight changes no bit of the margin, and has no
 * gradient. */
static void test_a_feature_is_no_pair(void **state)
{
    (void)state;
    const float value = 0.3f, label = 1;
    const uint32_t start[] = {0, 1}, index[] = {0};
    const uint16_t field[] = {1};
    const uint64_t key[] = {5, BATCH_BIAS_KEY};
    const struct batch b = {.rows = 1,
                            .unique = 2,
                            .key = key,
                            .label = &label,
                            .start = start,
                            .index = index,
                            .value = &value,
                            .field = field};
    float w[] = {0.5f, -0.25f}, v[16], r[9] = {1, 1, 1, 1, 1e30f, 1, 1, 1, 1}, gw[2], gv[16], gr[9];
    float *param[] = {w, v, r}, *grad[] = {gw, gv, gr};
    struct workspace s = {0};
    struct model_info info;
    uint64_t seed = 3;
    model_info_init(&info, &model_fwfm);
    info.setting[2] = 3;
    assert_int_equal(info.setting[0], 8);
    for (size_t k = 0; k < 16; k++)
        v[k] = draw_float(&seed);
    assert_int_equal(workspace_fit(&s, &info, 1, 2), PARAMO_OK);
    compute_margins(&info, &b, param, &s);
    assert_true(s.margin[0] == -0.25f + 0.5f * 0.3f);
    s.residual[0] = 1;
    compute_gradient(&info, &b, param, &s, grad);
    for (size_t k = 0; k < 16; k++)
        assert_true(gv[k] == 0);
    for (size_t k = 0; k < 9; k++)
        assert_true(gr[k] == 0);
    workspace_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition),
                                       cmocka_unit_test(test_a_feature_is_no_pair)};
    return cmocka_run_group_tests_name("fwfm", tests, NULL, NULL);
}
