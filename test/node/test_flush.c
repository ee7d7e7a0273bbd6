/* What filters hold back, by the public API, embedded and over TCP: a flush sends it, and so does the close of a
 * worker. */
#include <stdio.h>
#include <string.h>

#include "paramo/filter.h"
#include "support_cluster.h"
#include "unit.h"

enum { KEYS = 50 };

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static paramo_table *open_table(paramo_worker *w)
{
    paramo_table_options o;
    paramo_table *t = NULL;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_SPARSE;
    o.optimizer = PARAMO_OPT_ADD;
    ok(paramo_table_open(w, "rows", &o, &t));
    return t;
}

static void push(paramo_worker *w, paramo_table *t, float value)
{
    uint64_t keys[KEYS], ts;
    float vals[KEYS];
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = KEYS, .vals = vals, .vals_len = KEYS};
    for (uint64_t i = 0; i < KEYS; i++) {
        keys[i] = 3 * i;
        vals[i] = value;
    }
    ok(paramo_push(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

/* All rows have this value. */
static void holds(paramo_worker *w, paramo_table *t, float value)
{
    uint64_t keys[KEYS], ts;
    float vals[KEYS];
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = KEYS, .vals = vals, .vals_len = KEYS};
    for (uint64_t i = 0; i < KEYS; i++)
        keys[i] = 3 * i;
    ok(paramo_pull(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    for (unsigned i = 0; i < KEYS; i++)
        assert_true(vals[i] == value);
}

static void play(paramo_node *node)
{
    paramo_worker *w, *other;
    uint64_t ts;
    ok(paramo_worker_open(node, 1, &w));
    ok(paramo_worker_open(node, 2, &other));
    paramo_table *t = open_table(w), *seen = open_table(other);
    ok(paramo_table_filter(t, PARAMO_FILTER_PUSH, "threshold:10,keycache"));
    assert_int_equal(paramo_table_filter(t, PARAMO_FILTER_PULL, "threshold:10"), PARAMO_E_INVALID);
    push(w, t, 1);
    push(w, t, 2);
    holds(other, seen, 0);
    ok(paramo_filter_flush(w, t, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    holds(other, seen, 3);
    ok(paramo_filter_flush(w, t, NULL, &ts)); /* nothing is held back */
    ok(paramo_wait(w, ts, 0));
    push(w, t, 4);
    holds(other, seen, 3);
    assert_int_equal(paramo_filter_flush(other, t, NULL, &ts), PARAMO_E_NO_TABLE); /* another worker's */
    paramo_worker_close(w);
    holds(other, seen, 7);
    paramo_worker_close(other);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    play(node);
    ok(paramo_stop(node));
}

static void over_tcp(void **state)
{
    struct cluster c = {0};
    (void)state;
    cluster_start(&c, 2, 1, NULL);
    play(c.workers[0].node);
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(embedded), cmocka_unit_test(over_tcp)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
