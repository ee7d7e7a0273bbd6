/* Functions of the application through clients and shards: on any number of servers, with copies, in small steps; a
 * server that does not have the function, a function that fails, a server of an older version. */
#include <stdlib.h>
#include <string.h>

#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"
#include "worker/transform_run.h"

enum { DENSE, SPARSE, SECOND, VAR, ROWS = 5000, DIM = 3, LONG = 4000 };

/* params: what is added, a float; then perhaps a byte: the result. */
static int add(void *user, paramo_function_rows *rows)
{
    float more, *w = rows->vals;
    const float *x = rows->other;
    (void)user;
    assert_true(rows->column == 0 && rows->dtype == PARAMO_F32 && rows->n > 0);
    memcpy(&more, rows->params, sizeof more);
    for (size_t i = 0; i < rows->n * rows->columns; i++)
        w[i] += more + (x ? x[i] : 0);
    return rows->params_bytes > sizeof more ? ((const uint8_t *)rows->params)[sizeof more] : 0;
}

/* Sums of keys and of columns, and how many values there were. */
static void weigh(void *user, const paramo_function_rows *rows, void *state)
{
    uint64_t *sum = state;
    const float *w = rows->vals;
    (void)user;
    for (size_t i = 0; i < rows->n; i++) {
        sum[0] += rows->column ? 0 : rows->keys[i];
        for (uint32_t c = 0; c < rows->columns; c++)
            sum[1] += (uint64_t)w[i * rows->columns + c] * (rows->column + c + 1);
        sum[2] += rows->columns;
    }
}

static int weigh_merge(void *user, const void *params, size_t bytes, void *state, const void *from)
{
    uint64_t *sum = state, more[3];
    (void)user;
    (void)params;
    (void)bytes;
    memcpy(more, from, sizeof more);
    for (int i = 0; i < 3; i++)
        sum[i] += more[i];
    return 0;
}

static void functions_register(void)
{
    const paramo_function one = {.size = sizeof one,
                                 .name = "both",
                                 .change = add,
                                 .state_bytes = 3 * sizeof(uint64_t),
                                 .add = weigh,
                                 .merge = weigh_merge};
    user_functions_forget();
    assert_ok(user_function_register(&one));
}

static void world_make(struct world *w, unsigned servers, size_t scan_keys, unsigned replicas,
                       uint64_t capabilities)
{
    functions_register();
    world_init(w, true, 5);
    w->scan_keys = scan_keys;
    w->migrations = true;
    w->replicas = replicas;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_table(w, PARAMO_TABLE_SPARSE, DIM);
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_DENSE, LONG)->rows = 20;
    world_start(w, servers, servers, 1);
}

static void push(struct world *w, unsigned table, size_t n)
{
    static uint64_t keys[ROWS];
    static float vals[ROWS * DIM];
    uint64_t ts;
    for (size_t i = 0; i < n; i++)
        keys[i] = 3 * i;
    for (size_t i = 0; i < n * DIM; i++)
        vals[i] = 2;
    assert_ok(world_push(w, 0, table, keys, n, vals, n * DIM, &ts));
    assert_ok(world_wait(w, 0, ts));
}

static paramo_err begin(struct world *w, unsigned table, paramo_reduction *r, uint64_t *ts)
{
    struct client_call call = {.kind = REQUEST_REDUCE, .table = &w->tables[table], .reduction = r};
    return client_issue(w->clients[0].client, &call, ts);
}

static paramo_err reduce(struct world *w, unsigned table, uint64_t sum[3])
{
    uint64_t ts;
    paramo_reduction r = {.size = sizeof r,
                          .function = PARAMO_REDUCE_USER,
                          .name = "both",
                          .state = sum,
                          .state_bytes = 3 * sizeof *sum};
    paramo_err err = begin(w, table, &r, &ts);
    if (!err)
        err = client_wait(w->clients[0].client, ts, 0);
    if (!err)
        assert_int_equal(r.values, sum[2]);
    return err;
}

static paramo_err change(struct world *w, unsigned table, int other, float more, uint8_t result)
{
    uint8_t params[5];
    struct transform what = {
        .function = PARAMO_TRANSFORM_USER, .two = other >= 0, .other = other >= 0 ? w->tables[other].id : 0};
    memcpy(params, &more, sizeof more);
    params[4] = result;
    assert_ok(user_call_make(&what.user, "both", params, result ? 5 : 4));
    return transform_run(w->clients[0].client, &w->tables[table], other >= 0 ? &w->tables[other] : NULL,
                         &what, &(struct transform_rows){0}, 0);
}

