/* Requests of every kind through client and shards, in a simulation and over real lanes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "server/shard/deferred.h"
#include "server/shard/shard_impl.h"
#include "server/shard/slice.h"
#include "server/snapshot/load_state.h"
#include "worker/chunk.h"
#include "worker/client_impl.h"
#include "worker/requests.h"
#include "worker/scan.h"
#include "worker/support_world.h"

enum { DENSE = 0, SPARSE = 1, VAR = 2, USER = 3, BIG = 4 };

/* Answers a pull with key + position, a push by remembering the sum. */
static void echo(void *arg, struct shard_request *q, const struct shard_request_info *info)
{
    (void)arg;
    float *vals = malloc((info->n + 1) * sizeof *vals);
    for (size_t i = 0; i < info->n; i++)
        vals[i] = (float)info->keys[i] + (float)info->cmd;
    if (info->cmd == 99)
        assert_ok(shard_answer_error(q, PARAMO_E_HANDLER, "it was asked to fail"));
    else
        assert_ok(shard_answer(q, info->pull ? vals : NULL, info->pull ? info->n : 0, NULL));
    free(vals);
}

static size_t scan_keys;

static void world_make(struct world *w, bool simulated, unsigned servers)
{
    world_init(w, simulated, 42);
    w->scan_keys = scan_keys;
    world_table(w, PARAMO_TABLE_DENSE, 2)->rows = 100000;
    world_table(w, PARAMO_TABLE_SPARSE, 3);
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_USER, 1);
    world_table(w, PARAMO_TABLE_DENSE, 1 << 18)->rows = 5; /* rows of a MiB: cut inside */
    w->handler = echo;
    world_start(w, servers, servers, 1);
}

static void push_pull(struct world *w, unsigned table, size_t n, uint64_t step, uint32_t dim)
{
    uint64_t *keys = malloc(n * sizeof *keys);
    float *vals = malloc(n * dim * sizeof *vals), *out = calloc(n * dim, sizeof *out);
    for (size_t i = 0; i < n; i++)
        keys[i] = i * step;
    for (size_t i = 0; i < n * dim; i++)
        vals[i] = (float)(i % 1000);
    uint64_t ts;
    for (int round = 1; round <= 2; round++) {
        assert_ok(world_push(w, 0, table, keys, n, vals, n * dim, &ts));
        assert_ok(world_wait(w, 0, ts));
        assert_ok(world_pull(w, 0, table, keys, n, out, n * dim, &ts));
        assert_ok(world_wait(w, 0, ts));
        for (size_t i = 0; i < n * dim; i++)
            assert_true(out[i] == (float)round * vals[i]);
    }
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = out, .vals_len = n * dim};
    struct client_call call = {.kind = REQUEST_PUSHPULL, .table = &w->tables[table], .kv = &kv};
    assert_ok(client_issue(w->clients[0].client, &call, &ts));
    assert_ok(world_wait(w, 0, ts));
    for (size_t i = 0; i < n * dim; i++)
        assert_true(out[i] == 4 * vals[i]);
    free(keys);
    free(vals);
    free(out);
}

static void all_kinds(bool simulated, unsigned servers)
{
    struct world w;
    world_make(&w, simulated, servers);
    push_pull(&w, DENSE, 1, 1, 2);
    push_pull(&w, SPARSE, 1, 1, 3);
    world_fini(&w);
    world_make(&w, simulated, servers);
    push_pull(&w, DENSE, 50000, 2, 2);
    push_pull(&w, SPARSE, 30000, UINT64_C(614891469123651), 3);
    push_pull(&w, BIG, 5, 1, 1 << 18);
    world_fini(&w);
}

static void test_kinds_sim(void **state)
{
    (void)state;
    all_kinds(true, 1);
    all_kinds(true, 3);
}

static void test_kinds_inproc(void **state)
{
    (void)state;
    all_kinds(false, 1);
    all_kinds(false, 3);
}

