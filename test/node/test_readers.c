/* Readers by the public API: embedded, and over TCP beside a worker that pushes. They read what the worker's pulls
 * give; a server refuses requests that change something. */
#include <stdio.h>
#include <string.h>

#include "paramo/admin.h"
#include "paramo/app.h"
#include "paramo/functions.h"
#include "support_cluster.h"
#include "unit.h"

enum { KEYS = 50, DIM = 3 };

static uint64_t keys[KEYS];
static float vals[KEYS * DIM], got[KEYS * DIM];

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static void options_of(paramo_table_options *o, uint32_t dim)
{
    paramo_table_options_init(o);
    o->kind = PARAMO_TABLE_SPARSE;
    o->dim = dim;
    o->optimizer = PARAMO_OPT_ADD;
}

typedef paramo_err (*request_fn)(paramo_worker *, paramo_table *, const paramo_kv *,
                                 const paramo_request_options *, uint64_t *);

static paramo_err request(request_fn fn, paramo_worker *w, paramo_table *t, float *values, uint32_t flags)
{
    uint64_t ts;
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.flags = flags;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = KEYS;
    kv.vals = values;
    kv.vals_len = values ? KEYS * DIM : 0;
    paramo_err err = fn(w, t, &kv, &o, &ts);
    return err ? err : paramo_wait(w, ts, 0);
}

static void refused(paramo_err err)
{
    assert_int_equal(err, PARAMO_E_REFUSED);
    assert_non_null(strstr(paramo_last_error(), "a reader"));
}

static void reads_only(paramo_node *node, paramo_node *other)
{
    paramo_worker *w, *r;
    paramo_table *t, *same, *seen;
    paramo_table_options o;
    uint64_t clock;
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i * UINT64_C(0x123456789abcde);
    for (unsigned i = 0; i < KEYS * DIM; i++)
        vals[i] = (float)i;
    options_of(&o, DIM);
    ok(paramo_worker_open(node, 0, &w));
    ok(paramo_reader_open(other, 7, &r));
    /* a reader creates no table, and sees no other than there is */
    assert_int_equal(paramo_table_open(r, "w", &o, &seen), PARAMO_E_NO_TABLE);
    ok(paramo_table_open(w, "w", &o, &t));
    ok(paramo_table_open(r, "w", &o, &seen));
    ok(paramo_table_open(r, "w", NULL, &same));
    assert_ptr_equal(seen, same);
    options_of(&o, DIM + 1);
    assert_int_equal(paramo_table_open(r, "w", &o, &same), PARAMO_E_TABLE_EXISTS);
    assert_int_equal(paramo_clock_join(r, &clock), PARAMO_E_INVALID);

    ok(request(paramo_push, w, t, vals, 0));
    ok(request(paramo_pull, r, seen, got, 0));
    assert_memory_equal(got, vals, sizeof vals);
    paramo_reduction sum;
    uint64_t ts;
    paramo_reduction_init(&sum, PARAMO_REDUCE_SUM);
    ok(paramo_reduce(r, seen, &sum, NULL, &ts));
    ok(paramo_wait(r, ts, 0));
    assert_true(sum.rows == KEYS && sum.value == KEYS * DIM * (KEYS * DIM - 1) / 2.0);

    refused(request(paramo_push, r, seen, vals, 0));
    refused(request(paramo_pushpull, r, seen, got, 0));
    refused(request(paramo_pull, r, seen, got, PARAMO_CREATE));
    refused(paramo_table_delete(r, seen, keys, KEYS));
    refused(paramo_table_clear(r, seen));
    paramo_transformation fill;
    paramo_transformation_init(&fill, PARAMO_TRANSFORM_FILL);
    refused(paramo_transform(r, seen, &fill));
    ok(request(paramo_pull, r, seen, got, 0));
    ok(request(paramo_pull, w, t, got, 0));
    assert_memory_equal(got, vals, sizeof vals);
    ok(request(paramo_push, w, t, vals, 0)); /* the worker continues, also when the reader is gone */
    paramo_worker_close(r);
    ok(request(paramo_push, w, t, vals, 0));
    ok(request(paramo_pull, w, t, got, 0));
    for (unsigned i = 0; i < KEYS * DIM; i++)
        assert_true(got[i] == 3 * vals[i]);
    paramo_worker_close(w);
}

