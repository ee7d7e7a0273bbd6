/* Counters and quantiles of a scoring server, and their text. */
#include "learn/serve/stats.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static struct stats stats;

static int setup(void **state)
{
    (void)state;
    memset(&stats, 0, sizeof stats);
    return 0;
}

static void a_quantile_is_at_most_a_sixteenth_too_high(void **state)
{
    (void)state;
    static const uint64_t values[] = {0,
                                      1,
                                      15,
                                      16,
                                      17,
                                      31,
                                      32,
                                      33,
                                      1000,
                                      123456789,
                                      UINT64_C(1) << 40,
                                      UINT64_MAX / 2,
                                      UINT64_MAX - 1,
                                      UINT64_MAX};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        memset(&stats, 0, sizeof stats);
        stats_duration(&stats, values[i]);
        uint64_t got = stats_quantile(&stats, 0.5);
        assert_true(got >= values[i] && got - values[i] <= values[i] / 16);
    }
}

static void quantiles_are_of_all_durations(void **state)
{
    (void)state;
    assert_int_equal(stats_quantile(&stats, 0.5), 0); /* none yet */
    for (uint64_t i = 1; i <= 1000; i++)
        stats_duration(&stats, i * 1000);
    uint64_t p50 = stats_quantile(&stats, 0.5), p99 = stats_quantile(&stats, 0.99);
    assert_in_range(p50, 500000, 501000 * 17 / 16);
    assert_in_range(p99, 990000, 991000 * 17 / 16);
    assert_true(stats_quantile(&stats, 1) >= 1000000);
}

static void old_durations_are_forgotten(void **state)
{
    (void)state;
    stats_duration(&stats, 1000000);
    stats_rotate(&stats);
    stats_duration(&stats, 10);
    assert_true(stats_quantile(&stats, 1) >= 1000000); /* in the window before */
    stats_rotate(&stats);
    assert_int_equal(stats_quantile(&stats, 1), 10);
    stats_rotate(&stats);
    assert_int_equal(stats_quantile(&stats, 1), 0);
    assert_int_equal(stats.scored, 2);
    assert_int_equal(stats.scored_ns, 1000010);
}

static char *text(void)
{
    char *out;
    size_t len;
    FILE *file = open_memstream(&out, &len);
    stats_write(&stats, &(struct stats_gauges){.model_age_s = 2.5, .model = "fm", .ready = 1}, file);
    (void)fclose(file);
    return out;
}

static void the_text_is_prometheus(void **state)
{
    (void)state;
    stats_answer(&stats, 200);
    stats_answer(&stats, 200);
    stats_answer(&stats, 413);
    stats_answer(&stats, 503);
    stats.rows = 7;
    stats_duration(&stats, 12);
    char *out = text();
    static const char *const lines[] = {
        "# TYPE paramo_serve_requests_total counter\n",
        "\nparamo_serve_requests_total{status=\"200\"} 2\n",
        "\nparamo_serve_requests_total{status=\"413\"} 1\n",
        "\nparamo_serve_errors_total 2\n",
        "\nparamo_serve_rows_total 7\n",
        "# TYPE paramo_serve_request_seconds summary\n",
        "\nparamo_serve_request_seconds{quantile=\"0.5\"} 1.2e-08\n",
        "\nparamo_serve_request_seconds{quantile=\"0.99\"} 1.2e-08\n",
        "\nparamo_serve_request_seconds_sum 1.2e-08\n",
        "\nparamo_serve_request_seconds_count 1\n",
        "\nparamo_serve_model_age_seconds{model=\"fm\"} 2.500\n",
        "\nparamo_serve_ready 1\n",
    };
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++)
        if (strstr(out, lines[i]) == NULL)
            fail_msg("not there: %s in %s", lines[i], out);
    for (const char *p = out; *p != '\0'; p = strchr(p, '\n') + 1) /* each line is a comment or a sample */
        assert_true(strncmp(p, "# HELP paramo_serve_", 20) == 0 ||
                    strncmp(p, "# TYPE paramo_serve_", 20) == 0 || strncmp(p, "paramo_serve_", 13) == 0);
    free(out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_quantile_is_at_most_a_sixteenth_too_high, setup),
        cmocka_unit_test_setup(quantiles_are_of_all_durations, setup),
        cmocka_unit_test_setup(old_durations_are_forgotten, setup),
        cmocka_unit_test_setup(the_text_is_prometheus, setup),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