static void test_edge_keys(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, true, 3);
    uint64_t keys[] = {0, 1, UINT64_MAX - 1, UINT64_MAX}, ts;
    float vals[12] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}, out[12] = {0};
    assert_ok(world_push(&w, 0, SPARSE, keys, 4, vals, 12, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_ok(world_pull(&w, 0, SPARSE, keys, 4, out, 12, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_memory_equal(vals, out, sizeof vals);
    assert_ok(world_push(&w, 0, SPARSE, NULL, 0, NULL, 0, &ts));
    assert_ok(world_wait(&w, 0, ts));
    world_fini(&w);
}

static void test_var(void **state)
{
    (void)state;
    enum { N = 2000 };
    struct world w;
    world_make(&w, true, 3);
    static uint64_t keys[N];
    static uint32_t lens[N], got_lens[N];
    static float vals[N * 20], got[N * 20];
    size_t total = 0;
    for (uint32_t i = 0; i < N; i++) {
        keys[i] = i * UINT64_C(1000003);
        lens[i] = i % 20;
        for (uint32_t k = 0; k < lens[i]; k++)
            vals[total++] = (float)(i + k);
    }
    uint64_t ts;
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = vals, .vals_len = total, .lens = lens};
    struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[VAR], .kv = &kv};
    struct client *c = w.clients[0].client;
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    kv.vals = got;
    kv.lens = got_lens;
    kv.vals_len = sizeof got / sizeof got[0];
    call.kind = REQUEST_PULL;
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_memory_equal(lens, got_lens, sizeof lens);
    assert_memory_equal(vals, got, total * sizeof vals[0]);
    kv.vals_len = total - 1;
    assert_ok(client_issue(c, &call, &ts));
    assert_int_equal(client_wait(c, ts, 0), PARAMO_E_SIZE_MISMATCH);
    world_fini(&w);
}

/* What was never issued is not waited for: what a push that failed has left in ts, and what is to come. */
static void test_wait_for_nothing(void **state)
{
    (void)state;
    for (int simulated = 0; simulated < 2; simulated++) {
        struct world w;
        world_make(&w, simulated, 3);
        struct client *c = w.clients[0].client;
        uint64_t key = 1, ts = 0, next;
        float out[3];
        int done = 7;
        paramo_kv kv = {.size = sizeof kv, .keys = &key, .n = 1, .vals = out, .vals_len = 9};
        struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[SPARSE], .kv = &kv};
        assert_int_equal(client_issue(c, &call, &ts), PARAMO_E_SIZE_MISMATCH);
        assert_int_equal(ts, 0);
        assert_int_equal(client_wait(c, ts, 0), PARAMO_E_INVALID);
        assert_int_equal(client_wait(c, ts, 10), PARAMO_E_INVALID);
        assert_int_equal(client_test(c, ts, &done), PARAMO_E_INVALID);
        assert_int_equal(client_wait(c, 1, 0), PARAMO_E_INVALID);
        assert_int_equal(client_cancel(c, ts), PARAMO_E_NOT_FOUND);
        assert_int_equal(done, 7);
        kv.vals_len = 3;
        assert_ok(client_issue(c, &call, &next));
        assert_int_equal(client_wait(c, ts, 0), PARAMO_E_INVALID);
        assert_int_equal(client_wait(c, next + 1, 0), PARAMO_E_INVALID);
        assert_ok(client_wait(c, next, 0));
        world_fini(&w);
    }
}

static void test_user(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, true, 3);
    struct client *c = w.clients[0].client;
    enum { N = 100 };
    uint64_t keys[N], ts;
    float out[N];
    uint32_t lens[N];
    for (unsigned i = 0; i < N; i++)
        keys[i] = 7 * (uint64_t)i;
    paramo_request_options o = {.size = sizeof o, .cmd = 5};
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = out, .vals_len = N};
    struct client_call call = {.kind = REQUEST_PULL, .table = &w.tables[USER], .kv = &kv, .options = &o};
    for (int with_lens = 0; with_lens < 2; with_lens++) {
        memset(out, 0, sizeof out);
        kv.lens = with_lens ? lens : NULL;
        assert_ok(client_issue(c, &call, &ts));
        assert_ok(client_wait(c, ts, 0));
        for (unsigned i = 0; i < N; i++)
            assert_true(out[i] == (float)(7 * i + 5));
    }
    assert_int_equal(lens[N - 1], 1);
    kv.lens = NULL;
    o.cmd = 99;
    assert_ok(client_issue(c, &call, &ts));
    assert_int_equal(client_wait(c, ts, 0), PARAMO_E_HANDLER);
    assert_non_null(strstr(err_text(), "it was asked to fail"));
    assert_non_null(strstr(err_text(), "server "));
    world_fini(&w);
}

struct rows {
    uint64_t last;
    size_t n;
    float sum;
    size_t stop;
};

