/* How predictions fit numbers and classes, against the definitions. */
#include "learn/eval/curves.h"
#include "learn/eval/fits.h"
#include "learn/support_learn.h"
#include "unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 4000, CLASSES = 12 };
static float margin[CLASSES * ROWS], label[ROWS];

static struct fits *collect(const struct objective *o, size_t outputs)
{
    struct fits *f;
    assert_int_equal(fits_new(o, &f), PARAMO_OK);
    for (size_t i = 0, k; i < ROWS; i += k) {
        k = ROWS - i < 700 ? ROWS - i : 700;
        float part[CLASSES * 700]; /* of 700 rows each */
        for (size_t c = 0; c < outputs; c++)
            memcpy(part + c * k, margin + c * ROWS + i, k * sizeof *part);
        const struct scored_rows rows = {.n = k, .stride = k, .margin = part, .label = label + i};
        assert_int_equal(fits_add(f, &rows), PARAMO_OK);
    }
    return f;
}

static void test_numbers(void **state)
{
    (void)state;
    struct objective o = objective_of(objective_find("squared"));
    struct fits_result r;
    uint64_t seed = 1;
    double low = 0, high = 0;
    o.label_scale = 2;
    for (size_t i = 0; i < ROWS; i++) {
        margin[i] = (float)(i * 7919 % ROWS) / ROWS;
        label[i] = 2 * margin[i] + draw_float(&seed); /* residuals are uniform in -1 .. 1 */
    }
    struct fits *f = collect(&o, 1);
    assert_int_equal(fits_finish(f, &r), PARAMO_OK);
    assert_int_equal(r.rows, ROWS);
    assert_int_equal(r.bins, FITS_BINS);
    assert_int_equal(r.classes, 0);
    for (size_t b = 0; b < FITS_BINS; b++) {
        const double middle = 2 * ((double)b + 0.5) / FITS_BINS;
        double sum = 0;
        size_t n = 0, below = 0, above = 0;
        for (size_t i = 0; i < ROWS; i++) {
            if ((size_t)((double)margin[i] * FITS_BINS + 1e-6) != b)
                continue;
            sum += (double)label[i];
            n++;
            below += (double)label[i] < r.bin[b].low;
            above += (double)label[i] > r.bin[b].high;
        }
        assert_int_equal(r.bin[b].rows, ROWS / FITS_BINS);
        assert_int_equal(n, ROWS / FITS_BINS);
        assert_true(fabs(r.bin[b].prediction - middle) < 0.001);
        assert_true(fabs(r.bin[b].label - sum / (double)n) < 1e-6);
        assert_in_range(below, n / 10 - 1, n / 10 + 1);
        assert_in_range(above, n / 10 - 1, n / 10 + 1);
        assert_true(fabs(r.bin[b].under + 0.8) < 0.15 && fabs(r.bin[b].over - 0.8) < 0.15);
    }
    double all = 0;
    for (size_t i = 0; i < FITS_STEPS; i++) {
        assert_true(fabs(r.step[i] - 1.0 / FITS_STEPS) < 0.015);
        all += r.step[i];
    }
    assert_true(fabs(all - 1) < 1e-9);
    low = r.step_from;
    high = low + FITS_STEPS * r.step_width;
    assert_true(fabs(low + 0.99) < 0.01 && fabs(high - 0.99) < 0.01);
    for (size_t i = 0; i <= 100; i++)
        assert_true(fabs(r.error[i] - (double)i / 100) < 0.03);
    fits_free(f);
}

static void test_one_row(void **state)
{
    (void)state;
    struct objective o = objective_of(objective_find("poisson"));
    struct fits *f;
    struct fits_result r;
    const float zero = 0, one = 1;
    assert_int_equal(fits_new(&o, &f), PARAMO_OK);
    assert_int_equal(fits_finish(f, &r), PARAMO_E_INVALID);
    assert_int_equal(fits_add(f, &(struct scored_rows){.n = 1, .stride = 1, .margin = &zero, .label = &one}),
                     PARAMO_OK);
    assert_int_equal(fits_finish(f, &r), PARAMO_OK);
    assert_int_equal(r.bins, 1);
    assert_true(r.bin[0].prediction == 1 && r.bin[0].label == 1 && r.bin[0].low == 1 && r.error[50] == 0);
    fits_free(f);
}

static void test_classes(void **state)
{
    (void)state;
    struct objective o = objective_of(objective_find("softmax"));
    static uint64_t confusion[CLASSES][CLASSES];
    struct fits_result r;
    double among[FITS_RANKS] = {0}, right = 0, certain = 0;
    uint64_t seed = 2;
    o.classes = CLASSES;
    memset(confusion, 0, sizeof confusion);
    for (size_t i = 0; i < ROWS; i++) {
        label[i] = (float)(draw(&seed) % CLASSES);
        size_t best = 0, above = 0;
        double sum = 0;
        for (size_t c = 0; c < CLASSES; c++)
            margin[c * ROWS + i] = (float)(draw(&seed) % 16) / 4 + (c == (size_t)label[i]); /* often equal */
        const float own = margin[(size_t)label[i] * ROWS + i];
        for (size_t c = 0; c < CLASSES; c++) {
            const float m = margin[c * ROWS + i];
            best = m > margin[best * ROWS + i] ? c : best;
            above += m > own || (m == own && c < (size_t)label[i]);
            sum += exp((double)m);
        }
        confusion[(size_t)label[i]][best]++;
        right += best == (size_t)label[i];
        certain += exp((double)margin[best * ROWS + i]) / sum;
        for (size_t k = above; k < FITS_RANKS; k++)
            among[k] += 1.0 / ROWS;
    }
    struct fits *f = collect(&o, CLASSES);
    assert_int_equal(fits_finish(f, &r), PARAMO_OK);
    assert_int_equal(r.classes, CLASSES);
    assert_memory_equal(r.confusion, confusion, sizeof confusion);
    double label_mean = 0, prediction_mean = 0;
    for (size_t b = 0; b < r.bins; b++) {
        double low, high;
        label_mean += r.bin[b].label / FITS_BINS;
        prediction_mean += r.bin[b].prediction / FITS_BINS;
        curves_interval(r.bin[b].label, (double)r.bin[b].rows, &low, &high);
        assert_true(low == r.bin[b].low && high == r.bin[b].high);
        assert_true(b == 0 || r.bin[b].prediction >= r.bin[b - 1].prediction);
    }
    assert_true(fabs(label_mean - right / ROWS) < 1e-6);
    assert_true(fabs(prediction_mean - certain / ROWS) < 1e-6);
    for (size_t k = 0; k < FITS_RANKS; k++)
        assert_true(fabs(r.among[k] - among[k]) < 1e-9);
    assert_true(fabs(r.among[0] - right / ROWS) < 1e-9);
    fits_free(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_numbers), cmocka_unit_test(test_one_row),
                                       cmocka_unit_test(test_classes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
