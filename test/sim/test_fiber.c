/* A fiber runs in turns with its resumer, on a stack of its own, and ends. */
#include "unit.h"

#include <string.h>

#include "sim/fiber.h"

struct count {
    struct fiber *fiber;
    unsigned to, at;
};

/* Deep enough that its frames would run into another's, were they on one stack. */
static unsigned down(struct count *c, unsigned depth)
{
    volatile unsigned char frame[512];
    memset((void *)(unsigned char *)frame, (int)depth, sizeof frame);
    if (depth)
        return down(c, depth - 1) + frame[7] - depth;
    for (; c->at < c->to; c->at++)
        fiber_pause(c->fiber);
    return c->at;
}

static void count(void *arg)
{
    struct count *c = arg;
    c->at = down(c, 100);
}

static void two_fibers_migration_target_turns(void **state)
{
    (void)state;
    struct count a = {.to = 3}, b = {.to = 5};
    a.fiber = fiber_new(count, &a);
    b.fiber = fiber_new(count, &b);
    for (unsigned i = 0; i < 3; i++) {
        assert_false(fiber_resume(a.fiber));
        assert_false(fiber_resume(b.fiber));
        assert_int_equal(a.at, i);
        assert_int_equal(b.at, i);
    }
    assert_true(fiber_resume(a.fiber));
    assert_int_equal(a.at, 3);
    fiber_free(a.fiber);
    assert_false(fiber_resume(b.fiber));
    assert_false(fiber_resume(b.fiber));
    assert_true(fiber_resume(b.fiber));
    assert_int_equal(b.at, 5);
    fiber_free(b.fiber);
}

static void one_that_never_ran_is_freed(void **state)
{
    (void)state;
    struct count c = {.to = 1};
    c.fiber = fiber_new(count, &c);
    fiber_free(c.fiber);
    assert_int_equal(c.at, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_fibers_migration_target_turns),
        cmocka_unit_test(one_that_never_ran_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