static int take_rows(void *arg, const struct scan_rows *rows)
{
    struct rows *r = arg;
    const float *vals = rows->vals;
    size_t at = 0;
    for (size_t i = 0; i < rows->n; i++) {
        assert_true(r->n == 0 || rows->keys[i] > r->last);
        r->last = rows->keys[i];
        r->n++;
        size_t len = rows->lens ? rows->lens[i] : rows->row_values;
        for (size_t k = 0; k < len; k++)
            r->sum += vals[at++];
    }
    assert_int_equal(at, rows->vals_len);
    return r->stop && r->n >= r->stop;
}

/* Deletes the middle half of the keys when it is given the first rows. */
struct deletion {
    struct world *w;
    uint64_t *keys;
    size_t n, outside, inside;
    uint64_t last;
    bool done;
};

static int delete_rows(void *arg, const struct scan_rows *rows)
{
    struct deletion *d = arg;
    uint64_t ts, first = d->keys[d->n / 4], end = d->keys[3 * d->n / 4];
    for (size_t i = 0; i < rows->n; i++) {
        assert_true(d->outside + d->inside == 0 || rows->keys[i] > d->last);
        d->last = rows->keys[i];
        d->inside += d->last >= first && d->last < end;
        d->outside += d->last < first || d->last >= end;
    }
    if (d->done)
        return 0;
    d->done = true;
    paramo_kv kv = {.size = sizeof kv, .keys = d->keys + d->n / 4, .n = 3 * d->n / 4 - d->n / 4};
    struct client_call call = {.kind = REQUEST_DELETE, .table = &d->w->tables[SPARSE], .kv = &kv};
    assert_ok(client_issue(d->w->clients[0].client, &call, &ts));
    assert_ok(client_wait(d->w->clients[0].client, ts, 0));
    return 0;
}

