#include "learn/eval/curves.h"
#include "learn/support_learn.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 6000 };

static float margin[MOST], label[MOST], weight[MOST];

/* Margins of few values, so that many rows are equal. */
static struct curves_result *curves_of(size_t n, uint64_t seed, uint64_t values, int weighted)
{
    static struct curves_result r;
    const struct objective o = objective_of(objective_at(0));
    struct curves *c;
    for (size_t i = 0; i < n; i++) {
        margin[i] = (float)(draw(&seed) % values) / (float)values * 4 - 2;
        label[i] = draw_float(&seed) * 3 < margin[i] ? 1.0f : 0.0f;
        weight[i] = weighted ? (float)(draw(&seed) % 3) : 1.0f;
    }
    label[0] = 1;
    label[1] = 0;
    assert_int_equal(curves_new(&o, &c), PARAMO_OK);
    for (size_t i = 0, k; i < n; i += k) {
        k = n - i < 700 ? n - i : 700;
        const struct scored_rows rows = {.n = k,
                                         .stride = k,
                                         .margin = margin + i,
                                         .label = label + i,
                                         .weight = weighted ? weight + i : NULL};
        assert_int_equal(curves_add(c, &rows), PARAMO_OK);
    }
    assert_int_equal(curves_finish(c, &r), PARAMO_OK);
    curves_free(c);
    return &r;
}

/* The share of pairs in the right order, by the definition. */
static double slow_auc(size_t n)
{
    double right = 0, pairs = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            if (label[i] > label[j]) {
                pairs++;
                right += margin[i] > margin[j] ? 1 : margin[i] == margin[j] ? 0.5 : 0;
            }
    return right / pairs;
}

static void the_area_is_the_auc(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed < 12; seed++) {
        const size_t n = 2 + (size_t)seed * 90;
        const struct curves_result *r = curves_of(n, seed, seed % 2 == 0 ? 7 : 1000, 0);
        double area = 0;
        for (size_t i = 1; i < r->n; i++) {
            const struct curves_threshold *a = &r->at[i - 1], *b = &r->at[i];
            area += (b->fallout - a->fallout) * (a->recall + b->recall) / 2;
        }
        assert_true(fabs(area - slow_auc(n)) < 2e-3);
    }
}

/* Each threshold's numbers are those of the rows above a margin. */
static void thresholds_never_part_equal_rows(void **state)
{
    (void)state;
    const size_t n = 500;
    const struct curves_result *r = curves_of(n, 5, 9, 0);
    assert_int_equal(r->n, 10);
    for (size_t i = 1; i < r->n; i++) {
        const struct curves_threshold *t = &r->at[i];
        double rows = 0, positives = 0;
        const float at = (float)(9 - i) / 9 * 4 - 2;
        for (size_t k = 0; k < n; k++) {
            rows += margin[k] >= at;
            positives += margin[k] >= at && label[k] > 0;
        }
        assert_true(fabs(t->share - rows / (double)n) < 1e-12);
        assert_true(fabs(t->precision - positives / rows) < 1e-12);
        assert_true(fabs(t->recall - positives / (double)r->positives) < 1e-12);
        assert_true(fabs(t->fallout - (rows - positives) / (double)(n - r->positives)) < 1e-12);
        assert_true(fabs(t->lift - positives / rows * (double)n / (double)r->positives) < 1e-12);
    }
    assert_true(r->at[0].recall == 0 && r->at[0].fallout == 0 && r->at[r->n - 1].share == 1);
}

static void curves_are_thinned(void **state)
{
    (void)state;
    const struct curves_result *r = curves_of(MOST, 6, 1 << 20, 0);
    assert_in_range(r->n, CURVES_POINTS / 2, CURVES_POINTS + 2);
    assert_true(r->at[r->n - 1].recall == 1 && r->at[r->n - 1].fallout == 1);
    for (size_t i = 1; i < r->n; i++)
        assert_true(r->at[i].share > r->at[i - 1].share);
}

static void bins_have_weighted_means(void **state)
{
    (void)state;
    const struct curves_result *r = curves_of(4000, 7, 1 << 20, 1);
    double labels = 0, weights = 0, all = 0;
    assert_int_equal(r->bins, CURVES_BINS);
    for (size_t i = 0; i < 4000; i++) {
        weights += (double)weight[i];
        labels += (double)(weight[i] * label[i]);
    }
    for (size_t b = 0; b < r->bins; b++) {
        const struct curves_bin *bin = &r->bin[b];
        assert_int_equal(bin->rows, 4000 / CURVES_BINS);
        assert_true(bin->low < bin->label && bin->label < bin->high);
        assert_true(b == 0 || bin->prediction < r->bin[b - 1].prediction);
        all += bin->label / (double)r->bins;
    }
    assert_true(fabs(all - labels / weights) < 0.01);
}

static void rows_of_one_label_have_no_curves(void **state)
{
    (void)state;
    static struct curves_result r;
    const struct objective o = objective_of(objective_at(0));
    const float two[2] = {1, 1};
    struct curves *c;
    const struct scored_rows rows = {.n = 2, .stride = 2, .margin = two, .label = two};
    assert_int_equal(curves_new(&o, &c), PARAMO_OK);
    assert_int_equal(curves_add(c, &rows), PARAMO_OK);
    assert_int_equal(curves_finish(c, &r), PARAMO_E_INVALID);
    curves_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_area_is_the_auc),
        cmocka_unit_test(thresholds_never_part_equal_rows),
        cmocka_unit_test(curves_are_thinned),
        cmocka_unit_test(bins_have_weighted_means),
        cmocka_unit_test(rows_of_one_label_have_no_curves),
    };
    return cmocka_run_group_tests_name("curves", tests, NULL, NULL);
}