static void on_any_layout(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++)
        for (size_t step = 0; step <= 700; step += 700) {
            struct world w;
            uint64_t sum[3];
            const uint64_t n = 1000, rows = ROWS, longs = 20, len = LONG;
            world_make(&w, servers, step, servers - 1, UINT64_MAX);
            push(&w, SPARSE, n);
            push(&w, SECOND, 2 * n);
            assert_ok(reduce(&w, SPARSE, sum));
            assert_int_equal(sum[0], 3 * n * (n - 1) / 2);
            assert_int_equal(sum[1], n * 2 * (1 + 2 + 3));
            assert_ok(change(&w, SPARSE, -1, 5, 0));     /* 7 each */
            assert_ok(change(&w, SPARSE, SECOND, 1, 0)); /* 10 each, and 3 where there was no row */
            assert_ok(reduce(&w, SPARSE, sum));
            assert_int_equal(sum[0], 3 * 2 * n * (2 * n - 1) / 2);
            assert_int_equal(sum[1], n * (10 + 3) * (1 + 2 + 3));
            assert_ok(change(&w, DENSE, -1, 1, 0));
            assert_ok(reduce(&w, DENSE, sum));
            assert_int_equal(sum[0], rows * (rows - 1) / 2);
            assert_int_equal(sum[1], rows * (1 + 2 + 3));
            assert_ok(change(&w, VAR + 1, -1, 1, 0));
            assert_ok(reduce(&w, VAR + 1, sum)); /* rows that are longer than a step */
            assert_int_equal(sum[0], longs * (longs - 1) / 2);
            assert_int_equal(sum[1], longs * len * (len + 1) / 2);
            world_fini(&w);
        }
}

static void failures(void **state)
{
    (void)state;
    struct world w;
    uint64_t sum[3], before[3], ts;
    world_make(&w, 2, 0, 0, UINT64_MAX);
    push(&w, SPARSE, 100);
    assert_ok(reduce(&w, SPARSE, before));
    assert_int_equal(change(&w, SPARSE, -1, 1, 42), PARAMO_E_HANDLER);
    assert_non_null(strstr(err_text(), "\"both\" returned 42"));
    assert_int_equal(change(&w, SPARSE, -1, 1.0f / 0.0f, 0), PARAMO_E_NUMERIC);
    assert_int_equal(change(&w, VAR, -1, 1, 0), PARAMO_E_UNSUPPORTED);
    assert_ok(reduce(&w, SPARSE, sum));
    assert_memory_equal(sum, before, sizeof sum); /* nothing has changed */

    paramo_reduction r = {.size = sizeof r, .function = PARAMO_REDUCE_USER, .name = "none", .state = sum};
    assert_int_equal(begin(&w, SPARSE, &r, &ts), PARAMO_E_UNSUPPORTED);
    r.name = NULL;
    assert_int_equal(begin(&w, SPARSE, &r, &ts), PARAMO_E_INVALID);
    r.name = "both";
    r.state_bytes = 23;
    assert_int_equal(begin(&w, SPARSE, &r, &ts), PARAMO_E_INVALID);
    r.state_bytes = 24;
    assert_ok(begin(&w, SPARSE, &r, &ts));
    user_functions_forget(); /* the servers do not have it */
    assert_int_equal(client_wait(w.clients[0].client, ts, 0), PARAMO_E_UNSUPPORTED);
    assert_non_null(strstr(err_text(), "has no function \"both\""));
    assert_int_equal(change(&w, SPARSE, -1, 1, 0), PARAMO_E_UNSUPPORTED);
    functions_register();
    assert_ok(reduce(&w, SPARSE, sum)); /* the connections stay open */
    assert_memory_equal(sum, before, sizeof sum);
    world_fini(&w);
}

static void older_servers(void **state)
{
    (void)state;
    struct world w;
    uint64_t sum[3];
    world_make(&w, 2, 0, 0, UINT64_MAX & ~CAPABILITY_FUNCTIONS);
    push(&w, SPARSE, 10);
    assert_int_equal(reduce(&w, SPARSE, sum), PARAMO_E_UNSUPPORTED);
    assert_int_equal(change(&w, SPARSE, -1, 1, 0), PARAMO_E_UNSUPPORTED);
    push(&w, SPARSE, 10); /* the connections stay open */
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(on_any_layout), cmocka_unit_test(failures),
                                       cmocka_unit_test(older_servers)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
