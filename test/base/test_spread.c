#include "unit.h"

#include "base/spread.h"

static void classes_are_in_order(void **state)
{
    (void)state;
    unsigned before = 0;
    for (uint64_t v = 0; v < 100000; v++) {
        unsigned at = spread_class(v);
        assert_true(at == before || at == before + 1);
        before = at;
    }
    assert_int_equal(spread_class(7), 7);
    assert_int_equal(spread_class(8), 8);
    assert_int_equal(spread_class(15), 15);
    assert_int_equal(spread_class(16), 16);
    assert_int_equal(spread_class(17), 16);
    assert_int_equal(spread_class((UINT64_C(1) << 34) - 1), SPREAD_CLASSES - 1);
    assert_int_equal(spread_class(UINT64_MAX), SPREAD_CLASSES - 1);
}

static void quantiles(void **state)
{
    (void)state;
    struct spread s = {0}, none = {0};
    assert_int_equal(spread_quantile(&s, 0.5), 0);
    for (uint64_t v = 1; v <= 1000; v++)
        spread_add(&s, v);
    static const double shares[] = {0.01, 0.1, 0.5, 0.9, 0.99};
    for (unsigned i = 0; i < 5; i++) { /* never too low, and an eighth too high at most */
        double exact = shares[i] * 1000;
        assert_true((double)spread_quantile(&s, shares[i]) >= exact);
        assert_true((double)spread_quantile(&s, shares[i]) <= exact * 1.125 + 1);
    }
    assert_int_equal(spread_quantile(&s, 1), 1000);
    spread_join(&s, &none);
    assert_int_equal(s.count, 1000);
    spread_add(&none, UINT64_C(1) << 40);
    spread_join(&s, &none);
    assert_int_equal(s.count, 1001);
    assert_true(spread_quantile(&s, 1) == UINT64_C(1) << 40);
    assert_true(spread_quantile(&s, 0.5) < 600);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(classes_are_in_order), cmocka_unit_test(quantiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
