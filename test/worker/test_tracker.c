#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "worker/tracker.h"

static void test_one(void **state)
{
    (void)state;
    struct tracker t;
    uint64_t ts;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
    assert_int_equal(ts, 1);
    assert_false(tracker_done(&t, 1));
    tracker_complete(&t, 1);
    assert_true(tracker_done(&t, 1));
    assert_int_equal(tracker_result(&t, 1), PARAMO_OK);
    assert_int_equal(tracker_result(&t, 0), PARAMO_E_INVALID);
    assert_true(tracker_done(&t, 0)); /* a wait for what was never issued ends */
    assert_true(tracker_done(&t, 2));
    assert_int_equal(tracker_result(&t, 2), PARAMO_E_INVALID);
    tracker_fini(&t);
}

/* A slow request does not stand in the way of a million others, nor they in its. */
static void test_slow_one(void **state)
{
    (void)state;
    struct tracker t;
    uint64_t slow, ts = 0, before = 0;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    assert_int_equal(tracker_issue(&t, &slow), PARAMO_OK);
    for (unsigned i = 0; i < 1000000; i++) {
        assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
        assert_true(ts > before);
        before = ts;
        assert_false(tracker_done(&t, ts));
        tracker_complete(&t, ts);
        assert_true(tracker_done(&t, ts));
    }
    assert_false(tracker_done(&t, slow));
    assert_int_equal(atomic_load(&t.in_flight), 1);
    tracker_complete(&t, slow);
    assert_true(tracker_done(&t, slow));
    tracker_fini(&t);
}

static void test_limit(void **state)
{
    (void)state;
    struct tracker t;
    uint64_t ts, first = 0;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    for (unsigned i = 0; i < TRACKER_LIMIT; i++) {
        assert_true(tracker_has_room(&t));
        assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
        first = first ? first : ts;
    }
    assert_false(tracker_has_room(&t));
    assert_int_equal(tracker_issue(&t, &ts), PARAMO_E_AGAIN);
    tracker_complete(&t, first);
    assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
    tracker_fini(&t);
}

static void test_failures(void **state)
{
    (void)state;
    struct tracker t;
    uint64_t ts;
    char text[32];
    enum { N = 3000 };
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    for (unsigned i = 1; i <= N; i++) {
        assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
        (void)snprintf(text, sizeof text, "failure %u", i);
        if (i % 2)
            tracker_failed(&t, ts, PARAMO_E_TIMEOUT, text, false);
        tracker_complete(&t, ts);
    }
    /* the last 1,024 that failed are remembered, each with its own words */
    for (uint64_t i = 1; i <= N; i++) {
        bool remembered = i % 2 && i > N - 2 * TRACKER_FAILURES;
        assert_int_equal(tracker_result(&t, i), remembered ? PARAMO_E_TIMEOUT : PARAMO_OK);
        (void)snprintf(text, sizeof text, "failure %u", (unsigned)i);
        if (remembered)
            assert_string_equal(err_text(), text);
    }
    tracker_fini(&t);
}

static void test_all(void **state)
{
    (void)state;
    struct tracker t;
    struct tracker_all all;
    uint64_t ts[5];
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(tracker_issue(&t, &ts[i]), PARAMO_OK);
    tracker_all_begin(&t, &all);
    assert_int_equal(tracker_issue(&t, &ts[4]), PARAMO_OK); /* later: not its concern */
    tracker_failed(&t, ts[3], PARAMO_E_NODE_LOST, "second", false);
    tracker_complete(&t, ts[3]);
    tracker_failed(&t, ts[1], PARAMO_E_TIMEOUT, "first", false);
    tracker_complete(&t, ts[1]);
    tracker_failed(&t, ts[0], PARAMO_E_INVALID, "told", true);
    tracker_complete(&t, ts[0]);
    assert_false(tracker_all_done(&all));
    tracker_complete(&t, ts[2]);
    assert_true(tracker_all_done(&all));
    assert_false(tracker_done(&t, ts[4]));
    assert_int_equal(tracker_all_result(&all), PARAMO_E_TIMEOUT);
    assert_string_equal(err_text(), "first");
    assert_int_equal(tracker_all_result(&all), PARAMO_OK);
    assert_int_equal(tracker_result(&t, ts[3]), PARAMO_E_NODE_LOST); /* by name it is still there */
    tracker_fini(&t);
}

/* The last that was issued before is waited for, too, though a later one is in flight. */
static void test_all_with_the_last(void **state)
{
    (void)state;
    struct tracker t;
    struct tracker_all all;
    uint64_t last, later;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    assert_int_equal(tracker_issue(&t, &last), PARAMO_OK);
    tracker_all_begin(&t, &all);
    assert_int_equal(tracker_issue(&t, &later), PARAMO_OK);
    assert_false(tracker_all_done(&all));
    tracker_complete(&t, last);
    assert_true(tracker_all_done(&all));
    tracker_fini(&t);
}

