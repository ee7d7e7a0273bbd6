#include "learn/model/logistic.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static void close_to(double a, double b, double relative)
{
    if (!(fabs(a - b) <= relative * fabs(b)))
        fail_msg("%.17g is not within %g of %.17g", a, relative, b);
}

static void test_agrees_with_libm(void **state)
{
    (void)state;
    uint64_t s = 1;
    for (int i = 0; i < 200000; i++) {
        float m = draw_float(&s) * (i % 3 == 0 ? 34.0f : i % 3 == 1 ? 3.0f : 0.01f);
        double x = (double)m;
        close_to(link_probability(m), 1 / (1 + exp(-x)), 4e-15);
        close_to(link_loss(m, 1), x < 0 ? -x + log1p(exp(x)) : log1p(exp(-x)), 1e-14);
        close_to(link_loss(m, 0), x < 0 ? log1p(exp(x)) : x + log1p(exp(-x)), 1e-14);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    assert_true(link_probability(1e30f) == 1.0);
    assert_true(link_probability(-1e30f) >= 0 && link_probability(-1e30f) < 1e-300);
    assert_true(link_probability(0) == 0.5);
    assert_true(link_loss(1e30f, 0) == LINK_MAX_LOSS);
    assert_true(link_loss(-1e30f, 1) == LINK_MAX_LOSS);
    assert_true(link_loss(1e30f, 1) < 1e-300);
    close_to(LINK_MAX_LOSS, -log(1e-15), 1e-15);
}

static void test_batches_equal_single_rows(void **state)
{
    (void)state;
    enum { N = 1000 };
    static float margin[N], label[N], residual[N];
    uint64_t s = 2;
    double sum = 0;
    for (size_t i = 0; i < N; i++) {
        margin[i] = 5 * draw_float(&s);
        label[i] = (float)(draw(&s) & 1);
        sum += link_loss(margin[i], label[i]);
    }
    for (size_t n = 0; n < 130; n++)
        (void)link_residuals(margin, label, n,
                             residual); /* no byte beyond n is touched: the sanitizer watches */
    margin[7] = 1e30f;                  /* beyond the clamp, of either sign, and none */
    margin[8] = -1e30f;
    margin[9] = 0.0f;
    margin[10] = -0.0f;
    margin[11] = -700.5f;
    sum = 0;
    for (size_t i = 0; i < N; i++)
        sum += link_loss(margin[i], label[i]);
    for (size_t level = 0; level < vector_count(); level++) {
        vector_limit(vector_names[level]);
        assert_true(link_residuals(margin, label, N, residual) == sum);
        for (size_t i = 0; i < N; i++)
            assert_true(residual[i] == (float)(link_probability(margin[i]) - (double)label[i]));
    }
    vector_limit(NULL);
}

static void test_the_margin_of_counts(void **state)
{
    (void)state;
    uint64_t s = 3;
    for (int i = 0; i < 10000; i++) {
        size_t a = (size_t)(draw(&s) >> (draw(&s) % 60 + 2)), b = (size_t)(draw(&s) >> (draw(&s) % 60 + 2));
        assert_true(fabs(link_margin(a, b) - log(((double)a + 1) / ((double)b + 1))) < 1e-13);
        assert_true(link_margin(a, b) == -link_margin(b, a));
    }
    assert_true(link_margin(7, 7) == 0 && link_margin(0, 0) == 0 && link_margin(0, 9999) < -9.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_libm),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_the_margin_of_counts),
        cmocka_unit_test(test_batches_equal_single_rows),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
