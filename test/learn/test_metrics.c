#include "learn/eval/metrics.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

/* The definitions, pair by pair and by libm. */
static struct metrics_result slow(const float *m, const float *y, size_t n)
{
    double pairs = 0, right = 0, loss = 0, sum = 0, correct = 0, positives = 0;
    for (size_t i = 0; i < n; i++) {
        double p = 1 / (1 + exp(-(double)m[i])), q = p < 1e-15 ? 1e-15 : p > 1 - 1e-15 ? 1 - 1e-15 : p;
        positives += (double)y[i];
        sum += p;
        loss -= y[i] > 0 ? log(q) : log(1 - q);
        correct += (p >= 0.5) == (y[i] > 0);
        for (size_t j = 0; j < n; j++) {
            if (y[i] > 0 && !(y[j] > 0)) {
                pairs += 1;
                right += m[i] > m[j] ? 1 : m[i] == m[j] ? 0.5 : 0;
            }
        }
    }
    return (struct metrics_result){
        n, (uint64_t)positives, loss / (double)n, right / pairs, correct / (double)n, sum / positives};
}

static void test_against_the_definition(void **state)
{
    (void)state;
    enum { MOST = 400 };
    static float m[MOST], y[MOST];
    struct metrics *metrics;
    assert_int_equal(metrics_new(&metrics), PARAMO_OK);
    uint64_t s = 4;
    for (int t = 0; t < 200; t++) {
        size_t n = 2 + draw(&s) % (MOST - 2), levels = 1 + draw(&s) % 300;
        for (size_t i = 0; i < n; i++) {
            m[i] = ((float)(draw(&s) % levels) - (float)levels / 2) / 16; /* many ties, both signs, 0 */
            if (draw(&s) % 16 == 0)
                m[i] = -0.0f;
            y[i] = (float)(draw(&s) & 1);
        }
        y[0] = 0;
        y[1] = 1;
        metrics_reset(metrics);
        size_t cut = draw(&s) % n;
        assert_int_equal(metrics_add(metrics, m, y, cut), PARAMO_OK);
        assert_int_equal(metrics_add(metrics, m + cut, y + cut, n - cut), PARAMO_OK);
        struct metrics_result fast, want = slow(m, y, n);
        assert_int_equal(metrics_finish(metrics, &fast), PARAMO_OK);
        assert_int_equal(fast.rows, want.rows);
        assert_int_equal(fast.positives, want.positives);
        assert_true(fabs(fast.auc - want.auc) < 1e-12);
        assert_true(fabs(fast.logloss - want.logloss) < 1e-12 * want.logloss);
        assert_true(fast.accuracy == want.accuracy);
        assert_true(fabs(fast.calibration - want.calibration) < 1e-12);
    }
    metrics_free(metrics);
}

static void test_edges(void **state)
{
    (void)state;
    struct metrics *metrics;
    struct metrics_result r;
    assert_int_equal(metrics_new(&metrics), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_E_INVALID);
    float m[] = {100, -100}, same[] = {0, 0}, y[] = {0, 1}, bad[] = {0, NAN};
    assert_int_equal(metrics_add(metrics, m, y, 2), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_OK);
    assert_true(fabs(r.logloss - -log(1e-15)) < 1e-9 && r.auc == 0 && r.accuracy == 0);
    metrics_reset(metrics);
    assert_int_equal(metrics_add(metrics, m, same, 2), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_OK);
    assert_true(isnan(r.auc) && isnan(r.calibration) && r.positives == 0);
    assert_int_equal(metrics_add(metrics, bad, y, 2), PARAMO_E_NUMERIC);
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_edges),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
