/* The public API on an embedded node and on nodes of one role over TCP: the same checks on both. */
#include "unit.h"

#include <math.h>
#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "paramo/tensors.h"
#include "support_cluster.h"

static paramo_kv kv_of(const uint64_t *keys, size_t n, void *vals, size_t vals_len)
{
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = vals_len;
    return kv;
}

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static paramo_table *open_table(paramo_worker *w, const char *name, paramo_table_kind kind, uint32_t dim)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = kind;
    o.dim = dim;
    o.rows = kind == PARAMO_TABLE_DENSE ? 100000 : 0;
    paramo_table *t = NULL;
    ok(paramo_table_open(w, name, &o, &t));
    return t;
}

static void push_now(paramo_worker *w, paramo_table *t, const paramo_kv *kv)
{
    uint64_t ts;
    ok(paramo_push(w, t, kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

static void pull_now(paramo_worker *w, paramo_table *t, const paramo_kv *kv)
{
    uint64_t ts;
    ok(paramo_pull(w, t, kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

/* ---- what a worker can do, on whatever cluster -------------------------------------------------------- */

static void sums_are_exact(paramo_worker *w)
{
    static const uint64_t keys[] = {0, 1, 77, UINT64_C(1) << 40, UINT64_MAX - 1, UINT64_MAX};
    enum { N = 6, DIM = 3 };
    paramo_table *t = open_table(w, "sums", PARAMO_TABLE_SPARSE, DIM);
    float add[N * DIM], got[N * DIM];
    for (int i = 0; i < N * DIM; i++)
        add[i] = (float)i;
    paramo_kv push = kv_of(keys, N, add, N * DIM), pull = kv_of(keys, N, got, N * DIM);
    uint64_t ts[32];
    for (int r = 0; r < 32; r++)
        ok(paramo_push(w, t, &push, NULL, &ts[r]));
    for (int r = 0; r < 32; r++)
        ok(paramo_wait(w, ts[r], 0));
    pull_now(w, t, &pull);
    for (int i = 0; i < N * DIM; i++)
        assert_true(got[i] == 32.0f * (float)i);
    ok(paramo_pushpull(w, t, &pull, NULL, &ts[0]));
    ok(paramo_wait(w, ts[0], 0));
    for (int i = 0; i < N * DIM; i++)
        assert_true(got[i] == 64.0f * (float)i);
    paramo_table_close(t);
    paramo_kv some = kv_of(keys, N, got, N * DIM);
    assert_int_equal(paramo_pull(w, t, &some, NULL, &ts[0]), PARAMO_E_CLOSED);
}

static void dense_ranges_stay_whole(paramo_worker *w)
{
    enum { N = 100000 };
    paramo_table *t = open_table(w, "dense", PARAMO_TABLE_DENSE, 2);
    uint64_t *keys = malloc(N * sizeof *keys);
    float *vals = malloc(2 * N * sizeof *vals), *got = malloc(2 * N * sizeof *got);
    for (uint64_t i = 0; i < N; i++) {
        keys[i] = i;
        vals[2 * i] = (float)i;
        vals[2 * i + 1] = -1 - (float)i; /* never -0: 0 + -0 is 0 */
    }
    paramo_kv push = kv_of(keys, N, vals, 2 * N), pull = kv_of(keys, N, got, 2 * N);
    push_now(w, t, &push);
    pull_now(w, t, &pull);
    assert_memory_equal(vals, got, 2 * N * sizeof *vals);
    keys[0] = N; /* out of range */
    paramo_kv beyond = kv_of(keys, 1, vals, 2);
    uint64_t ts;
    assert_int_equal(paramo_push(w, t, &beyond, NULL, &ts), PARAMO_E_KEY_RANGE);
    free(keys);
    free(vals);
    free(got);
}

static void mistakes_have_names(paramo_worker *w)
{
    paramo_table *t = open_table(w, "mistakes", PARAMO_TABLE_SPARSE, 2);
    uint64_t keys[] = {5, 3}, same[] = {5, 5}, fine[] = {3, 5};
    float vals[4] = {0};
    uint64_t ts = 0;
    paramo_kv kv = kv_of(keys, 2, vals, 4);
    assert_int_equal(paramo_push(w, t, &kv, NULL, &ts), PARAMO_E_KEYS_UNSORTED);
    kv = kv_of(same, 2, vals, 4);
    assert_int_equal(paramo_push(w, t, &kv, NULL, &ts), PARAMO_E_KEYS_REPEATED);
    kv = kv_of(fine, 2, vals, 3);
    assert_int_equal(paramo_push(w, t, &kv, NULL, &ts), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(paramo_pull(w, t, &kv, NULL, &ts), PARAMO_E_SIZE_MISMATCH);
    paramo_table *none;
    assert_int_equal(paramo_table_open(w, "no such table", NULL, &none), PARAMO_E_NO_TABLE);
    paramo_table_options other;
    paramo_table_info(t, &other);
    other.dim = 9;
    assert_int_equal(paramo_table_open(w, "mistakes", &other, &none), PARAMO_E_TABLE_EXISTS);
    assert_non_null(strstr(paramo_last_error(), "dim"));
    vals[0] = NAN;
    kv = kv_of(fine, 2, vals, 4);
    ok(paramo_push(w, t, &kv, NULL, &ts));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_NUMERIC);
    assert_int_equal(ts != 0, 1);
}

struct seen {
    atomic_uint calls;
    _Atomic uint64_t ts;
    atomic_int status;
    paramo_worker *worker;
    paramo_err waited;
};

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct seen *s = arg;
    s->waited = paramo_wait(s->worker, ts, 0); /* its own request: not possible in here */
    atomic_store(&s->ts, ts);
    atomic_store(&s->status, (int)status);
    atomic_fetch_add(&s->calls, 1);
}

static void callbacks_come_once(paramo_worker *w)
{
    paramo_table *t = open_table(w, "callbacks", PARAMO_TABLE_SPARSE, 1);
    uint64_t key = 9;
    float one = 1;
    struct seen s = {.worker = w};
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.callback = on_done;
    o.callback_arg = &s;
    o.flags = PARAMO_COPY;
    o.priority = 3;
    paramo_kv kv = kv_of(&key, 1, &one, 1);
    uint64_t ts;
    ok(paramo_push(w, t, &kv, &o, &ts));
    one = 100; /* COPY: ours again at once */
    ok(paramo_wait(w, ts, 0));
    while (atomic_load(&s.calls) == 0) {
    }
    assert_int_equal(atomic_load(&s.ts), ts);
    assert_int_equal(atomic_load(&s.status), PARAMO_OK);
    assert_int_equal(s.waited, PARAMO_E_IN_CALLBACK);
    int done = 0;
    ok(paramo_test(w, ts, &done));
    assert_int_equal(done, 1);
    assert_int_equal(paramo_cancel(w, ts), PARAMO_E_NOT_FOUND);
    kv.vals = &one;
    pull_now(w, t, &kv);
    assert_true(one == 1.0f);
    assert_int_equal(atomic_load(&s.calls), 1);
}

static void lengths_may_vary(paramo_worker *w)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_VAR;
    o.optimizer = PARAMO_OPT_ASSIGN;
    paramo_table *t = NULL;
    ok(paramo_table_open(w, "var", &o, &t));
    uint64_t keys[] = {2, 40, UINT64_MAX};
    uint32_t lens[] = {3, 0, 2}, got_lens[3];
    float vals[] = {1, 2, 3, 4, 5}, got[8];
    paramo_kv kv = kv_of(keys, 3, vals, 5);
    kv.lens = lens;
    push_now(w, t, &kv);
    kv = kv_of(keys, 3, got, 8);
    kv.lens = got_lens;
    pull_now(w, t, &kv);
    assert_memory_equal(lens, got_lens, sizeof lens);
    assert_memory_equal(vals, got, sizeof vals);
}

struct collected {
    uint64_t keys[64];
    float vals[256];
    size_t n;
    uint32_t row_values;
};

static int collect(void *arg, const paramo_rows *rows)
{
    struct collected *c = arg;
    assert_true(c->n + rows->n <= 64);
    memcpy(c->keys + c->n, rows->keys, rows->n * sizeof *rows->keys);
    memcpy(c->vals + c->n * rows->row_values, rows->vals, rows->n * rows->row_values * sizeof(float));
    c->n += rows->n;
    c->row_values = rows->row_values;
    return 0;
}

static void tables_are_saved_and_loaded(paramo_worker *w)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.optimizer = PARAMO_OPT_FTRL;
    o.dim = 1;
    paramo_table *t = NULL, *copy = NULL;
    ok(paramo_table_open(w, "saved", &o, &t));
    ok(paramo_table_open(w, "loaded", &o, &copy));
    uint64_t keys[40];
    float grad[40];
    for (uint64_t i = 0; i < 40; i++) {
        keys[i] = i * i * 1000003;
        grad[i] = (float)i - 20;
    }
    paramo_kv kv = kv_of(keys, 40, grad, 40);
    push_now(w, t, &kv);
    push_now(w, t, &kv);
    struct collected before = {0}, after = {0};
    ok(paramo_table_iterate(w, t, 1, collect, &before));
    assert_int_equal(before.n, 40);
    assert_int_equal(before.row_values, 1 + paramo_table_state_values(t));
    assert_memory_equal(before.keys, keys, sizeof keys);

    char path[] = "/tmp/paramo-node-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    (void)close(fd);
    ok(paramo_table_save(w, t, path, 1));
    paramo_tensors *file = NULL;
    ok(paramo_tensors_open(path, &file));
    paramo_tensor values;
    ok(paramo_tensors_get(file, "values", "F32", 2, &values));
    assert_int_equal(values.shape[0], 40);
    assert_int_equal(values.shape[1], 1);
    paramo_tensors_close(file);
    ok(paramo_table_load(w, copy, path));
    ok(paramo_table_iterate(w, copy, 1, collect, &after));
    assert_memory_equal(&before, &after, sizeof before);

    /* A file of another table is refused and changes nothing. */
    paramo_table *other = open_table(w, "other", PARAMO_TABLE_SPARSE, 2);
    assert_int_equal(paramo_table_load(w, other, path), PARAMO_E_FORMAT);
    paramo_table_stats stats = {.size = sizeof stats};
    ok(paramo_table_stat(w, other, &stats));
    assert_int_equal(stats.rows, 0);

    ok(paramo_table_stat(w, copy, &stats));
    assert_int_equal(stats.rows, 40);
    ok(paramo_table_delete(w, copy, keys, 10));
    ok(paramo_table_stat(w, copy, &stats));
    assert_int_equal(stats.rows, 30);
    ok(paramo_table_clear(w, copy));
    ok(paramo_table_stat(w, copy, &stats));
    assert_int_equal(stats.rows, 0);
    assert_int_equal(unlink(path), 0);
}

static void a_foreign_loop_can_poll(paramo_node *node)
{
    paramo_worker *w = NULL;
    ok(paramo_worker_open(node, 77, &w));
    paramo_worker *again;
    assert_int_equal(paramo_worker_open(node, 77, &again), PARAMO_E_INVALID);
    paramo_table *t = open_table(w, "polled", PARAMO_TABLE_SPARSE, 1);
    int fd;
    ok(paramo_worker_fd(w, &fd));
    struct seen s = {.worker = w};
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.callback = on_done;
    o.callback_arg = &s;
    uint64_t key = 1;
    float one = 1;
    paramo_kv kv = kv_of(&key, 1, &one, 1);
    for (unsigned i = 1; i <= 50; i++) {
        ok(paramo_push(w, t, &kv, &o, NULL));
        while (atomic_load(&s.calls) < i) {
            struct pollfd p = {.fd = fd, .events = POLLIN};
            assert_int_equal(poll(&p, 1, 30000), 1); /* a hang ends here */
            ok(paramo_worker_poll(w));
        }
        assert_int_equal(s.waited, PARAMO_E_IN_CALLBACK);
    }
    paramo_worker_close(w);
}

static void small_values_and_pools(paramo_node *node)
{
    double add[2] = {1, 2.5}, got[2];
    size_t len = 0;
    ok(paramo_kv_put(node, "name", "value", 5));
    char text[8];
    ok(paramo_kv_get(node, "name", text, sizeof text, &len, 0));
    assert_int_equal(len, 5);
    assert_memory_equal(text, "value", 5);
    assert_int_equal(paramo_kv_get(node, "name", text, 2, &len, 0), PARAMO_E_TOO_LARGE);
    assert_int_equal(paramo_kv_get(node, "never", text, 2, &len, 50), PARAMO_E_TIMEOUT);
    ok(paramo_kv_add(node, "sum", add, 2));
    ok(paramo_kv_add(node, "sum", add, 2));
    ok(paramo_kv_get(node, "sum", got, sizeof got, &len, 0));
    assert_true(got[0] == 2 && got[1] == 5);
    ok(paramo_pool_open(node, "files", 2, 2));
    for (uint32_t round = 0; round < 2; round++) {
        unsigned parts = 0;
        for (;;) {
            paramo_work_unit part;
            int state;
            ok(paramo_pool_next(node, "files", 0, round, 1000, &part, &state));
            if (state == 2)
                break;
            assert_int_equal(state, 0);
            assert_int_equal(part.round, round);
            if (part.index == 3 + part.stream) { /* stream 0 has 3 parts, stream 1 has 4 */
                ok(paramo_pool_end(node, "files", &part));
                continue;
            }
            parts++;
            ok(paramo_pool_done(node, "files", &part));
        }
        assert_int_equal(parts, 7);
    }
    ok(paramo_barrier(node, PARAMO_GROUP_WORKERS, 0, 0));
}

/* The same sender again: what it pushes is not taken for repeats. */
static void a_customer_can_be_opened_again(paramo_node *node)
{
    uint64_t key = 4;
    for (unsigned i = 1; i <= 20; i++) {
        paramo_worker *w = NULL;
        ok(paramo_worker_open(node, 33, &w));
        paramo_table *t = open_table(w, "again", PARAMO_TABLE_SPARSE, 1);
        float value = 1;
        paramo_kv kv = kv_of(&key, 1, &value, 1);
        push_now(w, t, &kv);
        pull_now(w, t, &kv);
        assert_true(value == (float)i);
        paramo_worker_close(w);
    }
}

static void everything_a_worker_does(paramo_node *node)
{
    paramo_worker *w = NULL;
    ok(paramo_worker_open(node, 0, &w));
    sums_are_exact(w);
    dense_ranges_stay_whole(w);
    mistakes_have_names(w);
    callbacks_come_once(w);
    lengths_may_vary(w);
    tables_are_saved_and_loaded(w);
    a_foreign_loop_can_poll(node);
    small_values_and_pools(node);
    a_customer_can_be_opened_again(node);
    paramo_counters counters = {.size = sizeof counters};
    paramo_worker_counters(w, &counters);
    assert_true(counters.requests > 32 && counters.in_flight == 0);
    paramo_worker_close(w);
}

static void embedded(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(2);
    assert_true(paramo_node_is(node, PARAMO_ROLE_WORKER));
    everything_a_worker_does(node);
    ok(paramo_stop(node));
}

static void over_tcp(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, 2, 1, NULL);
    paramo_node *node = c.workers[0].node;
    assert_int_equal(paramo_node_id(node), 9);
    assert_int_equal(paramo_node_id(c.scheduler.node), 1);
    assert_int_equal(paramo_node_id(c.servers[0].node) + paramo_node_id(c.servers[1].node), 8 + 10);
    assert_int_equal(paramo_num_servers(node), 2);
    assert_true(paramo_node_port(c.servers[0].node) > 0);
    everything_a_worker_does(node);
    cluster_stop(&c);
}

/* ---- several workers ---------------------------------------------------------------------------------- */

enum { SHARED_PUSHES = 300 };

static void *push_ones(void *arg)
{
    paramo_worker *w = NULL;
    paramo_node *node = arg;
    ok(paramo_worker_open(node, 5, &w));
    paramo_table *t = open_table(w, "shared", PARAMO_TABLE_SPARSE, 1);
    uint64_t keys[100];
    float ones[100];
    for (uint64_t i = 0; i < 100; i++) {
        keys[i] = i << 32;
        ones[i] = 1;
    }
    paramo_kv kv = kv_of(keys, 100, ones, 100);
    uint64_t ts;
    for (int i = 0; i < SHARED_PUSHES; i++)
        ok(paramo_push(w, t, &kv, NULL, &ts));
    ok(paramo_wait_all(w, 0));
    ok(paramo_barrier(node, PARAMO_GROUP_WORKERS, 5, 0));
    float got[100];
    kv.vals = got;
    pull_now(w, t, &kv);
    for (int i = 0; i < 100; i++)
        assert_true(got[i] == 3.0f * SHARED_PUSHES);
    ok(paramo_barrier(node, PARAMO_GROUP_WORKERS, 5, 0));
    paramo_worker_close(w);
    return NULL;
}

static void three_workers_share_a_table(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, 2, 3, NULL);
    pthread_t threads[3];
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, push_ones, c.workers[i].node), 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    cluster_stop(&c);
}

