#include "unit.h"

#include "learn/train/watch.h"

#include <math.h>
#include <string.h>

static void near(double a, double b)
{
    assert_true(fabs(a - b) < 1e-12);
}

static void test_mean_loss_is_the_entropy_of_the_rate(void **state)
{
    (void)state;
    near(watch_mean_loss(10, 5), log(2));
    near(watch_mean_loss(4, 1), -(0.25 * log(0.25) + 0.75 * log(0.75)));
    near(watch_mean_loss(4, 1), watch_mean_loss(4, 3));
    near(watch_mean_loss(4, 0), 0);
    near(watch_mean_loss(4, 4), 0);
    near(watch_mean_loss(0, 0), 0);
}

/* Adds rows, half of them positive, of this mean loss; what watch_step says after each thousand, or'ed. */
static int feed(struct watch *w, struct watch_sums *s, uint64_t thousands, double loss,
                struct watch_sums *window)
{
    int said = 0;
    for (uint64_t i = 0; i < thousands; i++) {
        s->rows += 1000;
        s->positives += 500;
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
    watch_begin(&w, 0);
    assert_int_equal(feed(&w, &s, 18, 0.7, &window), 0); /* two windows of nine thousand rows */
    assert_int_equal(feed(&w, &s, 9, 0.69, &window), 0); /* a good one between */
    assert_int_equal(feed(&w, &s, 18, 0.7, &window), 0);
    assert_int_equal(feed(&w, &s, 8, 0.8, &window), 0);
    assert_int_equal(feed(&w, &s, 1, 0.8, &window), 1);
    assert_int_equal(window.rows, 9000); /* the last window's own */
    assert_int_equal(window.positives, 4500);
    assert_true(fabs(window.loss / 9000 - 0.8) < 1e-9);
    assert_int_equal(feed(&w, &s, 100, 0.8, &window), 0);
}

static void test_a_fresh_models_first_rows_do_not_count(void **state)
{
    (void)state;
    struct watch w;
    struct watch_sums s = {0}, window;
    watch_begin(&w, 1);
    assert_int_equal(feed(&w, &s, 27, 2.0, &window), 0);
    assert_int_equal(feed(&w, &s, 9, 2.0, &window), 1);
    watch_begin(&w, 0); /* the next epoch's sums begin at 0 */
    s = (struct watch_sums){0};
    assert_int_equal(feed(&w, &s, 27, 2.0, &window), 1);
}

static void test_an_epoch_as_a_whole(void **state)
{
    (void)state;
    struct watch_sums large = {WATCH_ROWS, WATCH_ROWS / 2, 0.70 * WATCH_ROWS}, small = {1000, 500, 700},
                      diverged = {1000, 500, 1200}, good = {WATCH_ROWS, WATCH_ROWS / 2, 0.69 * WATCH_ROWS},
                      one_kind = {WATCH_ROWS, 0, 5.0 * WATCH_ROWS}, none = {0};
    assert_true(watch_epoch(&large, 1) && watch_epoch(&large, 0));
    assert_false(watch_epoch(&small, 1)); /* it has hardly begun */
    assert_true(watch_epoch(&small, 0) && watch_epoch(&diverged, 1));
    assert_false(watch_epoch(&good, 0));
    assert_false(watch_epoch(&one_kind, 0)); /* nothing to compare with */
    assert_false(watch_epoch(&none, 0));
}

static void test_text_names_the_figures_and_a_remedy(void **state)
{
    (void)state;
    char text[256];
    watch_text(text, sizeof text, &(struct watch_sums){1000, 500, 2000}, "over the epoch",
               "--factor-alpha, --alpha");
    assert_non_null(strstr(text, "training diverges: log-loss 2.0000 over the epoch"));
    assert_non_null(strstr(text, "0.6931"));
    assert_non_null(strstr(text, "--factor-alpha"));
    watch_text(text, sizeof text, &(struct watch_sums){1000, 500, 700}, "over the epoch", "--alpha");
    assert_non_null(strstr(text, "nothing is learned: log-loss 0.7000"));
    assert_null(strstr(text, "--factor-alpha"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mean_loss_is_the_entropy_of_the_rate),
        cmocka_unit_test(test_windows_on_end_are_said_once),
        cmocka_unit_test(test_a_fresh_models_first_rows_do_not_count),
        cmocka_unit_test(test_an_epoch_as_a_whole),
        cmocka_unit_test(test_text_names_the_figures_and_a_remedy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
