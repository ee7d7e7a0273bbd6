#include "learn/support_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The sum over the features of a field. The settings are dim, factor-init, user-field and item-field. */
static double side(const struct batch *b, size_t row, double field, size_t dim, size_t k, const double *v)
{
    double sum = 0;
    for (size_t i = b->start[row] - b->start[0]; i < b->start[row + 1] - b->start[0]; i++)
        if (b->field[i] == field)
            sum += v[b->index[i] * dim + k] * field_value(b, i);
    return sum;
}

/* Eq. (4) of Koren et al., with sums in the place of single users and items. */
static double slow_margin(const struct model_info *info, const struct batch *b, size_t row,
                          double *const *param)
{
    const size_t dim = (size_t)info->setting[0];
    double sum = field_linear(b, row, param[0]);
    for (size_t k = 0; k < dim; k++)
        sum += side(b, row, info->setting[2], dim, k, param[1]) *
               side(b, row, info->setting[3], dim, k, param[1]);
    return sum;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    check_field_model(&model_mf, slow_margin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition)};
    return cmocka_run_group_tests_name("mf", tests, NULL, NULL);
}
