/* Rows that filters hold back: each value that was pushed arrives once, whatever becomes of its request. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "filter/coding.h"
#include "worker/carrying.h"
#include "worker/client_impl.h"
#include "worker/requests.h"
#include "worker/support_world.h"

enum { N = 3000 };

static uint64_t keys[N], ts;
static float vals[N], out[N];

static void world_make(struct world *w, unsigned servers, const char *filters)
{
    world_init(w, true, 5);
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    assert_ok(filter_chains_parse(filters, w->filters));
    world_start(w, servers, servers, 1);
    for (size_t i = 0; i < N; i++)
        keys[i] = 11 * i;
}

static struct client *client(struct world *w)
{
    return w->clients[0].client;
}

static paramo_err issue(struct world *w, enum request_kind kind, size_t n, float value, uint32_t timeout_ms)
{
    paramo_request_options o = {.size = sizeof o, .timeout_ms = timeout_ms, .flags = PARAMO_COPY};
    for (size_t i = 0; i < n; i++)
        vals[i] = value;
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = n};
    struct client_call call = {
        .kind = kind, .table = &w->tables[0], .kv = kind == REQUEST_FLUSH ? NULL : &kv, .options = &o};
    return client_issue(client(w), &call, &ts);
}

static void push(struct world *w, size_t n, float value)
{
    assert_ok(issue(w, REQUEST_PUSH, n, value, 0));
    assert_ok(world_wait(w, 0, ts));
}

static void flush(struct world *w)
{
    assert_ok(issue(w, REQUEST_FLUSH, 0, 0, 0));
    assert_ok(world_wait(w, 0, ts));
}

/* The sum of the first n rows at the servers. */
static float total(struct world *w, size_t n)
{
    float sum = 0;
    assert_ok(world_pull(w, 0, 0, keys, n, out, n, &ts));
    assert_ok(world_wait(w, 0, ts));
    for (size_t i = 0; i < n; i++)
        sum += out[i];
    return sum;
}

static void what_waits_is_added_to_the_next_push(void **state)
{
    struct world w;
    (void)state;
    world_make(&w, 2, "push=threshold:2.5");
    push(&w, N, 1);
    assert_true(total(&w, N) == 0 && carrying_any(client(&w)));
    push(&w, N, 1);
    assert_true(total(&w, N) == 0);
    push(&w, N / 2, 1);
    assert_true(total(&w, N / 2) == 3 * (N / 2)); /* whole sums, not the last values */
    assert_true(total(&w, N) == 3 * (N / 2));
    flush(&w);
    assert_true(total(&w, N) == 3 * (N / 2) + 2 * (N - N / 2));
    assert_false(carrying_any(client(&w)));
    flush(&w); /* there is nothing */
    assert_int_equal(client(&w)->pool.out, 0);
    world_fini(&w);
}

/* A request that is cancelled, or misses its deadline, after its rows have left: they still arrive, once, with the
 * rows that were held back before. */
static void a_failed_push_loses_nothing(void **state)
{
    (void)state;
    for (unsigned late = 0; late < 2; late++)
        for (unsigned answered = 0; answered < 2; answered++) {
            struct world w;
            world_make(&w, 2, "push=threshold:1.5");
            push(&w, 100, 1);
            struct simnet_link *cut =
                answered ? world_link(&w, "s0", "w0") : world_link(&w, "w0", "s0"); /* its answers, or it */
            cut->cut = true;
            assert_ok(issue(&w, REQUEST_PUSH, 100, 1, late ? 20 : 0));
            uint64_t failed = ts;
            world_pass(&w, 50 * ENV_MS);
            if (!late)
                assert_ok(client_cancel(client(&w), failed));
            assert_int_equal(world_wait(&w, 0, failed), late ? PARAMO_E_TIMEOUT : PARAMO_E_CANCELLED);
            assert_true(carrying_any(client(&w)));
            push(&w, 100, 1); /* held back again */
            cut->cut = false;
            flush(&w);
            assert_true(total(&w, 100) == 300);
            assert_null(requests_first(client(&w)));
            assert_int_equal(client(&w)->pool.out, 0);
            world_fini(&w);
        }
}

/* A flush waits for rows of earlier pushes that are on their way. */
static void a_flush_waits_for_carriers(void **state)
{
    struct world w;
    (void)state;
    world_make(&w, 1, "push=threshold:1.5");
    push(&w, 10, 1);
    struct simnet_link *answers = world_link(&w, "s0", "w0");
    answers->cut = true;
    assert_ok(issue(&w, REQUEST_PUSH, 10, 1, 20));
    world_pass(&w, 50 * ENV_MS);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_TIMEOUT);
    assert_ok(issue(&w, REQUEST_FLUSH, 0, 0, 50));
    world_pass(&w, 100 * ENV_MS);
    assert_int_equal(world_wait(&w, 0, ts), PARAMO_E_TIMEOUT);
    answers->cut = false;
    flush(&w);
    assert_true(total(&w, 10) == 20);
    world_fini(&w);
}