/* ---- request handlers --------------------------------------------------------------------------------- */

static void double_it(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    float doubled[16];
    if (info->cmd == 13) {
        ok(paramo_answer_error(request, PARAMO_E_HANDLER, "thirteen is refused"));
        return;
    }
    for (size_t i = 0; i < info->n; i++)
        doubled[i] = 2 * (float)info->keys[i] + ((const float *)info->vals)[i];
    ok(paramo_answer(request, doubled, info->n, NULL));
}

static void *answer_late(void *arg)
{
    float late = 7;
    ok(paramo_answer(arg, &late, 1, NULL));
    return NULL;
}

static pthread_t late_thread;

static void later(void *arg, paramo_request *request, const paramo_request_info *info)
{
    (void)arg;
    assert_int_equal(info->n, 1);
    assert_true(info->pull && !info->push);
    assert_int_equal(pthread_create(&late_thread, NULL, answer_late, request), 0);
}

static void set_handlers(paramo_node *node)
{
    ok(paramo_serve(node, "double", double_it, NULL));
    ok(paramo_serve(node, "later", later, NULL));
}

static void handlers_answer_now_or_later(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, 1, 1, set_handlers);
    paramo_worker *w = NULL;
    ok(paramo_worker_open(c.workers[0].node, 0, &w));
    paramo_table *t = open_table(w, "double", PARAMO_TABLE_USER, 1);
    uint64_t keys[] = {1, 10, 100};
    float vals[] = {0.5f, 0.25f, 0};
    paramo_kv kv = kv_of(keys, 3, vals, 3);
    uint64_t ts;
    ok(paramo_pushpull(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
    assert_true(vals[0] == 2.5f && vals[1] == 20.25f && vals[2] == 200);
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.cmd = 13;
    ok(paramo_push(w, t, &kv, &o, &ts));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_HANDLER);
    assert_non_null(strstr(paramo_last_error(), "thirteen is refused"));
    paramo_table *slow = open_table(w, "later", PARAMO_TABLE_USER, 1);
    kv = kv_of(keys, 1, vals, 1);
    pull_now(w, slow, &kv);
    assert_true(vals[0] == 7);
    assert_int_equal(pthread_join(late_thread, NULL), 0);
    paramo_table *nobody = open_table(w, "nobody", PARAMO_TABLE_USER, 1);
    ok(paramo_pull(w, nobody, &kv, NULL, &ts));
    assert_int_equal(paramo_wait(w, ts, 0), PARAMO_E_HANDLER);
    paramo_worker_close(w);
    cluster_stop(&c);
}

