#include "learn/darlin/coordinate.h"
#include "learn/support_learn.h"

#include <math.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static double model(double w, double d, double g, double u, double l1)
{
    return g * d + 0.5 * u * d * d + l1 * fabs(w + d);
}

static double between(uint64_t *seed, double low, double high)
{
    return low + (high - low) * (double)(draw(seed) >> 11) * 0x1p-53;
}

static void test_step_is_the_least(void **state)
{
    (void)state;
    uint64_t seed = 1;
    for (int i = 0; i < 2000; i++) {
        const double w = i % 3 == 0 ? 0 : between(&seed, -2, 2), g = between(&seed, -3, 3),
                     u = between(&seed, 0.01, 4), l1 = between(&seed, 0, 2),
                     reach = i % 2 ? 0 : between(&seed, 0.001, 1);
        const double d = coordinate_step(w, g, u, l1, reach) - w, least = model(w, d, g, u, l1);
        if (reach > 0)
            assert_true(fabs(d) <= reach * (1 + 1e-12));
        for (int k = -1000; k <= 1000; k++) {
            const double other = (reach > 0 ? reach : 10) * k / 1000;
            assert_true(model(w, other, g, u, l1) >= least - 1e-9);
        }
    }
}

static void test_violation(void **state)
{
    (void)state;
    assert_true(coordinate_violation(0, 0.9, 1) == 0);
    assert_true(coordinate_violation(0, -1.5, 1) == 0.5);
    assert_true(coordinate_violation(2, -1, 1) == 0);
    assert_true(coordinate_violation(-2, 1, 1) == 0);
    assert_true(coordinate_violation(2, 1, 1) == 2);
    assert_true(coordinate_violation(-2, 0.25, 1) == 0.75);
}

/* The bound holds wherever the margin goes, and is tight where it stays. */
static void test_curvature_bounds(void **state)
{
    (void)state;
    for (double m = -8; m <= 8; m += 0.25) {
        const double p = 1 / (1 + exp(-m)), bend = p * (1 - p);
        assert_true(fabs(coordinate_curvature(bend, 0) - bend) < 1e-15);
        for (double way = 0; way <= 3; way += 0.05) {
            const double bound = coordinate_curvature(bend, way);
            for (double at = m - way; at <= m + way + 1e-9; at += 0.05) {
                const double q = 1 / (1 + exp(-at));
                assert_true(q * (1 - q) <= bound + 1e-9);
            }
        }
    }
    assert_true(coordinate_curvature(0.01, INFINITY) == 0.25);
}

static void test_reach(void **state)
{
    (void)state;
    assert_true(coordinate_reach(1, 0.1, 1, 1) == 0.5);
    assert_true(coordinate_reach(1, -0.9, 1, 1) == 1.8);
    assert_true(coordinate_reach(0, 0, 2, 1) == 0.25);
    assert_true(coordinate_reach(0, 3, 2, 1) == 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_step_is_the_least),
        cmocka_unit_test(test_violation),
        cmocka_unit_test(test_curvature_bounds),
        cmocka_unit_test(test_reach),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