/* Answers are counted until the slot has another request. */
static void test_answers(void **state)
{
    (void)state;
    struct tracker t;
    uint64_t first, ts = 0;
    uint32_t count = 9;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    assert_int_equal(tracker_issue(&t, &first), PARAMO_OK);
    assert_int_equal(tracker_answers(&t, first, &count), PARAMO_OK);
    assert_int_equal(count, 0);
    tracker_answered(&t, first);
    tracker_answered(&t, first);
    tracker_complete(&t, first);
    assert_int_equal(tracker_answers(&t, first, &count), PARAMO_OK);
    assert_int_equal(count, 2);
    assert_int_equal(tracker_answers(&t, 0, &count), PARAMO_E_INVALID);
    assert_int_equal(tracker_answers(&t, first + 1, &count), PARAMO_E_INVALID);
    while (ts < first + TRACKER_SLOTS) {
        assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
        tracker_complete(&t, ts);
    }
    assert_int_equal(tracker_answers(&t, first, &count), PARAMO_E_NOT_FOUND);
    assert_int_equal(tracker_answers(&t, ts, &count), PARAMO_OK);
    assert_int_equal(count, 0);
    tracker_fini(&t);
}

/* Looking at a failure does not count as being told of it. */
static void test_peek(void **state)
{
    (void)state;
    struct tracker t;
    struct tracker_all all;
    uint64_t ts;
    char text[ERR_TEXT_MAX] = "";
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
    assert_int_equal(tracker_peek(&t, ts, text), PARAMO_OK);
    tracker_all_begin(&t, &all);
    tracker_failed(&t, ts, PARAMO_E_TIMEOUT, "too late", false);
    tracker_complete(&t, ts);
    assert_int_equal(tracker_peek(&t, ts, text), PARAMO_E_TIMEOUT);
    assert_string_equal(text, "too late");
    assert_int_equal(tracker_all_result(&all), PARAMO_E_TIMEOUT);
    tracker_fini(&t);
}

/* What has not failed is told so without the lock, also when others have. */
static void test_success_after_failures(void **state)
{
    (void)state;
    struct tracker t;
    struct tracker_all all;
    uint64_t ts;
    assert_int_equal(tracker_init(&t), PARAMO_OK);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(tracker_issue(&t, &ts), PARAMO_OK);
        if (i < 2)
            tracker_failed(&t, ts, PARAMO_E_TIMEOUT, "too late", false);
        tracker_complete(&t, ts);
    }
    assert_int_equal(tracker_result(&t, 1), PARAMO_E_TIMEOUT);
    tracker_all_begin(&t, &all);
    assert_int_equal(tracker_all_result(&all), PARAMO_E_TIMEOUT);
    (void)atomic_flag_test_and_set(&t.failures_lock); /* forever: a thread that waits for it hangs */
    (void)alarm(30);
    assert_int_equal(tracker_result(&t, 3), PARAMO_OK);
    assert_int_equal(tracker_result(&t, 4), PARAMO_OK);
    assert_int_equal(tracker_all_result(&all), PARAMO_OK); /* each was told */
    (void)alarm(0);
    tracker_fini(&t);
}

/* However the timestamps that fail lie, a search looks at few. */
static void test_searches_are_short(void **state)
{
    (void)state;
    static const uint64_t distances[] = {1, 2, 3, 64, 1000, 1024, 4096, 8192};
    for (unsigned i = 0; i < sizeof distances / sizeof *distances; i++) {
        struct tracker t;
        unsigned records = 0, longest = 0;
        assert_int_equal(tracker_init(&t), PARAMO_OK);
        for (uint64_t k = 1; k <= 5 * TRACKER_FAILURES; k++)
            tracker_failed(&t, k * distances[i], PARAMO_E_TIMEOUT, "too late", k % 2);
        for (unsigned b = 0; b < TRACKER_FAILURES; b++) {
            unsigned len = 0;
            for (unsigned at = atomic_load(&t.bucket[b]); at; at = t.failures[at - 1].next)
                len++;
            records += len;
            longest = len > longest ? len : longest;
        }
        assert_int_equal(records, TRACKER_FAILURES);
        assert_in_range(longest, 1, 16);
        assert_int_equal(atomic_load(&t.failures_untold), TRACKER_FAILURES / 2);
        tracker_fini(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one),
        cmocka_unit_test(test_slow_one),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_all),
        cmocka_unit_test(test_all_with_the_last),
        cmocka_unit_test(test_answers),
        cmocka_unit_test(test_peek),
        cmocka_unit_test(test_success_after_failures),
        cmocka_unit_test(test_searches_are_short),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
