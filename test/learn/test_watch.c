#include "unit.h"

#include "learn/train/watch.h"

#include <math.h>
#include <string.h>

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-12);
}

static const struct objective logistic = {.ops = &objective_logistic, .label_scale = 1};

/* The sums over rows of which `positives` have label 1. */
static struct watch_sums sums_of(uint64_t rows, uint64_t positives, double loss)
{
    return (struct watch_sums){rows, {(double)rows, (double)positives, (double)positives}, loss};
}

static double mean_loss(uint64_t rows, uint64_t positives)
{
    const struct watch_sums s = sums_of(rows, positives, 0);
    return objective_spread(&logistic, &s.labels);
}

/* Adds rows, half of them positive, of this mean loss; what watch_step says after each thousand, or'ed. */
static int feed(struct watch *w, struct watch_sums *s, uint64_t thousands, double loss,
                struct watch_sums *window)
{
    int said = 0;
    for (uint64_t i = 0; i < thousands; i++) {
        s->rows += 1000;
        s->labels.weight += 1000;
        s->labels.label += 500;
        s->loss += 1000 * loss;
        said += watch_step(w, s, window);
    }
    return said;
}

static void test_windows_on_end_are_said_once(void **state)
{
    (void)state;
    struct watch w;
    struct watch_sums s = {0}, window = {0};
    watch_begin(&w, &logistic, 0);
    assert_int_equal(feed(&w, &s, 90, 1.0, &window), 0); /* above the mean rate's, and not far */
    assert_int_equal(feed(&w, &s, 18, 1.1, &window), 0); /* two windows of nine thousand rows */
    assert_int_equal(feed(&w, &s, 9, 0.69, &window), 0); /* a good one between */
    assert_int_equal(feed(&w, &s, 18, 1.1, &window), 0);
    assert_int_equal(feed(&w, &s, 8, 1.2, &window), 0);
    assert_int_equal(feed(&w, &s, 1, 1.2, &window), 1);
    assert_int_equal(window.rows, 9000); /* the last window's own */
    near(window.labels.label, 4500);
    near(window.labels.weight, 9000);
    assert_true(fabs(window.loss / 9000 - 1.2) < 1e-9);
    assert_int_equal(feed(&w, &s, 100, 1.2, &window), 0);
}

static void test_a_fresh_models_first_rows_do_not_count(void **state)
{
    (void)state;
    struct watch w;
    struct watch_sums s = {0}, window;
    watch_begin(&w, &logistic, 1);
    assert_int_equal(feed(&w, &s, 27, 2.0, &window), 0);
    assert_int_equal(feed(&w, &s, 9, 2.0, &window), 1);
    watch_begin(&w, &logistic, 0); /* the next epoch's sums begin at 0 */
    s = (struct watch_sums){0};
    assert_int_equal(feed(&w, &s, 27, 2.0, &window), 1);
}

static void test_rare_clicks_are_no_divergence(void **state)
{
    (void)state;
    /* 0.2 % positives: the mean rate's log-loss is 0.0144; a model that has just begun is far above it */
    struct watch_sums rare = sums_of(WATCH_ROWS, 16, 0.6 * WATCH_ROWS),
                      worse = sums_of(WATCH_ROWS, 16, 0.8 * WATCH_ROWS);
    assert_false(watch_epoch(&logistic, &rare));
    assert_true(watch_epoch(&logistic, &worse));
    struct watch_sums large = sums_of(WATCH_ROWS, WATCH_ROWS / 2, 1.0 * WATCH_ROWS),
                      diverged = sums_of(1000, 500, 1200),
                      one_kind = sums_of(WATCH_ROWS, 0, 5.0 * WATCH_ROWS), none = {0};
    assert_false(watch_epoch(&logistic, &large));
    assert_true(watch_epoch(&logistic, &diverged));
    assert_false(watch_epoch(&logistic, &one_kind)); /* nothing to compare with */
    assert_false(watch_epoch(&logistic, &none));
    char text[256];
    watch_text(text, sizeof text, &logistic, &diverged, "over the epoch");
    assert_string_equal(
        text, "training diverges: log-loss 1.2000 over the epoch, guessing the mean rate gives 0.6931");
}

