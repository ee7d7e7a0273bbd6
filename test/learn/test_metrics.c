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
    return (struct metrics_result){.rows = n,
                                   .positives = (uint64_t)positives,
                                   .loss = loss / (double)n,
                                   .value = {[METRIC_AUC] = right / pairs,
                                             [METRIC_ACCURACY] = correct / (double)n,
                                             [METRIC_CALIBRATION] = sum / positives}};
}

static void test_against_the_definition(void **state)
{
    (void)state;
    enum { MOST = 400 };
    static float m[MOST], y[MOST];
    struct metrics *metrics;
    const struct objective o = objective_of(&objective_logistic);
    assert_int_equal(metrics_new(&o, &metrics), PARAMO_OK);
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
        metrics_reset(metrics, &o, NULL);
        size_t cut = draw(&s) % n;
        assert_int_equal(metrics_add(metrics, m, n, y, NULL, cut), PARAMO_OK);
        assert_int_equal(metrics_add(metrics, m + cut, n, y + cut, NULL, n - cut), PARAMO_OK);
        struct metrics_result fast, want = slow(m, y, n);
        assert_int_equal(metrics_finish(metrics, &fast), PARAMO_OK);
        assert_int_equal(fast.rows, want.rows);
        assert_int_equal(fast.positives, want.positives);
        assert_true(fabs(fast.value[METRIC_AUC] - want.value[METRIC_AUC]) < 1e-12);
        assert_true(fabs(fast.loss - want.loss) < 1e-12 * want.loss);
        assert_true(fast.value[METRIC_ACCURACY] == want.value[METRIC_ACCURACY]);
        assert_true(fabs(fast.value[METRIC_CALIBRATION] - want.value[METRIC_CALIBRATION]) < 1e-12);
        assert_true(isnan(fast.value[METRIC_RMSE]));
    }
    metrics_free(metrics);
}

static void test_edges(void **state)
{
    (void)state;
    struct metrics *metrics;
    struct metrics_result r;
    const struct objective o = objective_of(&objective_logistic);
    assert_int_equal(metrics_new(&o, &metrics), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_E_INVALID);
    float m[] = {100, -100}, same[] = {0, 0}, y[] = {0, 1}, bad[] = {0, NAN};
    assert_int_equal(metrics_add(metrics, m, 2, y, NULL, 2), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_OK);
    assert_true(fabs(r.loss - -log(1e-15)) < 1e-9 && r.value[METRIC_AUC] == 0 &&
                r.value[METRIC_ACCURACY] == 0);
    metrics_reset(metrics, &o, NULL);
    assert_int_equal(metrics_add(metrics, m, 2, same, NULL, 2), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_OK);
    assert_true(isnan(r.value[METRIC_AUC]) && isnan(r.value[METRIC_CALIBRATION]) && r.positives == 0);
    assert_int_equal(metrics_add(metrics, bad, 2, y, NULL, 2), PARAMO_E_NUMERIC);
    metrics_free(metrics);
}

/* Every sum, with weights and a guess, in two pieces, against its definition. */
static void test_weighted_sums(void **state)
{
    (void)state;
    enum { N = 500 };
    static float m[N], y[N], w[N];
    const float guess[] = {0.25f};
    uint64_t s = 9;
    for (size_t i = 0; i < N; i++) {
        m[i] = 2 * draw_float(&s);
        y[i] = m[i] + draw_float(&s);
        w[i] = 1 + draw_float(&s) / 2;
    }
    struct objective o = objective_of(&objective_squared);
    struct metrics *metrics;
    struct metrics_result r;
    assert_int_equal(metrics_new(&o, &metrics), PARAMO_OK);
    o.label_scale = 2; /* which a job knows only later */
    metrics_reset(metrics, &o, guess);
    assert_int_equal(metrics_add(metrics, m, N, y, w, 100), PARAMO_OK);
    assert_int_equal(metrics_add(metrics, m + 100, N, y + 100, w + 100, N - 100), PARAMO_OK);
    assert_int_equal(metrics_finish(metrics, &r), PARAMO_OK);
    double weight = 0, squares = 0, error = 0, base = 0, label = 0, label2 = 0;
    for (size_t i = 0; i < N; i++) {
        const double d = 2 * (double)m[i] - (double)y[i], g = 0.5 - (double)y[i];
        weight += (double)w[i];
        squares += (double)w[i] * d * d;
        error += (double)w[i] * fabs(d);
        base += (double)w[i] * g * g / 2;
        label += (double)w[i] * (double)y[i];
        label2 += (double)w[i] * (double)y[i] * (double)y[i];
    }
    const double mean = label / weight, variance = label2 / weight - mean * mean;
    assert_true(fabs(objective_shown(&o, r.loss) - sqrt(squares / weight)) < 1e-9);
    assert_true(fabs(r.base - base / weight) < 1e-9 && fabs(r.mean_label - mean) < 1e-9);
    assert_true(fabs(r.value[METRIC_MAE] - error / weight) < 1e-9);
    assert_true(fabs(r.value[METRIC_R2] - (1 - squares / weight / variance)) < 1e-9);
    assert_true(isnan(r.value[METRIC_AUC]) && isnan(r.value[METRIC_ACCURACY]));
    metrics_free(metrics);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_the_definition),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_weighted_sums),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