static void whole_tables(void)
{
    enum { N = 70000 };
    struct world w;
    world_make(&w, true, 3);
    struct client *c = w.clients[0].client;
    uint64_t *keys = malloc(N * sizeof *keys), ts;
    float *vals = malloc(3 * N * sizeof *vals);
    for (size_t i = 0; i < N; i++)
        keys[i] = i * 11;
    for (size_t i = 0; i < 3 * N; i++)
        vals[i] = i % 3 ? 0 : 1;
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = N, .vals = vals, .vals_len = 3 * N};
    struct client_call call = {.kind = REQUEST_PUT, .table = &w.tables[SPARSE], .kv = &kv};
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));

    struct client_stats stats;
    struct client_call stat = {.kind = REQUEST_STAT, .table = &w.tables[SPARSE], .stats = &stats};
    assert_ok(client_issue(c, &stat, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_int_equal(stats.rows, N);
    assert_int_equal(stats.nonzero, N);

    struct rows rows = {0};
    assert_ok(scan_run(c, &w.tables[SPARSE], true, 0, take_rows, &rows));
    assert_int_equal(rows.n, N);
    assert_true(rows.sum == (float)N);
    rows = (struct rows){.stop = 5000};
    assert_int_equal(scan_run(c, &w.tables[SPARSE], false, 0, take_rows, &rows), PARAMO_E_INTERRUPTED);
    assert_true(rows.n < N);
    struct deletion d = {.w = &w, .keys = keys, .n = N};
    assert_ok(scan_run(c, &w.tables[SPARSE], false, 0, delete_rows, &d));
    assert_int_equal(d.outside, N - (3 * N / 4 - N / 4));
    assert_true(scan_keys != 999 || d.inside < N / 4); /* what had been fetched */
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    rows = (struct rows){0};
    assert_ok(scan_run(c, &w.tables[DENSE], false, 0, take_rows, &rows));
    assert_int_equal(rows.n, 100000);
    rows = (struct rows){0};
    assert_ok(scan_run(c, &w.tables[VAR], false, 0, take_rows, &rows));
    assert_int_equal(rows.n, 0);

    call.kind = REQUEST_DELETE;
    kv.n = N / 2;
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_ok(client_issue(c, &stat, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_int_equal(stats.rows, N - N / 2);
    struct client_call clear = {.kind = REQUEST_CLEAR, .table = &w.tables[SPARSE]};
    assert_ok(client_issue(c, &clear, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_ok(client_issue(c, &stat, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_int_equal(stats.rows, 0);

    /* a dense row that is deleted returns to what it was */
    uint64_t row = 99999;
    float two[2] = {3, 4}, back[2] = {9, 9};
    assert_ok(world_push(&w, 0, DENSE, &row, 1, two, 2, &ts));
    assert_ok(world_wait(&w, 0, ts));
    paramo_kv one = {.size = sizeof one, .keys = &row, .n = 1};
    struct client_call delete = {.kind = REQUEST_DELETE, .table = &w.tables[DENSE], .kv = &one};
    assert_ok(client_issue(c, &delete, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_ok(world_pull(&w, 0, DENSE, &row, 1, back, 2, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(back[0] == 0 && back[1] == 0);
    free(keys);
    free(vals);
    world_fini(&w);
}

/* In one page of keys, in many, and in some that a batch is a part of. */
static void test_whole_tables(void **state)
{
    (void)state;
    static const size_t pages[] = {0, 999, 30000};
    for (size_t i = 0; i < sizeof pages / sizeof *pages; i++) {
        scan_keys = pages[i];
        whole_tables();
    }
    scan_keys = 0;
}

static bool is_deferred(void *shard)
{
    return ((const struct shard *)shard)->deferred->count > 0;
}

static void restored(void *arg)
{
    struct shard *s = arg;
    s->loads->restoring = false;
    slice_resume_view_deferred(s);
}

/* A request that takes longer than an abandoned one is kept continues: if it began again each time, it would never
 * end. */
static void test_count_that_takes_long(void **state)
{
    (void)state;
    enum { N = 100 };
    struct world w;
    uint64_t keys[N], ts;
    float vals[N] = {0};
    for (size_t i = 0; i < N; i++)
        keys[i] = i * 7;
    world_init(&w, true, 42);
    w.scan_keys = 4;
    w.timeout_ms = 1000000;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    assert_ok(world_push(&w, 0, 0, keys, N, vals, N, &ts));
    assert_ok(world_wait(&w, 0, ts));
    struct shard *s = w.servers[0].shard;
    struct client_stats stats;
    struct client_call stat = {.kind = REQUEST_STAT, .table = &w.tables[0], .stats = &stats};
    assert_ok(client_issue(w.clients[0].client, &stat, &ts));
    assert_true(sim_run(w.sim, is_deferred, s, sim_now(w.sim) + ENV_SEC));
    s->loads->restoring = true; /* it is not handled again while that lasts */
    world_pass(&w, 5 * SHARD_VIEW_DEFERRED_SECONDS * ENV_SEC);
    assert_int_equal(s->deferred->count, 1);
    world_on_lane(w.servers[0].lane, restored, s);
    assert_ok(world_wait(&w, 0, ts));
    assert_int_equal(stats.rows, N);
    world_fini(&w);
}

static unsigned ended;

static void in_turn(void *arg, uint64_t ts, paramo_err status)
{
    (void)ts;
    assert_ok(status);
    *(unsigned *)arg = ++ended;
}

/* Counts of a large table, and after them a scan and a count of a small one: each has its turns, and these
 * are over first. */
static void test_counts_and_scans_take_turns(void **state)
{
    (void)state;
    enum { MANY = 4000, FEW = 20, LONG = 2, ALL = 4 };
    struct world w;
    static uint64_t keys[MANY];
    static const float vals[MANY];
    uint64_t ts;
    for (size_t i = 0; i < MANY; i++)
        keys[i] = i * 7;
    world_init(&w, true, 42);
    w.scan_keys = 8;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    struct client *c = w.clients[0].client;
    assert_ok(world_push(&w, 0, 0, keys, MANY, vals, MANY, &ts));
    assert_ok(world_push(&w, 0, 1, keys, FEW, vals, FEW, &ts));
    assert_ok(world_wait(&w, 0, ts));
    struct client_stats stats[ALL];
    struct scan_batch batch = {.id = 1};
    unsigned place[ALL] = {0};
    ended = 0;
    w.servers[0].shard->loads->restoring = true; /* all come before the first begins */
    for (unsigned i = 0; i < ALL; i++) {
        paramo_request_options o = {.size = sizeof o, .callback = in_turn, .callback_arg = &place[i]};
        struct client_call call = {.kind = i == LONG ? REQUEST_SCAN : REQUEST_STAT,
                                   .table = &w.tables[i >= LONG],
                                   .stats = i == LONG ? NULL : &stats[i],
                                   .batch = i == LONG ? &batch : NULL,
                                   .options = &o};
        assert_ok(client_issue(c, &call, &ts));
    }
    world_pass(&w, ENV_SEC);
    world_on_lane(w.servers[0].lane, restored, w.servers[0].shard);
    assert_ok(client_wait_all(c, 0));
    assert_int_equal(stats[0].rows, MANY);
    assert_int_equal(stats[3].rows, FEW);
    assert_in_range(batch.n, 1, FEW);
    for (unsigned i = LONG; i < ALL; i++)
        assert_in_range(place[i], 1, 2);
    free(batch.keys);
    free(batch.lens);
    free(batch.vals);
    world_fini(&w);
}

/* Two requests of one scan to a page whose rows are gone, as when a copy of the first comes late: each would lose for
 * the other how far it has come, forever. The latest one counts. */
static void test_a_late_copy_of_a_scan(void **state)
{
    (void)state;
    enum { N = 400, STEPS = 10000 };
    struct world w;
    static uint64_t keys[N];
    static const float vals[N];
    uint64_t ts;
    for (size_t i = 0; i < N; i++)
        keys[i] = i * 7;
    world_init(&w, true, 42);
    w.scan_keys = 8;
    world_table(&w, PARAMO_TABLE_SPARSE, 1);
    world_start(&w, 1, 1, 1);
    struct client *c = w.clients[0].client;
    struct shard *s = w.servers[0].shard;
    assert_ok(world_push(&w, 0, 0, keys, N, vals, N, &ts));
    assert_ok(world_wait(&w, 0, ts));
    struct scan_batch page = {.id = 1};
    struct client_call call = {.kind = REQUEST_SCAN, .table = &w.tables[0], .batch = &page};
    assert_ok(client_issue(c, &call, &ts));
    assert_ok(client_wait(c, ts, 0));
    assert_in_range(page.n, 1, N / 2);
    paramo_kv kv = {.size = sizeof kv, .keys = page.keys, .n = page.n};
    struct client_call delete = {.kind = REQUEST_DELETE, .table = &w.tables[0], .kv = &kv};
    assert_ok(client_issue(c, &delete, &ts));
    assert_ok(client_wait(c, ts, 0));
    struct scan_batch batch[2] = {{.id = 1}, {.id = 1, .cursor = page.keys[page.n - 1]}};
    uint64_t scans[2];
    int done = 0;
    s->loads->restoring = true; /* both come before the first begins */
    for (unsigned i = 0; i < 2; i++) {
        call.batch = &batch[i];
        assert_ok(client_issue(c, &call, &scans[i]));
    }
    world_pass(&w, ENV_SEC);
    world_on_lane(w.servers[0].lane, restored, s);
    for (unsigned i = 0; i < STEPS && !done; i++) {
        assert_true(sim_step(w.sim));
        assert_ok(client_test(c, scans[1], &done));
    }
    assert_true(done);
    assert_ok(client_wait(c, scans[1], 0));
    assert_true(batch[1].n > 0 && batch[1].keys[0] > batch[1].cursor);
    assert_ok(client_test(c, scans[0], &done));
    assert_false(done);
    assert_ok(client_cancel(c, scans[0]));
    free(page.keys);
    free(page.vals);
    free(batch[1].keys);
    free(batch[1].vals);
    world_fini(&w);
}

static void test_copy_and_callback(void **state);

struct called {
    unsigned count;
    paramo_err status;
    struct client *client;
    uint64_t ts;
};

static void on_done(void *arg, uint64_t ts, paramo_err status)
{
    struct called *called = arg;
    called->count++;
    called->status = status;
    called->ts = ts;
    int done = 1;
    assert_ok(client_test(called->client, ts, &done));
    assert_int_equal(done, 0); /* a waiter continues only after the callback */
    assert_int_equal(client_wait(called->client, ts, 0), PARAMO_E_IN_CALLBACK);
}

static void test_copy_and_callback(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, true, 2);
    struct client *c = w.clients[0].client;
    struct called called = {.client = c};
    for (size_t n = 1; n <= 5000; n *= 17) {
        uint64_t *keys = malloc(n * sizeof *keys), ts;
        float *vals = malloc(2 * n * sizeof *vals), *out = calloc(2 * n, sizeof *out);
        for (size_t i = 0; i < n; i++)
            keys[i] = 3 * i + n;
        for (size_t i = 0; i < 2 * n; i++)
            vals[i] = (float)i + 1;
        paramo_request_options o = {
            .size = sizeof o, .flags = PARAMO_COPY, .callback = on_done, .callback_arg = &called};
        paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n, .vals = vals, .vals_len = 2 * n};
        struct client_call clear = {.kind = REQUEST_CLEAR, .table = &w.tables[DENSE]};
        assert_ok(client_issue(c, &clear, &ts));
        assert_ok(client_wait(c, ts, 0));
        struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
        unsigned before = called.count;
        assert_ok(client_issue(c, &call, &ts));
        memset(keys, 0xff, n * sizeof *keys);
        memset(vals, 0xff, 2 * n * sizeof *vals);
        assert_ok(client_wait(c, ts, 0));
        assert_int_equal(called.count, before + 1);
        assert_int_equal(called.ts, ts);
        assert_int_equal(called.status, PARAMO_OK);
        for (size_t i = 0; i < n; i++)
            keys[i] = 3 * i + n;
        assert_ok(world_pull(&w, 0, DENSE, keys, n, out, 2 * n, &ts));
        assert_ok(world_wait(&w, 0, ts));
        for (size_t i = 0; i < 2 * n; i++)
            assert_true(out[i] == (float)i + 1);
        free(keys);
        free(vals);
        free(out);
    }
    world_fini(&w);
}

static paramo_err (*send_frame)(struct van_conn *conn, struct van_frame *frame);
static unsigned followed; /* frames that another one follows */

static paramo_err send_counted(struct van_conn *conn, struct van_frame *frame)
{
    followed += frame->more;
    return send_frame(conn, frame);
}

/* The van is told of each part of a request with PARAMO_MORE that another one follows. */
static void test_more(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, true, 2);
    struct client *c = w.clients[0].client;
    uint64_t keys[200], ts;
    float vals[400] = {0};
    for (size_t i = 0; i < 200; i++)
        keys[i] = 500 * i;
    assert_ok(world_push(&w, 0, DENSE, keys, 200, vals, 400, &ts)); /* connects to both servers */
    assert_ok(world_wait(&w, 0, ts));
    const struct van_ops *const real = w.clients[0].van->ops;
    struct van_ops counting = *real;
    send_frame = real->send;
    counting.send = send_counted;
    w.clients[0].van->ops = &counting;
    for (unsigned more = 0; more < 2; more++) {
        paramo_request_options o = {.size = sizeof o, .flags = more ? PARAMO_MORE : 0};
        paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = 200, .vals = vals, .vals_len = 400};
        struct client_call call = {.kind = REQUEST_PUSH, .table = &w.tables[DENSE], .kv = &kv, .options = &o};
        followed = 0;
        assert_ok(client_issue(c, &call, &ts));
        assert_ok(client_wait(c, ts, 0));
        assert_int_equal(followed, 2 * more);
    }
    w.clients[0].van->ops = real;
    world_fini(&w);
}

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__) || defined(__clang__)
enum { MANY = 100000 };
#else
enum { MANY = 1000000 };
#endif

/* A million requests leave no more memory behind than a thousand. */
static void test_memory_bounded(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, false, 1);
    struct client *c = w.clients[0].client;
    float vals[2] = {1, 1}, out[2];
    uint64_t key = 5, ts = 0;
    for (unsigned i = 0; i < MANY; i++) {
        assert_ok(world_push(&w, 0, DENSE, &key, 1, vals, 2, &ts));
        if (i % 64 == 63)
            assert_ok(world_wait(&w, 0, ts));
    }
    assert_ok(client_wait_all(c, 0));
    assert_ok(world_pull(&w, 0, DENSE, &key, 1, out, 2, &ts));
    assert_ok(world_wait(&w, 0, ts));
    assert_true(out[0] == MANY);
    assert_true(c->requests->free_count <= 128); /* about as many as were in flight */
    assert_int_equal(c->waiters->free_count, 0);
    assert_int_equal(c->pool.out, 0);
    assert_int_equal(atomic_load(&c->tracker.in_flight), 0);
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds_sim),
        cmocka_unit_test(test_kinds_inproc),
        cmocka_unit_test(test_edge_keys),
        cmocka_unit_test(test_var),
        cmocka_unit_test(test_wait_for_nothing),
        cmocka_unit_test(test_user),
        cmocka_unit_test(test_whole_tables),
        cmocka_unit_test(test_copy_and_callback),
        cmocka_unit_test(test_more),
        cmocka_unit_test(test_memory_bounded),
        cmocka_unit_test(test_count_that_takes_long),
        cmocka_unit_test(test_counts_and_scans_take_turns),
        cmocka_unit_test(test_a_late_copy_of_a_scan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
