/* Clocks by the public API, on an embedded node with two workers: what is refused, which worker waits, and which is
 * named. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "support_cluster.h"

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static paramo_clock_info look(const paramo_worker *w)
{
    paramo_clock_info info = {.size = sizeof info};
    paramo_clock_get(w, &info);
    return info;
}

static paramo_table *sums(paramo_worker *w)
{
    paramo_table_options o;
    paramo_table *t = NULL;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_SPARSE;
    ok(paramo_table_open(w, "sums", &o, &t));
    return t;
}

static void push_one(paramo_worker *w, paramo_table *t)
{
    static const uint64_t key = 7;
    static float one = 1;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.n = kv.vals_len = 1;
    kv.vals = &one;
    uint64_t ts;
    ok(paramo_push(w, t, &kv, NULL, &ts)); /* no thread waits for it: the clock does */
}

static float pulled(paramo_worker *w, paramo_table *t)
{
    static const uint64_t key = 7;
    float value = 0;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.n = kv.vals_len = 1;
    kv.vals = &value;
    uint64_t ts;
    ok(paramo_pull(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    return value;
}

static void two_workers(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    paramo_worker *a = NULL, *b = NULL;
    uint64_t clock = 9;
    ok(paramo_worker_open(node, 0, &a));
    ok(paramo_worker_open(node, 1, &b));
    paramo_table *ta = sums(a), *tb = sums(b);
    assert_int_equal(paramo_clock(a, NULL), PARAMO_E_INVALID);
    assert_int_equal(paramo_clock_wait(a, 0, 0), PARAMO_E_INVALID);
    assert_int_equal(paramo_clock_leave(a), PARAMO_E_INVALID);
    ok(paramo_clock_join(a, &clock));
    assert_int_equal(clock, 0);
    assert_int_equal(paramo_clock_join(a, NULL), PARAMO_E_INVALID);
    ok(paramo_clock_join(b, NULL));
    ok(paramo_clock_wait(a, 0, 0)); /* known: no message */
    assert_int_equal(look(a).waits, 0);
    assert_int_equal(paramo_clock_wait(a, 1, 0), PARAMO_E_INVALID); /* it would wait for itself */
    /* Each sees the pushes of the other, iteration by iteration. */
    for (uint64_t i = 1; i <= 50; i++) {
        push_one(a, ta);
        ok(paramo_clock(a, &clock));
        assert_int_equal(clock, i);
        push_one(b, tb);
        push_one(b, tb);
        ok(paramo_clock(b, NULL));
        ok(paramo_clock_wait(a, i, 0));
        assert_true(pulled(a, ta) == 3.0f * (float)i);
        ok(paramo_clock_wait(b, i, 0));
        assert_true(pulled(b, tb) == 3.0f * (float)i);
    }
    /* The worker that is behind is named. */
    ok(paramo_clock(a, NULL));
    ok(paramo_clock(a, NULL));
    assert_int_equal(paramo_clock_wait(a, 52, 20), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(paramo_last_error(), "1 of 2 workers have not reached clock 52"));
    assert_non_null(strstr(paramo_last_error(), "customer 1, is at clock 50"));
    assert_true(look(a).waits > 0 && look(a).waited_ns > 0);
    /* It leaves, and begins again with the minimum. */
    ok(paramo_clock_leave(b));
    ok(paramo_clock_wait(a, 52, 0));
    assert_int_equal(look(a).minimum, 52);
    assert_int_equal(look(a).awaited_customer, 1);
    ok(paramo_clock_join(b, &clock));
    assert_int_equal(clock, 52);
    /* A worker that is closed stops counting, too. */
    ok(paramo_clock(a, NULL));
    paramo_worker_close(b);
    ok(paramo_clock_wait(a, 53, 0));
    ok(paramo_worker_open(node, 1, &b));
    ok(paramo_clock_join(b, &clock));
    assert_int_equal(clock, 53);
    ok(paramo_clock_leave(a));
    paramo_worker_close(a);
    ok(paramo_stop(node)); /* with a worker that counts */
}

static paramo_err pull_at(paramo_worker *w, paramo_table *t, uint64_t clock, uint32_t timeout_ms,
                          float *value, uint64_t *ts)
{
    static const uint64_t key = 7;
    paramo_kv kv;
    paramo_request_options o;
    paramo_kv_init(&kv);
    paramo_request_options_init(&o);
    kv.keys = &key;
    kv.n = kv.vals_len = 1;
    kv.vals = value;
    o.at_clock = clock;
    o.timeout_ms = timeout_ms;
    return paramo_pull(w, t, &kv, &o, ts);
}

/* Requests that demand a clock: no thread waits. */
static void requests_at_a_clock(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    paramo_worker *a = NULL, *b = NULL;
    uint64_t ts, early;
    float value = 0, first = 0;
    int done = 1;
    ok(paramo_worker_open(node, 0, &a));
    ok(paramo_worker_open(node, 1, &b));
    paramo_table *ta = sums(a), *tb = sums(b);
    assert_int_equal(pull_at(a, ta, 1, 0, &value, &ts), PARAMO_E_INVALID); /* no clock */
    ok(paramo_clock_join(a, NULL));
    ok(paramo_clock_join(b, NULL));
    assert_int_equal(pull_at(a, ta, 1, 0, &value, &ts), PARAMO_E_INVALID); /* it would wait for itself */
    assert_non_null(strstr(paramo_last_error(), "iterations up to 0"));

    /* Two that need different clocks, the later one first. Each sees all that came before its clock. */
    for (int i = 0; i < 2; i++) {
        push_one(a, ta);
        ok(paramo_clock(a, NULL));
    }
    ok(pull_at(a, ta, 2, 0, &value, &ts));
    ok(pull_at(a, ta, 1, 0, &first, &early));
    push_one(b, tb);
    ok(paramo_test(a, early, &done));
    assert_int_equal(done, 0);
    ok(paramo_clock(b, NULL));
    ok(paramo_wait(a, early, 0));
    assert_true(first == 3);
    ok(paramo_test(a, ts, &done));
    assert_int_equal(done, 0);
    push_one(b, tb);
    ok(paramo_clock(b, NULL));
    ok(paramo_wait(a, ts, 0));
    assert_true(value == 4);

    /* A deadline: the error names the worker that is behind. */
    ok(paramo_clock(a, NULL));
    ok(pull_at(a, ta, 3, 1000, &value, &ts));
    assert_int_equal(paramo_wait(a, ts, 0), PARAMO_E_TIMEOUT);
    assert_non_null(strstr(paramo_last_error(), "customer 1, is at clock 2"));

    /* The worker leaves, and begins again: requests of its earlier clock do not wait for the new one. One stands after
     * another request when the worker leaves. */
    ok(pull_at(a, ta, 3, 0, &value, &ts));
    paramo_request_options behind;
    paramo_request_options_init(&behind);
    behind.at_clock = 3;
    behind.after_all = ts;
    paramo_kv kv;
    paramo_kv_init(&kv);
    uint64_t key = 7, last;
    kv.keys = &key;
    kv.n = kv.vals_len = 1;
    kv.vals = &first;
    ok(paramo_pull(a, ta, &kv, &behind, &last));
    ok(paramo_clock_leave(a));
    ok(paramo_clock_join(a, NULL));
    assert_int_equal(paramo_wait(a, ts, 0), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "has no clock any more"));
    assert_int_equal(paramo_wait(a, last, 0), PARAMO_E_CANCELLED);
    paramo_worker_close(a);
    paramo_worker_close(b);
    ok(paramo_stop(node));
}

static uint64_t aged(const paramo_table *t, unsigned age)
{
    uint64_t ages[PARAMO_CLOCK_AGES];
    ok(paramo_table_clock_ages(t, ages));
    return ages[age];
}

/* How far ahead a worker was when it pulled. */
static void ages_of_pulls(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    paramo_worker *a = NULL, *b = NULL;
    uint64_t ts;
    float value;
    ok(paramo_worker_open(node, 0, &a));
    ok(paramo_worker_open(node, 1, &b));
    paramo_table *ta = sums(a), *tb = sums(b);
    (void)pulled(a, ta); /* without a clock */
    ok(paramo_clock_join(a, NULL));
    ok(paramo_clock_join(b, NULL));
    (void)pulled(a, ta);
    assert_int_equal(aged(ta, 0), 1);
    for (unsigned i = 0; i < 20; i++)
        ok(paramo_clock(a, NULL));
    push_one(a, ta); /* no pull */
    (void)pulled(a, ta);
    assert_int_equal(aged(ta, PARAMO_CLOCK_AGES - 1), 1); /* 20, or more than 15 */
    for (unsigned i = 0; i < 17; i++)
        ok(paramo_clock(b, NULL));
    ok(paramo_clock_wait(a, 17, 0));
    (void)pulled(a, ta);
    (void)pulled(a, ta);
    assert_int_equal(aged(ta, 3), 2);
    for (unsigned i = 17; i < 20; i++)
        ok(paramo_clock(b, NULL));
    ok(pull_at(a, ta, 19, 0, &value, &ts)); /* it is held for that clock */
    ok(paramo_wait(a, ts, 0));
    assert_int_equal(aged(ta, 1) + aged(ta, 0), 2);
    assert_int_equal(aged(tb, 0) + aged(tb, 1) + aged(tb, 3), 0); /* of each worker by itself */
    assert_int_equal(paramo_table_clock_ages(NULL, NULL), PARAMO_E_INVALID);
    paramo_worker_close(a);
    paramo_worker_close(b);
    ok(paramo_stop(node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_workers),
        cmocka_unit_test(requests_at_a_clock),
        cmocka_unit_test(ages_of_pulls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
