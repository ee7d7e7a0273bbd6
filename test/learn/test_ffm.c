#include "learn/support_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Eq. (4) of Juan et al. as it stands. The settings are dim, factor-init and fields. */
static double slow_margin(const struct model_info *info, const struct batch *b, size_t row,
                          double *const *param)
{
    const size_t dim = (size_t)info->setting[0], fields = model_fields(info);
    const double *v = param[1];
    const size_t from = b->start[row] - b->start[0], to = b->start[row + 1] - b->start[0];
    double sum = field_linear(b, row, param[0]);
    for (size_t i = from; i < to; i++)
        for (size_t j = i + 1; j < to; j++) {
            double dot = 0;
            if (b->field[i] >= fields || b->field[j] >= fields)
                continue;
            for (size_t k = 0; k < dim; k++)
                dot += v[b->index[i] * fields * dim + b->field[j] * dim + k] *
                       v[b->index[j] * fields * dim + b->field[i] * dim + k];
            sum += dot * field_value(b, i) * field_value(b, j);
        }
    return sum;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    check_field_model(&model_ffm, slow_margin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition)};
    return cmocka_run_group_tests_name("ffm", tests, NULL, NULL);
}
