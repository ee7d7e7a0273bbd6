#include "learn/darlin/plan.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct darlin_options options = {.on = 1, .epsilon = 1e-4, .passes = 50};

/* Sums of one pass by two workers, whose objective is this. */
static void sum_up(double *sums, double objective, double violation)
{
    memset(sums, 0, PLAN_SUMS * sizeof *sums);
    sums[PLAN_ROWS] = 100;
    sums[PLAN_KEYS] = 10;
    for (int i = 0; i < PLAN_WAYS; i++)
        sums[PLAN_LOSS + i] = objective + i;
    sums[PLAN_VIOLATION] = violation;
    sums[PLAN_MOST] = 0.125;
    sums[PLAN_MEMBER] = sums[PLAN_MEMBER + 1] = 1;
}

static struct plan begun(void)
{
    double sums[PLAN_SUMS];
    struct plan load = {.kind = PLAN_LOAD, .damping = 1, .full = 1, .tolerance = DARLIN_TOLERANCE}, plan;
    sum_up(sums, 1000, 0);
    sums[PLAN_KEYS] = 0;
    plan_decide(&load, sums, 0, &options, 1, &plan);
    assert_true(plan.kind == PLAN_PASS && plan.full && plan.fresh && plan.owners == 2 && plan.rows == 100);
    assert_true(plan.objective == 1000 && plan.number == 1);
    plan.keys = 10;
    plan.blocks = 4;
    return plan;
}

static struct plan next(const struct plan *plan, double objective, double violation)
{
    double sums[PLAN_SUMS];
    struct plan out;
    sum_up(sums, objective, violation);
    plan_decide(plan, sums, plan->dead, &options, 1, &out);
    return out;
}

static void test_codes_itself(void **state)
{
    (void)state;
    struct plan plan = begun(), back;
    double code[PLAN_DOUBLES];
    plan.way = 4;
    plan.guess = -1.5;
    plan.converged = 1;
    plan.violation = 3;
    plan.margin = 0.25;
    plan.clock = 1000000007;
    plan.leader = 9;
    plan.dead = 2;
    plan.passes = 7;
    plan_encode(&plan, code);
    assert_true(plan_decode(code, &back));
    assert_memory_equal(&plan, &back, sizeof plan);
}

/* Each number that counts or names something is whole, and within its range. */
static void test_wrong_codes_are_refused(void **state)
{
    (void)state;
    static const int places[] = {0, 1, 2, 3, 4, 5, 6, 16};
    static const double wrong[] = {-1, 0.5, 1e300, NAN, INFINITY};
    struct plan plan = begun(), back;
    double code[PLAN_DOUBLES];
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
            plan_encode(&plan, code);
            code[places[i]] = wrong[k];
            assert_false(plan_decode(code, &back));
        }
    plan_encode(&plan, code);
    code[1] = PLAN_DONE + 1;
    assert_false(plan_decode(code, &back));
    plan_encode(&plan, code);
    code[16] = 1;
    code[PLAN_DOUBLES - PLAN_MEMBERS] = PLAN_MEMBERS;
    assert_false(plan_decode(code, &back));
}

/* Filtered passes to a tolerance, a full one, a smaller tolerance; the end after a full one only. */
static void test_ends_after_a_full_pass(void **state)
{
    (void)state;
    struct plan p = begun();
    p = next(&p, 500, 100);
    assert_true(p.kind == PLAN_PASS && !p.full && p.violation == 100 && p.margin == 0.125);
    p = next(&p, 499, 1); /* within 1 % */
    assert_true(p.full && p.tolerance == DARLIN_TOLERANCE);
    p = next(&p, 498.999, 0.5);
    assert_true(!p.full && p.tolerance < DARLIN_TOLERANCE && p.tolerance > options.epsilon / 2);
    for (int i = 0; i < 20 && p.tolerance > options.epsilon; i++)
        p = next(&p, p.objective - 1e-4, 0.5);
    assert_true(p.tolerance == options.epsilon && p.kind == PLAN_PASS);
    if (p.full)
        p = next(&p, p.objective - 0.03, 50); /* it found keys that must come back */
    assert_true(p.kind == PLAN_PASS);
    while (!p.full)
        p = next(&p, p.objective - 0.01, 0.5);
    p = next(&p, p.objective - 0.01, 0.5);
    assert_true(p.kind == PLAN_END && p.converged && p.way == 0);
}