static void test_sorted_labels_hardly_turn(void **state)
{
    (void)state;
    double usual;
    assert_true(watch_sorted(&logistic, 1000, 500, NULL, 1, 0, &usual));
    near(usual, 500);
    assert_true(watch_sorted(&logistic, 1000, 500, NULL, 49, 0, &usual));
    assert_false(watch_sorted(&logistic, 1000, 500, NULL, 50, 0, &usual));
    assert_false(
        watch_sorted(&logistic, 100000, 200, NULL, 390, 0, &usual)); /* rare clicks, each by itself */
    assert_true(watch_sorted(&logistic, 100000, 200, NULL, 1, 0, &usual));
    assert_false(watch_sorted(&logistic, 5, 2, NULL, 1, 0, &usual)); /* so few may be sorted by chance */
    assert_false(watch_sorted(&logistic, 1000, 1000, NULL, 0, 0, &usual));
    assert_false(watch_sorted(&logistic, 0, 0, NULL, 0, 0, &usual));
}

/* Labels of random rows, in their order or sorted: numbers, and classes. */
static void test_other_labels_have_an_order_too(void **state)
{
    (void)state;
    enum { N = 3000 };
    static float label[N];
    struct objective squared = objective_of(&objective_squared), softmax = objective_of(&objective_softmax);
    softmax.classes = 4;
    for (int sorted = 0; sorted < 2; sorted++) {
        struct watch_order numbers = {0}, classes = {0};
        double usual, count[4] = {0};
        uint64_t seed = 3;
        for (size_t i = 0; i < N; i++) {
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            label[i] = sorted ? (float)(i / 8) : (float)(seed >> 40);
        }
        watch_order_add(&numbers, &squared, label, N / 3);
        watch_order_add(&numbers, &squared, label + N / 3, N - N / 3);
        assert_int_equal(watch_sorted(&squared, N, N, NULL, numbers.turns, numbers.changes, &usual), sorted);
        assert_true(numbers.changes > 300);
        for (size_t i = 0; i < N; i++) {
            label[i] = sorted ? (float)(4 * i / N) : (float)((uint32_t)label[i] % 4);
            count[(size_t)label[i]]++;
        }
        watch_order_add(&classes, &softmax, label, N);
        assert_int_equal(watch_sorted(&softmax, N, N, count, classes.turns, classes.changes, &usual), sorted);
        assert_true(fabs(usual - 0.75 * N) < 20);
    }
    /* counts that are mostly 0, each other one by itself: in any order it goes up and down */
    struct watch_order rare = {0};
    double usual;
    for (size_t i = 0; i < N; i++)
        label[i] = i % 20 == 7 ? 1 : 0;
    watch_order_add(&rare, &squared, label, N);
    assert_false(watch_sorted(&squared, N, N, NULL, rare.turns, rare.changes, &usual));
}

static void test_other_losses_are_watched_too(void **state)
{
    (void)state;
    char text[256];
    struct objective o = objective_of(&objective_squared);
    struct watch_sums good = {1000, {1000, 3000, 13000}, 2.5 * 1000}, bad = good; /* variance 4 */
    bad.loss = 3.5 * 1000;
    assert_false(watch_epoch(&o, &good));
    assert_true(watch_epoch(&o, &bad));
    watch_text(text, sizeof text, &o, &bad, "here");
    assert_string_equal(text,
                        "training diverges: RMSE 2.6458 here, guessing the same for each row gives 2.0000");
    assert_false(
        watch_by_chance(&o, 2.0, 2.0, 10000)); /* a hundredth less variance is 50 nats in 10,000 rows */
    assert_true(watch_by_chance(&o, 2.0, 2.0, 1000));
    o = objective_of(&objective_softmax);
    o.classes = 3;
    assert_false(watch_epoch(&o, &bad)); /* its guess is not known while it trains */
}

