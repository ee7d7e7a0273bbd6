#include "unit.h"

#include "base/two_ways.h"

/* Windows in which each way has the same cost every time. Returns how many went the second way. */
static unsigned windows(struct two_ways *t, unsigned count, uint64_t first, uint64_t second)
{
    unsigned seconds = 0;
    for (unsigned i = 0; i < count; i++) {
        seconds += t->second;
        two_ways_window(t, t->second ? second : first);
    }
    return seconds;
}

static void the_cheaper_way_is_kept(void **state)
{
    (void)state;
    struct two_ways t;
    two_ways_init(&t);
    assert_int_equal(windows(&t, 1, 100, 50), 0); /* the first way, while nothing is known */
    assert_int_equal(windows(&t, 1 + TWO_WAYS_STAY_MIN, 100, 50), 1 + TWO_WAYS_STAY_MIN);
    assert_false(t.second); /* the first way is tried again */
    assert_int_equal(windows(&t, 1000, 100, 50), 1000 - 6);
    two_ways_init(&t);
    assert_int_equal(windows(&t, 2 + 2 * TWO_WAYS_STAY_MIN, 50, 100), 1);
    assert_true(t.second);
    assert_int_equal(windows(&t, 1000, 50, 100), 6); /* trials become rare: after 16, 32, 64 ... windows */
}

static void the_second_way_must_win_by_some(void **state)
{
    (void)state;
    struct two_ways t;
    two_ways_init(&t);
    assert_int_equal(windows(&t, 2, 3200, 3100), 1);
    assert_false(t.second);
    two_ways_init(&t);
    assert_int_equal(windows(&t, 2, 3200, 3099), 1);
    assert_true(t.second);
}

static void a_change_is_noticed(void **state)
{
    (void)state;
    struct two_ways t;
    two_ways_init(&t);
    windows(&t, 10000, 100, 50);
    assert_true(t.better);
    windows(&t, 1 + TWO_WAYS_STAY_MAX, 40, 90);
    assert_int_equal(windows(&t, TWO_WAYS_STAY_MIN, 40, 90), 0);
    assert_true(windows(&t, 10000, 40, 90) < 10000 / 100);
}

static void a_way_that_fails_is_left(void **state)
{
    (void)state;
    struct two_ways t;
    two_ways_init(&t);
    windows(&t, 3, 100, 50);
    assert_true(t.second);
    two_ways_fail(&t);
    assert_int_equal(windows(&t, TWO_WAYS_STAY_MIN, 100, 50), 0);
    assert_int_equal(windows(&t, 1, 100, 50), 1);
    /* A window in which nothing was done. */
    assert_true(t.second);
    two_ways_window(&t, 0);
    assert_int_equal(windows(&t, 1, 100, 50), 0);
    assert_true(t.second);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_cheaper_way_is_kept),
        cmocka_unit_test(the_second_way_must_win_by_some),
        cmocka_unit_test(a_change_is_noticed),
        cmocka_unit_test(a_way_that_fails_is_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
