/* Snapshots by the public API (paramo/snapshot.h): embedded, and over TCP with a reader that is no part of the job
 * while rows change and move. */
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "paramo/paramo.h"
#include "support_cluster.h"
#include "unit.h"

enum { KEYS = 40, DIM = 3, TAKES = 30 };

static uint64_t keys[KEYS];

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static void refused(paramo_err err, paramo_err expected, const char *text)
{
    assert_int_equal(err, expected);
    if (!strstr(paramo_last_error(), text))
        fail_msg("\"%s\" does not say \"%s\"", paramo_last_error(), text);
}

typedef paramo_err (*request_fn)(paramo_worker *, paramo_table *, const paramo_kv *,
                                 const paramo_request_options *, uint64_t *);

static void request(request_fn fn, paramo_worker *w, paramo_table *t, size_t n, void *vals, size_t vals_len,
                    uint32_t *lens)
{
    uint64_t ts;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = vals_len;
    kv.lens = lens;
    ok(fn(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

static paramo_table *open_table(paramo_worker *w, const char *name, paramo_table_kind kind,
                                paramo_dtype dtype, paramo_optimizer optimizer)
{
    paramo_table *t;
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = kind;
    o.dtype = dtype;
    o.dim = DIM;
    o.rows = kind == PARAMO_TABLE_DENSE ? KEYS : 0;
    o.optimizer = optimizer;
    if (optimizer == PARAMO_OPT_ADAGRAD) { /* rows that do not exist have values, too */
        o.init = PARAMO_INIT_UNIFORM;
        o.init_a = -1;
        o.init_b = 1;
        o.seed = 5;
    }
    ok(paramo_table_open(w, name, &o, &t));
    return t;
}

/* What the four tables of a job hold. */
struct content {
    float sparse[KEYS * DIM], dense[KEYS * DIM];
    int64_t counts[KEYS * DIM];
    uint8_t text[KEYS * 8];
    uint32_t lens[KEYS];
};

static const char *const names[] = {"sparse", "dense", "counts", "text"};

static void content_get(paramo_worker *w, paramo_table *const t[4], struct content *c)
{
    memset(c, 0, sizeof *c);
    request(paramo_pull, w, t[0], KEYS, c->sparse, KEYS * DIM, NULL);
    request(paramo_pull, w, t[1], KEYS, c->dense, KEYS * DIM, NULL);
    request(paramo_pull, w, t[2], KEYS, c->counts, KEYS * DIM, NULL);
    request(paramo_pull, w, t[3], KEYS, c->text, sizeof c->text, c->lens);
}

/* Changes half of the rows of each table; the others have none, or their initial values. */
static void content_change(paramo_worker *w, paramo_table *const t[4], unsigned round)
{
    float vals[KEYS * DIM];
    int64_t counts[KEYS * DIM];
    uint8_t text[KEYS * 8];
    uint32_t lens[KEYS];
    size_t bytes = 0;
    for (unsigned i = 0; i < KEYS * DIM; i++) {
        vals[i] = (float)(i + round) / 8;
        counts[i] = (int64_t)i * round;
    }
    for (unsigned i = 0; i < KEYS; i++) {
        lens[i] = (i + round) % 8;
        memset(text + bytes, (int)('a' + round), lens[i]);
        bytes += lens[i];
    }
    request(paramo_push, w, t[0], KEYS / 2, vals, KEYS / 2 * DIM, NULL);
    request(paramo_push, w, t[1], KEYS / 2, vals, KEYS / 2 * DIM, NULL);
    request(paramo_push, w, t[2], KEYS / 2, counts, KEYS / 2 * DIM, NULL);
    bytes = 0;
    for (unsigned i = 0; i < KEYS / 2; i++)
        bytes += lens[i];
    request(paramo_push, w, t[3], KEYS / 2, text, bytes, lens);
}

static void snapshot_get(paramo_snapshot *s, paramo_worker *r, struct content *c)
{
    paramo_table *t[4], *again;
    for (unsigned i = 0; i < 4; i++)
        ok(paramo_snapshot_table(s, names[i], &t[i]));
    ok(paramo_snapshot_table(s, names[2], &again));
    assert_ptr_equal(again, t[2]);
    content_get(r, t, c);
}

/* A snapshot stays as the tables were, and is found out when it is replaced. */
static void stays(paramo_node *node, paramo_node *other)
{
    paramo_worker *w, *r;
    paramo_snapshot *s, *first;
    paramo_table *t[4], *none;
    struct content before, now, got;
    uint64_t number = 99;
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i;
    ok(paramo_worker_open(node, 0, &w));
    ok(paramo_reader_open(other, 9, &r));
    t[0] = open_table(w, names[0], PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADAGRAD);
    t[1] = open_table(w, names[1], PARAMO_TABLE_DENSE, PARAMO_F32, PARAMO_OPT_FTRL);
    t[2] = open_table(w, names[2], PARAMO_TABLE_SPARSE, PARAMO_I64, PARAMO_OPT_ADD);
    t[3] = open_table(w, names[3], PARAMO_TABLE_VAR, PARAMO_U8, PARAMO_OPT_ASSIGN);
    content_change(w, t, 1);
    refused(paramo_snapshot_open(r, "model", &s), PARAMO_E_NOT_FOUND, "no snapshot model");

    content_get(w, t, &before);
    ok(paramo_snapshot_take(w, "model", names, 4, NULL, &number));
    assert_int_equal(number, 1);
    ok(paramo_snapshot_open(r, "model", &first));
    assert_int_equal(paramo_snapshot_number(first), 1);
    for (unsigned round = 2; round < 6; round++) {
        content_change(w, t, round);
        snapshot_get(first, r, &got);
        assert_memory_equal(&got, &before, sizeof got);
        ok(paramo_snapshot_check(first));
    }
    ok(paramo_table_delete(w, t[2], keys, 3)); /* the next one does not have these rows */
    content_get(w, t, &now);
    assert_memory_not_equal(&now, &before, sizeof now);
    ok(paramo_snapshot_take(w, "model", names, 4, NULL, &number));
    assert_int_equal(number, 2);
    snapshot_get(first, r, &got);
    assert_memory_equal(&got, &before, sizeof got);
    ok(paramo_snapshot_check(first)); /* two are kept */
    ok(paramo_snapshot_open(r, "model", &s));
    assert_int_equal(paramo_snapshot_number(s), 2);
    snapshot_get(s, r, &got);
    assert_memory_equal(&got, &now, sizeof got);
    refused(paramo_snapshot_table(s, "other", &none), PARAMO_E_NO_TABLE, "has no table other");

    ok(paramo_table_delete(w, t[2], keys + 3, 2)); /* rows that the copy of the first has */
    content_get(w, t, &now);
    ok(paramo_snapshot_take(w, "model", names, 4, NULL, NULL));
    refused(paramo_snapshot_check(first), PARAMO_E_NOT_FOUND, "model 1 is replaced; the last is 3");
    ok(paramo_snapshot_check(s));
    paramo_snapshot_close(s);
    paramo_snapshot_close(first);
    ok(paramo_snapshot_open(r, "model", &s));
    assert_int_equal(paramo_snapshot_number(s), 3);
    snapshot_get(s, r, &got);
    assert_memory_equal(&got, &now, sizeof got);
    ok(paramo_snapshot_check(s));
    paramo_snapshot_close(s);
    paramo_worker_close(r);
    paramo_worker_close(w);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    stays(node, node);
    ok(paramo_stop(node));
}

static void copies(paramo_config *config)
{
    config->replicas = 1;
    config->heartbeat_ms = 50;
}

static void over_tcp(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start_with(&c, 2, 2, copies);
    stays(c.workers[0].node, c.workers[1].node);
    cluster_stop(&c);
}

/* What is refused, before anything has changed. */
static void wrong(void **state)
{
    (void)state;
    static const char *const user[] = {"sparse", "user"}, *const missing[] = {"sparse", "none"};
    static const char *const null[] = {"sparse", NULL};
    static const char long_name[] = "0123456789012345678901234567890123456789012345678901234567";
    paramo_node *node = embedded_start(1);
    paramo_worker *w, *r;
    paramo_snapshot *s;
    paramo_snapshot_options o;
    uint64_t number;
    paramo_table_options user_options;
    paramo_table *t;
    ok(paramo_worker_open(node, 0, &w));
    ok(paramo_reader_open(node, 1, &r));
    (void)open_table(w, "sparse", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    paramo_table_options_init(&user_options);
    user_options.kind = PARAMO_TABLE_USER;
    ok(paramo_table_open(w, "user", &user_options, &t));
    paramo_snapshot_options_init(&o);
    refused(paramo_snapshot_take(w, "s", user, 2, NULL, &number), PARAMO_E_UNSUPPORTED,
            "table user has a handler");
    refused(paramo_snapshot_take(w, "s", missing, 2, NULL, &number), PARAMO_E_NO_TABLE, "none");
    refused(paramo_snapshot_take(w, "s", null, 2, NULL, &number), PARAMO_E_INVALID, "table 1 of 2 is NULL");
    refused(paramo_snapshot_take(w, "s", user, 0, NULL, &number), PARAMO_E_INVALID, "at least one table");
    refused(paramo_snapshot_take(w, "", user, 1, NULL, &number), PARAMO_E_INVALID, "name");
    refused(paramo_snapshot_take(w, NULL, user, 1, NULL, &number), PARAMO_E_INVALID, "name");
    refused(paramo_snapshot_take(w, long_name, user, 1, NULL, &number), PARAMO_E_INVALID,
            "both names together");
    refused(paramo_snapshot_take(r, "s", user, 1, NULL, &number), PARAMO_E_REFUSED, "a reader");
    for (o.keep = 0; o.keep < 2; o.keep++)
        refused(paramo_snapshot_take(w, "s", user, 1, &o, &number), PARAMO_E_INVALID, "may be 2 to 16");
    o.keep = PARAMO_SNAPSHOTS_MAX + 1;
    refused(paramo_snapshot_take(w, "s", user, 1, &o, &number), PARAMO_E_INVALID, "may be 2 to 16");
    refused(paramo_snapshot_open(r, "s", &s), PARAMO_E_NOT_FOUND, "no snapshot s");
    o.keep = 3;
    ok(paramo_snapshot_take(w, "s", user, 1, &o, &number));
    assert_int_equal(number, 1);
    refused(paramo_snapshot_take(w, "s", user, 1, NULL, &number), PARAMO_E_INVALID,
            "keeps 3 since its first call, not 2");
    refused(paramo_snapshot_check(NULL), PARAMO_E_INVALID, "NULL");
    assert_int_equal(paramo_snapshot_number(NULL), 0);
    paramo_snapshot_close(NULL);
    ok(paramo_stop(node));
}

/* A call that fails midway, however often, leaves the last snapshot as it is. */
static void a_failure_keeps_the_last(void **state)
{
    (void)state;
    static const char *const both[] = {"a", "b"};
    paramo_node *node = embedded_start(1);
    paramo_worker *w;
    paramo_snapshot *s;
    paramo_table *t, *copy;
    float one[DIM] = {1, 1, 1}, got[DIM];
    uint64_t number = 0;
    keys[0] = 7;
    ok(paramo_worker_open(node, 0, &w));
    t = open_table(w, "a", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    (void)open_table(w, "b", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    (void)open_table(w, "b@s.0", PARAMO_TABLE_SPARSE, PARAMO_I64,
                     PARAMO_OPT_ADD); /* in the second one's way */
    request(paramo_push, w, t, 1, one, DIM, NULL);
    ok(paramo_snapshot_take(w, "s", both, 2, NULL, &number));
    for (unsigned i = 0; i < 4; i++) {
        request(paramo_push, w, t, 1, one, DIM, NULL);
        refused(paramo_snapshot_take(w, "s", both, 2, NULL, &number), PARAMO_E_TABLE_EXISTS, "b@s.0");
        assert_int_equal(number, 1);
        ok(paramo_snapshot_open(w, "s", &s));
        assert_int_equal(paramo_snapshot_number(s), 1);
        ok(paramo_snapshot_table(s, "a", &copy));
        request(paramo_pull, w, copy, 1, got, DIM, NULL);
        assert_true(got[0] == 1);
        ok(paramo_snapshot_check(s));
        paramo_snapshot_close(s);
    }
    ok(paramo_snapshot_take(w, "s", both, 1, NULL, &number));
    assert_int_equal(number, 2);
    ok(paramo_stop(node));
}

/* Names are in the worker's namespace, or in none. */
static void in_a_namespace(void **state)
{
    (void)state;
    static const char *const own[] = {"w"}, *const shared[] = {"/w"};
    paramo_node *node = embedded_start(1);
    paramo_worker *w, *r;
    paramo_snapshot *s;
    paramo_table *t, *all;
    float vals[DIM] = {1, 2, 3}, got[DIM];
    ok(paramo_worker_open(node, 0, &w));
    ok(paramo_reader_open(node, 1, &r));
    ok(paramo_worker_namespace(w, "group"));
    t = open_table(w, "w", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    all = open_table(w, "/w", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    request(paramo_push, w, t, 1, vals, DIM, NULL);
    ok(paramo_snapshot_take(w, "s", own, 1, NULL, NULL));
    request(paramo_push, w, all, 1, vals, DIM, NULL);
    request(paramo_push, w, all, 1, vals, DIM, NULL);
    ok(paramo_snapshot_take(w, "/s", shared, 1, NULL, NULL));
    ok(paramo_snapshot_open(r, "group/s", &s));
    ok(paramo_snapshot_table(s, "group/w", &t));
    request(paramo_pull, r, t, 1, got, DIM, NULL);
    assert_true(got[0] == 1 && got[2] == 3);
    paramo_snapshot_close(s);
    ok(paramo_snapshot_open(r, "s", &s));
    ok(paramo_snapshot_table(s, "w", &t));
    request(paramo_pull, r, t, 1, got, DIM, NULL);
    assert_true(got[0] == 2 && got[2] == 6);
    paramo_snapshot_close(s);
    ok(paramo_stop(node));
}

/* A table that aggregates is copied as a reader sees it, with the pushes of a clock that goes on; one without rows
 * has none.
 */
static void aggregated_and_empty(void **state)
{
    (void)state;
    static const char *const both[] = {"sums", "nothing"};
    paramo_node *node = embedded_start(2);
    paramo_worker *w, *r;
    paramo_snapshot *s;
    paramo_table *t, *copy;
    paramo_table_options o;
    paramo_table_stats stats = {.size = sizeof stats};
    float vals[KEYS * DIM], seen[KEYS * DIM], got[KEYS * DIM];
    uint64_t clock;
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i;
    for (unsigned i = 0; i < KEYS * DIM; i++)
        vals[i] = (float)i / 4;
    ok(paramo_worker_open(node, 0, &w));
    ok(paramo_reader_open(node, 1, &r));
    paramo_table_options_init(&o);
    o.dim = DIM;
    o.optimizer = PARAMO_OPT_ADAGRAD;
    o.aggregate = PARAMO_AGGREGATE_SUM;
    ok(paramo_table_open(w, "sums", &o, &t));
    (void)open_table(w, "nothing", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    ok(paramo_clock_join(w, &clock));
    for (unsigned i = 0; i < 3; i++) { /* the last is of a clock that has not ended */
        request(paramo_push, w, t, KEYS, vals, KEYS * DIM, NULL);
        if (i < 2)
            ok(paramo_clock(w, &clock));
    }
    ok(paramo_table_open(r, "sums", NULL, &copy));
    request(paramo_pull, r, copy, KEYS, seen, KEYS * DIM, NULL);
    ok(paramo_snapshot_take(w, "s", both, 2, NULL, NULL));
    ok(paramo_snapshot_open(r, "s", &s));
    ok(paramo_snapshot_table(s, "sums", &copy));
    request(paramo_pull, r, copy, KEYS, got, KEYS * DIM, NULL);
    assert_memory_equal(got, seen, sizeof got);
    assert_true(got[KEYS] != 0);
    ok(paramo_snapshot_table(s, "nothing", &copy));
    ok(paramo_table_stat(r, copy, &stats));
    assert_int_equal(stats.rows, 0);
    paramo_snapshot_close(s);
    ok(paramo_stop(node));
}

/* ---- a reader beside a worker that pushes ---- */

struct trainer {
    paramo_node *node;
    atomic_bool over;
};

/* Each snapshot has one value in all rows. */
static void *trains(void *arg)
{
    static const char *const one[] = {"sparse"};
    struct trainer *x = arg;
    paramo_worker *w;
    float vals[KEYS * DIM];
    ok(paramo_worker_open(x->node, 1, &w));
    paramo_table *t = open_table(w, "sparse", PARAMO_TABLE_SPARSE, PARAMO_F32, PARAMO_OPT_ADD);
    for (unsigned i = 0; i < KEYS * DIM; i++)
        vals[i] = 1;
    for (unsigned i = 0; i < TAKES; i++) {
        request(paramo_push, w, t, KEYS, vals, KEYS * DIM, NULL);
        ok(paramo_snapshot_take(w, "s", one, 1, NULL, NULL));
        for (unsigned k = 0; k < 3; k++) /* it continues at once */
            request(paramo_push, w, t, KEYS, vals, KEYS * DIM, NULL);
    }
    paramo_worker_close(w);
    atomic_store(&x->over, true);
    return NULL;
}

static void beside_training(void **state)
{
    (void)state;
    struct cluster c;
    struct trainer x;
    pthread_t thread;
    paramo_node *node;
    paramo_worker *r;
    float got[KEYS * DIM];
    unsigned whole = 0;
    for (unsigned i = 0; i < KEYS; i++)
        keys[i] = i * (UINT64_MAX / KEYS);
    cluster_start_with(&c, 2, 1, copies);
    paramo_config config = c.workers[0].config;
    config.roles = PARAMO_ROLE_READER;
    ok(paramo_start(&config, &node));
    ok(paramo_reader_open(node, 0, &r));
    x = (struct trainer){.node = c.workers[0].node};
    assert_int_equal(pthread_create(&thread, NULL, trains, &x), 0);
    for (bool last = false; !last;) {
        paramo_snapshot *s;
        paramo_table *t;
        last = atomic_load(&x.over); /* one is read after the last was taken */
        paramo_err err = paramo_snapshot_open(r, "s", &s);
        if (err == PARAMO_E_NOT_FOUND && !last)
            continue;
        ok(err);
        ok(paramo_snapshot_table(s, "sparse", &t));
        request(paramo_pull, r, t, KEYS, got, KEYS * DIM, NULL);
        err = paramo_snapshot_check(s);
        for (unsigned i = 0; i < KEYS * DIM && err == PARAMO_OK; i++)
            assert_true(got[i] == (float)(4 * paramo_snapshot_number(s) - 3));
        whole += err == PARAMO_OK;
        if (err)
            assert_int_equal(err, PARAMO_E_NOT_FOUND);
        paramo_snapshot_close(s);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(whole > 0);
    paramo_worker_close(r);
    ok(paramo_stop_now(node));
    cluster_stop(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(embedded),
                                       cmocka_unit_test(over_tcp),
                                       cmocka_unit_test(wrong),
                                       cmocka_unit_test(in_a_namespace),
                                       cmocka_unit_test(a_failure_keeps_the_last),
                                       cmocka_unit_test(aggregated_and_empty),
                                       cmocka_unit_test(beside_training)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