static float value_of(paramo_worker *w, paramo_table *t)
{
    ok(request(paramo_pull, w, t, got, 0));
    return got[1];
}

/* Two groups whose tables have the same names, and one table that both share. */
static void namespaces(void **state)
{
    (void)state;
    static const char *const bad[] = {"", "/a", "a/",
                                      "0123456789012345678901234567890123456789012345678901234567890123"};
    paramo_node *node = embedded_start(1);
    paramo_worker *a, *b, *r;
    paramo_table *of_a, *of_b, *shared_a, *shared_b, *t;
    paramo_table_options o;
    options_of(&o, DIM);
    ok(paramo_worker_open(node, 0, &a));
    ok(paramo_worker_open(node, 1, &b));
    ok(paramo_reader_open(node, 2, &r));
    for (unsigned i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(paramo_worker_namespace(a, bad[i]), PARAMO_E_INVALID);
    ok(paramo_worker_namespace(a, "group/a"));
    ok(paramo_worker_namespace(b, "b"));
    ok(paramo_table_open(a, "w", &o, &of_a));
    ok(paramo_table_open(b, "w", &o, &of_b));
    ok(paramo_table_open(a, "/all", &o, &shared_a));
    ok(paramo_table_open(b, "/all", NULL, &shared_b));
    for (unsigned i = 0; i < KEYS * DIM; i++)
        vals[i] = 1;
    ok(request(paramo_push, a, of_a, vals, 0));
    ok(request(paramo_push, a, shared_a, vals, 0));
    assert_true(value_of(b, of_b) == 0 && value_of(b, shared_b) == 1);
    /* others know them by their whole names, and a name that one group has another does not */
    ok(paramo_table_open(r, "group/a/w", NULL, &t));
    assert_true(value_of(r, t) == 1);
    assert_int_equal(paramo_table_open(r, "w", NULL, &t), PARAMO_E_NO_TABLE);
    ok(paramo_worker_namespace(r, "b"));
    ok(paramo_table_open(r, "w", NULL, &t));
    assert_true(value_of(r, t) == 0);
    ok(paramo_table_open(r, "/group/a/w", NULL, &t));
    assert_true(value_of(r, t) == 1);
    assert_int_equal(paramo_table_open(r, "/", NULL, &t), PARAMO_E_INVALID);
    assert_int_equal(paramo_table_open(a, &bad[3][8], NULL, &t),
                     PARAMO_E_INVALID); /* too long with its namespace */
    ok(paramo_worker_namespace(r, NULL));
    ok(paramo_table_open(r, "all", NULL, &t));
    assert_true(value_of(r, t) == 1);
    ok(paramo_stop(node));
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    reads_only(node, node);
    ok(paramo_stop(node));
}

static void copies(paramo_config *config)
{
    config->replicas = 1;
}

static void over_tcp(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 2, copies);
    reads_only(c.workers[0].node, c.workers[1].node);
    cluster_stop(&c);
}

/* ---- a node that is no part of the job ---- */

static void copies_soon(paramo_config *config)
{
    copies(config);
    config->heartbeat_ms = 50;
}

static paramo_config of_reader(const struct cluster *c)
{
    paramo_config config = c->workers[0].config;
    config.roles = PARAMO_ROLE_READER;
    config.connect_timeout_ms = 20000;
    config.heartbeat_timeout_ms = 1000;
    return config;
}

static float first_of(paramo_worker *r, paramo_table *t)
{
    ok(request(paramo_pull, r, t, got, 0));
    for (unsigned i = 1; i < KEYS * DIM; i++)
        assert_true(got[i] == got[0] * (float)(i + 1));
    return got[0];
}

