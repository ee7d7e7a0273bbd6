#include "learn/support_fields.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* Eq. (6) of Cao et al. as it stands, and the linear part. The settings are dim, factor-init and fields. */
static double slow_margin(const struct model_info *info, const struct batch *b, size_t row,
                          double *const *param)
{
    const size_t dim = (size_t)info->setting[0];
    const double *v = param[1], *own = param[2];
    double sum = field_linear(b, row, param[0]);
    for (size_t k = 0; k < dim; k++) {
        double product = 1;
        for (size_t f = 0; f < model_fields(info); f++) {
            double view = own[f * dim + k];
            for (size_t i = b->start[row] - b->start[0]; i < b->start[row + 1] - b->start[0]; i++)
                if (b->field[i] == f)
                    view += v[b->index[i] * dim + k] * field_value(b, i);
            product *= view;
        }
        sum += product;
    }
    return sum;
}

static void test_against_the_definition(void **state)
{
    (void)state;
    check_field_model(&model_mvm, slow_margin);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_the_definition)};
    return cmocka_run_group_tests_name("mvm", tests, NULL, NULL);
}