/* ---- beginnings and ends ------------------------------------------------------------------------------ */

static void a_scheduler_that_is_not_there(void **state)
{
    (void)state;
    paramo_config config;
    paramo_config_init(&config);
    config.roles = PARAMO_ROLE_WORKER;
    config.scheduler = "127.0.0.1:9"; /* discard: no process listens */
    config.connect_timeout_ms = 200;
    paramo_node *node = NULL;
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_NO_SCHEDULER);
    assert_non_null(strstr(paramo_last_error(), "127.0.0.1:9"));
    assert_null(node);
}

static void bad_settings_are_refused(void **state)
{
    (void)state;
    paramo_config config;
    paramo_node *node = NULL;
    paramo_config_init(&config);
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_INVALID); /* no role */
    config.roles = PARAMO_ROLE_SCHEDULER;
    config.listen = "0.0.0.0";
    config.port = 0;
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_INVALID); /* beyond loopback without a token */
    assert_non_null(strstr(paramo_last_error(), "token"));
    config.roles = PARAMO_ROLE_WORKER;
    config.van = "pigeon";
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "pigeon"));
    assert_int_equal(setenv("DMLC_NUM_SERVER", "many", 1), 0);
    paramo_config_init(&config);
    assert_int_equal(paramo_config_from_env(&config), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "DMLC_NUM_SERVER=many"));
    assert_int_equal(unsetenv("DMLC_NUM_SERVER"), 0);
}

