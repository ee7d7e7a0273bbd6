/*
 * Measures what it costs a server to record each push that it has applied, beside a single counter. Tests:
 * test/e2e/bench.sh.
 */
#include "cmd/bench/bench_load.h"
#include "cmd/bench/bench_paths.h"
#include "cmd/bench/bench_raw.h"

#include "server/shard/applied_window.h"

/* Records the numbers of one sender in order, with its floor as many numbers behind as a worker has in flight. */
static double records_ns(size_t count)
{
    struct applied_window applied_window;
    size_t news = 0;
    applied_window_init(&applied_window);
    uint64_t start = raw_now_ns();
    for (uint64_t number = 1; number <= count; number++) {
        applied_window_raise_floor(&applied_window, number > LOAD_WINDOW_MAX ? number - LOAD_WINDOW_MAX : 1);
        news += applied_window_state(&applied_window, number) == DEDUP_NEW;
        applied_window_record(&applied_window, number);
    }
    double ns = 1e9 * raw_seconds_since(start) / (double)count;
    applied_window_fini(&applied_window);
    return news == count ? ns : 1e9; /* a push was taken for a repeat: the figure would be wrong */
}

static double counter_ns(size_t count)
{
    volatile uint64_t highest = 0;
    uint64_t start = raw_now_ns();
    for (uint64_t number = 1; number <= count; number++)
        highest = number;
    double ns = 1e9 * raw_seconds_since(start) / (double)count;
    return highest == count ? ns : 1e9;
}

void bench_applied_window(const struct bench_settings *s, struct bench_report *r)
{
    static const char counter[] = "the highest number alone, which tells no lost one from a late one";
    static const char settings[] = "in process, one sender, 64 numbers in flight";
    const size_t count = s->quick ? 10000 : 1000000;
    struct bench_line *ns = report_line(r, "replicate", "ns", BENCH_LOWER, counter, settings,
                                        "record of a push: look, keep, forget");
    struct bench_line *bytes = report_line(r, "replicate", "bytes", BENCH_LOWER, counter, settings,
                                           "record of one worker in one range");
    for (uint64_t pair = 0; pair <= s->pairs; pair++) {
        double at[2] = {records_ns(count), counter_ns(count)};
        if (pair > 0) {
            line_pair(ns, at[0], at[1]);
            line_pair(bytes, (double)sizeof(struct applied_window), sizeof(uint64_t));
        }
    }
}
