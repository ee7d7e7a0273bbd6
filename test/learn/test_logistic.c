/* The logistic link, exp and log, against libm. */
#include "learn/objective/logistic.h"
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

static void test_exp_and_log(void **state)
{
    (void)state;
    uint64_t s = 4;
    for (int i = 0; i < 100000; i++) {
        const double x = (double)draw_float(&s) * (i % 2 == 0 ? 600 : 2);
        close_to(link_exp(x), exp(x), 1e-14);
        if (fabs(x) > 1e-3)
            close_to(link_log(exp(x)), x, 1e-12);
    }
    assert_true(link_exp(0) == 1 && link_log(1) == 0);
    assert_true(link_exp(-1e9) < 1e-300 && link_exp(1e9) > 1e300);
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

static void test_the_margin_of_counts(void **state)
{
    (void)state;
    uint64_t s = 3;
    for (int i = 0; i < 10000; i++) {
        size_t a = (size_t)(draw(&s) >> (draw(&s) % 60 + 2)), b = (size_t)(draw(&s) >> (draw(&s) % 60 + 2));
        assert_true(fabs(link_margin((double)a, (double)b) - log(((double)a + 1) / ((double)b + 1))) < 1e-13);
        assert_true(link_margin((double)a, (double)b) == -link_margin((double)b, (double)a));
    }
    assert_true(link_margin(7, 7) == 0 && link_margin(0, 0) == 0 && link_margin(0, 9999) < -9.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_agrees_with_libm),
        cmocka_unit_test(test_exp_and_log),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_the_margin_of_counts),
    };
    return cmocka_run_group_tests_name("link", tests, NULL, NULL);
}