/* A full store: rows travel instead. A chain that ends: what it has held back is sent. Rows that the filter keeps for
 * good are sent when the client's owner says so. */
static void limits_and_changes(void **state)
{
    struct world w;
    struct filter_chain none = {0};
    (void)state;
    world_make(&w, 2, "push=threshold:100");
    client(&w)->config.held_bytes = 1000;
    push(&w, N, 1);
    float sent = total(&w, N);
    assert_true(sent > N - 100 && sent < N);
    client(&w)->config.held_bytes = 0;
    push(&w, N, 1);
    assert_true(total(&w, N) == sent);
    if (!lane_enter(client(&w)->lane))
        abort();
    assert_ok(client_filter(client(&w), &w.tables[0], FILTER_PUSH, &none));
    lane_leave(client(&w)->lane);
    push(&w, N, 1);
    flush(&w); /* it waits for the rows that left at the change */
    assert_true(total(&w, N) == 3 * N);
    world_fini(&w);
}

/* Many portions, many turns of a flush, a new view in between, and pushpull, which travels whole. */
static void portions_and_views(void **state)
{
    struct world w;
    (void)state;
    world_init(&w, true, 9);
    w.portion_keys = 50;
    w.turn_keys = 70;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    assert_ok(filter_chains_parse("push=topk:0.3,skip:0.2,keycache", w.filters));
    world_start(&w, 3, 2, 1);
    for (size_t i = 0; i < N; i++)
        keys[i] = 11 * i;
    for (unsigned round = 0; round < 4; round++)
        push(&w, N, 1);
    float sent = total(&w, N);
    assert_true(sent > 0.2F * 4 * N && sent < 0.9F * 4 * N);
    assert_ok(issue(&w, REQUEST_PUSHPULL, N, 1, 0));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(total(&w, N) == sent + N);
    assert_ok(issue(&w, REQUEST_FLUSH, 0, 0, 0));
    world_server_gone(&w, 2); /* it owned nothing; links and views change */
    world_all_view(&w);
    assert_ok(world_wait(&w, 0, ts));
    assert_true(total(&w, N) == 5 * N);
    world_fini(&w);
}

/* A carrier whose server is gone, and has no copy, keeps its number. It is given up before it stops all other
 * requests. */
static void a_carrier_that_nobody_takes_is_given_up(void **state)
{
    struct world w;
    uint64_t flushed;
    (void)state;
    world_make(&w, 2, "push=threshold:2.5");
    push(&w, N, 1);
    assert_true(total(&w, N) == 0);              /* the connections are there */
    assert_ok(issue(&w, REQUEST_PUSH, N, 2, 0)); /* all rows leave */
    world_server_stop(&w, 1);
    w.servers[1].alive = false;
    world_view(&w);
    world_all_view(&w);
    (void)world_wait(&w, 0, ts);
    assert_ok(issue(&w, REQUEST_FLUSH, 0, 0, 200000)); /* waits for the carrier */
    flushed = ts;
    size_t here = 0; /* a key that server 0 owns */
    while (w.ring.owner[ring_partition(ring_position(&w.tables[0].placement, keys[here]))] != 0)
        here++;
    for (unsigned i = 0; i < 3 * DATA_WINDOW; i++) {
        float value = 3;
        assert_ok(world_push(&w, 0, 0, &keys[here], 1, &value, 1, &ts));
        paramo_err err = world_wait(&w, 0, ts);
        assert_true(err == PARAMO_OK || (err == PARAMO_E_TIMEOUT && i >= DATA_WINDOW / 2));
    }
    assert_int_equal(carrying_given_up(client(&w)), 1);
    assert_int_equal(world_wait(&w, 0, flushed), PARAMO_E_NODE_LOST);
    assert_ok(world_pull(&w, 0, 0, &keys[here], 1, out, 1, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(out[0] > 3 * DATA_WINDOW);
    world_fini(&w);
}

/* The same requests give the same rows each time. */
static float one_run(const char *filters)
{
    struct world w;
    world_make(&w, 2, filters);
    for (unsigned round = 0; round < 5; round++)
        push(&w, N, 1 + (float)round);
    float sum = total(&w, N);
    world_fini(&w);
    return sum;
}

static void two_runs_are_equal(void **state)
{
    (void)state;
    float sum = one_run("push=skip:0.5,fixed:1");
    assert_true(one_run("push=skip:0.5,fixed:1") == sum);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(what_waits_is_added_to_the_next_push),
                                       cmocka_unit_test(a_failed_push_loses_nothing),
                                       cmocka_unit_test(a_flush_waits_for_carriers),
                                       cmocka_unit_test(limits_and_changes),
                                       cmocka_unit_test(a_carrier_that_nobody_takes_is_given_up),
                                       cmocka_unit_test(portions_and_views),
                                       cmocka_unit_test(two_runs_are_equal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