static void a_wrong_token_is_refused(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, 1, 1, NULL);
    paramo_config config = c.workers[0].config;
    config.token = "not the token";
    paramo_node *node = NULL;
    assert_int_equal(paramo_start(&config, &node), PARAMO_E_TOKEN);
    cluster_stop(&c);
}

static void a_child_cannot_use_its_parents_node(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(1);
    paramo_worker *w = NULL;
    ok(paramo_worker_open(node, 0, &w));
    paramo_table *t = open_table(w, "t", PARAMO_TABLE_SPARSE, 1);
    pid_t child = fork();
    if (child == 0) {
        uint64_t key = 1, ts;
        float v = 1;
        paramo_kv kv = kv_of(&key, 1, &v, 1);
        bool refused = paramo_push(w, t, &kv, NULL, &ts) == PARAMO_E_FORKED &&
                       paramo_wait(w, 1, 0) == PARAMO_E_FORKED && paramo_stop(node) == PARAMO_E_FORKED;
        _exit(refused ? 0 : 1);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    paramo_worker_close(w);
    ok(paramo_stop(node));
}

static void shutdown_ends_every_node(void **state)
{
    (void)state;
    struct cluster c;
    cluster_start(&c, 1, 1, NULL);
    ok(paramo_shutdown(c.workers[0].node, "enough"));
    assert_int_equal(paramo_stop(c.servers[0].node), PARAMO_E_SHUTDOWN);
    assert_non_null(strstr(paramo_last_error(), "enough"));
    assert_int_equal(paramo_stop(c.workers[0].node), PARAMO_E_SHUTDOWN);
    assert_int_equal(paramo_stop(c.scheduler.node), PARAMO_E_SHUTDOWN);
}

static void starting_and_stopping_again_and_again(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        paramo_node *node = embedded_start(1 + (unsigned)i % 3);
        ok(paramo_stop(node));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(embedded),
        cmocka_unit_test(over_tcp),
        cmocka_unit_test(three_workers_share_a_table),
        cmocka_unit_test(handlers_answer_now_or_later),
        cmocka_unit_test(a_scheduler_that_is_not_there),
        cmocka_unit_test(bad_settings_are_refused),
        cmocka_unit_test(a_wrong_token_is_refused),
        cmocka_unit_test(a_child_cannot_use_its_parents_node),
        cmocka_unit_test(shutdown_ends_every_node),
        cmocka_unit_test(starting_and_stopping_again_and_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
