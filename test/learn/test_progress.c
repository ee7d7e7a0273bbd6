#include "learn/io/progress.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void test_numbers(void **state)
{
    (void)state;
    char t[32];
    static const struct {
        double n;
        const char *count, *bytes;
    } want[] = {
        {0, "0", "0 B"},
        {27, "27", "27 B"},
        {999, "999", "999 B"},
        {1000, "1.00 k", "1.00 kB"},
        {9994, "9.99 k", "9.99 kB"},
        {9996, "10.0 k", "10.0 kB"},
        {99960, "100 k", "100 kB"},
        {318200, "318 k", "318 kB"},
        {999600, "1.00 M", "1.00 MB"},
        {1.24e6, "1.24 M", "1.24 MB"},
        {1.5e9, "1.50 G", "1.50 GB"},
        {2e15, "2000 T", "2000 TB"},
    };
    for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
        assert_string_equal(progress_count(t, sizeof t, want[i].n), want[i].count);
        assert_string_equal(progress_bytes(t, sizeof t, want[i].n), want[i].bytes);
    }
    assert_string_equal(progress_time(t, sizeof t, 0.4), "0:00");
    assert_string_equal(progress_time(t, sizeof t, 59.6), "1:00");
    assert_string_equal(progress_time(t, sizeof t, 3723), "1:02:03");
    assert_string_equal(progress_time(t, sizeof t, 1e30), "100000:00:00");
    assert_string_equal(progress_time(t, sizeof t, -1), "0:00");
}

static const struct progress_state half = {.epoch = 1,
                                           .epochs = 3,
                                           .part = 0.5,
                                           .rows = 1000000,
                                           .seconds = 2,
                                           .loss_name = "log-loss",
                                           .loss = 0.25,
                                           .pushed = 1e6,
                                           .pulled = 2e6};

static void test_line(void **state)
{
    (void)state;
    char t[256];
    progress_format(t, sizeof t, 200, 0, &half);
    /* 2 s for half an epoch: 2 more, and 4 for each of the two others */
    assert_string_equal(
        t, "epoch 1/3  50%  1.00 M rows  500 k rows/s  log-loss 0.25000  pushed 1.00 MB  pulled 2.00 MB"
           "  ETA 0:10");
    struct progress_state start = {
        .epoch = 1, .epochs = 1, .part = -1, .loss_name = "log-loss", .loss = (double)NAN};
    progress_format(t, sizeof t, 200, 1, &start);
    assert_string_equal(t, "epoch 1/1  0 rows  0 rows/s  pushed 0 B  pulled 0 B");
}

static void test_bar_fits_every_width(void **state)
{
    (void)state;
    char t[256];
    for (size_t width = 1; width < 250; width++) {
        progress_format(t, sizeof t, width, 1, &half);
        assert_true(strlen(t) <= width);
    }
    progress_format(t, sizeof t, 200, 1, &half);
    assert_non_null(strstr(t, "epoch 1/3 [====================>                   ]  50%"));
    struct progress_state end = half;
    end.part = 1.5; /* a file that grew */
    progress_format(t, sizeof t, 200, 1, &end);
    assert_non_null(strstr(t, "[========================================] 100%"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_line),
        cmocka_unit_test(test_bar_fits_every_width),
    };
    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