static void test_the_verdict_has_figures_and_what_was_seen(void **state)
{
    (void)state;
    char text[256];
    struct watch_verdict v = {
        .first = 0.8, .best = 0.5, .base = 0.6, .epochs = 3, .best_epoch = 3, .rows = 10000};
    watch_judge(text, sizeof text, &logistic, &v, "here");
    assert_string_equal(text, "");
    v.best = 0.6; /* equal is not better */
    watch_judge(text, sizeof text, &logistic, &v, "here");
    assert_string_equal(
        text, "nothing is learned: log-loss 0.6000 here, guessing the mean rate gives 0.6000; it still "
              "fell in epoch 3, from 0.8000 at first: more --epochs help");
    v.rows = 1000;
    watch_judge(text, sizeof text, &logistic, &v, "here");
    assert_string_equal(text,
                        "perhaps nothing is learned: log-loss 0.6000 here, guessing the mean rate gives "
                        "0.6000; so few rows cannot tell; it still fell in epoch 3, from 0.8000 at first: "
                        "more --epochs help");
    v = (struct watch_verdict){.first = 2, .best = 2, .base = 0.6, .epochs = 3, .best_epoch = 1};
    watch_judge(text, sizeof text, &logistic, &v, "here");
    assert_string_equal(
        text, "training diverges: log-loss 2.0000 here, guessing the mean rate gives 0.6000; it rose with "
              "further epochs");
    v = (struct watch_verdict){
        .first = 0.65, .best = 0.65, .base = 0.6, .epochs = 1, .best_epoch = 1, .rows = 1000};
    watch_judge(text, sizeof text, &logistic, &v, "here"); /* one epoch shows nothing */
    assert_string_equal(text,
                        "nothing is learned: log-loss 0.6500 here, guessing the mean rate gives 0.6000");
}

/* Models that are a hundredth better than guessing, each drawn on `rows` rows: how many are said to be no better?
 * Half of the rows have probability p + e, half p - e. */
static unsigned said_of_good_models(double p, size_t rows, unsigned models)
{
    uint64_t seed = 1;
    const double e = sqrt(2 * 0.01 * mean_loss(1000000, (uint64_t)(p * 1e6)) * p * (1 - p));
    unsigned said = 0;
    for (unsigned m = 0; m < models; m++) {
        double best = 0, base = 0;
        for (size_t r = 0; r < rows; r++) {
            const double q = r % 2 == 0 ? p + e : p - e;
            seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
            const int label = (double)(seed >> 11) * 0x1p-53 < q;
            best -= label ? log(q) : log1p(-q);
            base -= label ? log(p) : log1p(-p);
        }
        best /= (double)rows;
        base /= (double)rows;
        said += best >= base && !watch_by_chance(&logistic, best, base, rows);
    }
    return said;
}

static void test_a_model_that_learned_is_hardly_ever_called_nothing(void **state)
{
    (void)state;
    static const struct {
        double p;
        size_t rows;
    } sets[] = {{0.5, 300}, {0.3, 1000}, {0.3, 3000}, {0.05, 3000}, {0.01, 3000}};
    for (size_t i = 0; i < sizeof sets / sizeof *sets; i++) {
        const unsigned said = said_of_good_models(sets[i].p, sets[i].rows, 1000);
        if (said > 15) /* one in a hundred, and drawn with a fixed seed */
            fail_msg("p %g, %zu rows: %u of 1000", sets[i].p, sets[i].rows, said);
    }
    assert_true(watch_by_chance(&logistic, 0.6, 0.6, 300) && watch_by_chance(&logistic, 0.601, 0.6, 300));
    assert_false(watch_by_chance(&logistic, 0.62, 0.6, 300)); /* far worse than guessing */
    assert_false(watch_by_chance(&logistic, 0.6, 0.6, 3000)); /* 3,000 rows would have shown it */
    assert_false(watch_by_chance(&logistic, 2, 0.6, 3));      /* diverged */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_windows_on_end_are_said_once),
        cmocka_unit_test(test_a_fresh_models_first_rows_do_not_count),
        cmocka_unit_test(test_rare_clicks_are_no_divergence),
        cmocka_unit_test(test_sorted_labels_hardly_turn),
        cmocka_unit_test(test_other_labels_have_an_order_too),
        cmocka_unit_test(test_other_losses_are_watched_too),
        cmocka_unit_test(test_a_model_that_learned_is_hardly_ever_called_nothing),
        cmocka_unit_test(test_the_verdict_has_figures_and_what_was_seen),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