/* It reads what the job has, follows tables that come and rows that move, and the job ends without it. */
static void no_member(void **state)
{
    (void)state;
    struct cluster c;
    paramo_node *node;
    paramo_worker *w, *r;
    paramo_table *t, *seen, *late;
    paramo_table_options o;
    paramo_work_unit unit;
    int there;
    options_of(&o, DIM);
    cluster_start_with(&c, 2, 1, copies_soon);
    ok(paramo_worker_open(c.workers[0].node, 0, &w));
    ok(paramo_table_open(w, "w", &o, &t));
    for (unsigned i = 0; i < KEYS * DIM; i++)
        vals[i] = (float)(i + 1);
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i * (UINT64_MAX / KEYS);
    ok(request(paramo_push, w, t, vals, 0));

    paramo_config config = of_reader(&c);
    ok(paramo_start(&config, &node));
    assert_int_equal(paramo_num_workers(node), 1);
    assert_int_equal(paramo_worker_open(node, 0, &r), PARAMO_E_INVALID);
    assert_int_equal(paramo_customer_open(node, 3, 0, &r), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "readers only"));
    assert_int_equal(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0), PARAMO_E_INVALID);
    assert_int_equal(paramo_kv_put(node, "key", &there, sizeof there), PARAMO_E_INVALID);
    assert_int_equal(paramo_pool_next(node, "pool", 0, 0, 0, &unit, &there), PARAMO_E_INVALID);
    ok(paramo_reader_open(node, 0, &r));
    ok(paramo_table_open(r, "w", NULL, &seen));
    assert_true(first_of(r, seen) == 1);
    refused(request(paramo_push, r, seen, vals, 0));
    assert_int_equal(paramo_table_open(r, "late", NULL, &late), PARAMO_E_NO_TABLE);
    ok(paramo_table_open(w, "late", &o,
                         &t)); /* newer than its view: the scheduler is asked, not a second waited for */
    ok(paramo_table_open(r, "late", NULL, &late));
    ok(request(paramo_push, w, t, vals, 0));
    assert_true(first_of(r, late) == 1);

    cluster_add_server(&c); /* rows move to it, while both read */
    for (unsigned moved = 0; !moved;) {
        paramo_cluster *snapshot;
        paramo_admin *admin;
        paramo_admin_options ask;
        paramo_cluster_node server = {.size = sizeof server};
        paramo_admin_options_init(&ask);
        ask.scheduler = config.scheduler;
        ask.token = config.token;
        ok(paramo_admin_open(&ask, &admin));
        ok(paramo_admin_cluster(admin, &snapshot));
        for (uint32_t i = 0; paramo_cluster_node_get(snapshot, i, &server) == PARAMO_OK; i++)
            moved += server.id == PARAMO_ID_SERVER(2) && server.owns > 0;
        paramo_cluster_free(snapshot);
        paramo_admin_close(admin);
        assert_true(first_of(r, late) == 1);
    }
    for (unsigned round = 2; round < 20; round++) {
        ok(request(paramo_push, w, t, vals, 0));
        assert_true(first_of(r, late) == (float)round);
    }
    paramo_worker_close(w);
    cluster_stop(&c);
    paramo_err err = request(paramo_pull, r, seen, got, 0); /* it ends with the node, not at its deadline */
    assert_true(err == PARAMO_E_CONNECTION_REFUSED || err == PARAMO_E_CONNECT ||
                err == PARAMO_E_DISCONNECTED);
    paramo_worker_close(r);
    assert_int_equal(paramo_stop(node), err);
}

/* Addresses that it cannot reach, and readers that are refused. */
static void no_job(void **state)
{
    (void)state;
    struct cluster c;
    paramo_node *node;
    cluster_start(&c, 1, 1, NULL);
    paramo_config config = of_reader(&c);
    config.token = "another";
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_TOKEN);
    config.scheduler = NULL;
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_INVALID);
    config = of_reader(&c);
    config.van = "inproc";
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_INVALID);
    cluster_stop(&c);
    config = of_reader(&c);
    config.connect_timeout_ms = 200;
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_CONNECTION_REFUSED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(embedded), cmocka_unit_test(over_tcp),
                                       cmocka_unit_test(namespaces), cmocka_unit_test(no_member),
                                       cmocka_unit_test(no_job)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