static void test_ends_after_so_many_passes(void **state)
{
    (void)state;
    struct plan p = begun();
    for (uint32_t i = 1; i < options.passes; i++) {
        p = next(&p, p.objective * 0.9, 100);
        assert_true(p.kind == PLAN_PASS && p.passes == i);
    }
    p = next(&p, p.objective * 0.9, 100);
    assert_true(p.kind == PLAN_END && !p.converged);
}

static void test_halves_steps_that_are_too_long(void **state)
{
    (void)state;
    struct plan p = begun();
    p = next(&p, 500, 100);
    p = next(&p, 600, 100);
    assert_true(p.damping == 2 && p.kind == PLAN_PASS);
    p = next(&p, 400, 100);
    p = next(&p, 300, 100);
    p = next(&p, 250, 100);
    assert_true(p.damping == 1);
}

/* The next pass begins where the objective is least along the way of the last one. */
static void test_goes_on_where_it_is_better(void **state)
{
    (void)state;
    double sums[PLAN_SUMS];
    struct plan p = begun(), out;
    sum_up(sums, 500, 100);
    sums[PLAN_LOSS + 3] = 400;
    plan_decide(&p, sums, 0, &options, 1, &out);
    assert_true(plan_way(3) == 2 && out.way == 2 && out.objective == 400);
}

/* Rows or keys are missing, or a worker died: the others add up once more before the objective counts. */
static void test_adds_up_again_when_a_worker_is_gone(void **state)
{
    (void)state;
    double sums[PLAN_SUMS];
    struct plan p = begun(), out, after;
    sum_up(sums, 500, 100);
    sums[PLAN_ROWS] = 60;
    sums[PLAN_KEYS] = 5;
    sums[PLAN_MEMBER + 1] = 0;
    plan_decide(&p, sums, 1, &options, 1, &out);
    assert_true(out.kind == PLAN_AGAIN && out.fresh && out.owners == 1 && out.dead == 1 && out.passes == 0);
    sums[PLAN_ROWS] = 100; /* the other has its parts now */
    sums[PLAN_KEYS] = 10;
    plan_decide(&out, sums, 1, &options, 1, &after);
    assert_true(after.kind == PLAN_PASS && after.full && !after.fresh && after.objective == 500);
    sums[PLAN_KEYS] = 5; /* still not whole */
    plan_decide(&out, sums, 1, &options, 1, &after);
    assert_true(after.kind == PLAN_AGAIN);
}

static void test_order(void **state)
{
    (void)state;
    struct plan p = begun();
    struct darlin_options fixed = options;
    uint32_t a[100], b[100];
    uint8_t seen[100] = {0};
    int moved = 0, differ = 0;
    p.blocks = 100;
    plan_order(&p, &options, 1, a);
    for (int i = 0; i < 100; i++) {
        assert_true(a[i] < 100 && !seen[a[i]]);
        seen[a[i]] = 1;
        moved += a[i] != (uint32_t)i;
    }
    p.passes++;
    plan_order(&p, &options, 1, b);
    for (int i = 0; i < 100; i++)
        differ += a[i] != b[i];
    assert_true(moved > 80 && differ > 80);
    fixed.fixed = 1;
    plan_order(&p, &fixed, 1, a);
    for (int i = 0; i < 100; i++)
        assert_int_equal(a[i], i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_codes_itself),
        cmocka_unit_test(test_wrong_codes_are_refused),
        cmocka_unit_test(test_ends_after_a_full_pass),
        cmocka_unit_test(test_ends_after_so_many_passes),
        cmocka_unit_test(test_halves_steps_that_are_too_long),
        cmocka_unit_test(test_goes_on_where_it_is_better),
        cmocka_unit_test(test_adds_up_again_when_a_worker_is_gone),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
