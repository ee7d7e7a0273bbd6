/* Tables that aggregate the pushes of a clock, by the public API: embedded, and over TCP with copies while partitions
 * move. The optimizer is applied once to what all workers have pushed, and the bits are the same in every run. */
#include <stdio.h>
#include <string.h>

#include "support_cluster.h"
#include "unit.h"

enum { KEYS = 40, DIM = 3, WORKERS = 3, CLOCKS = 12 };

static void ok(paramo_err err)
{
    if (err)
        (void)fprintf(stderr, "%s: %s\n", paramo_err_name(err), paramo_last_error());
    assert_int_equal(err, PARAMO_OK);
}

static paramo_table *open_table(paramo_worker *w, paramo_aggregate aggregate)
{
    paramo_table_options o;
    paramo_table *t = NULL;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_SPARSE;
    o.dim = DIM;
    o.optimizer = PARAMO_OPT_MOMENTUM;
    o.aggregate = aggregate;
    ok(paramo_table_open(w, "w", &o, &t));
    return t;
}

/* A worker pushes keys of its own beside those that all push. */
static size_t keys_of(unsigned worker, uint64_t keys[KEYS])
{
    size_t n = 0;
    for (uint64_t k = 0; k < KEYS; k++)
        if (k % 2 == 0 || k % WORKERS == worker)
            keys[n++] = k * UINT64_C(0x123456789abcdef);
    for (size_t i = 1; i < n; i++) /* they must ascend */
        for (size_t j = i; j && keys[j] < keys[j - 1]; j--) {
            uint64_t key = keys[j];
            keys[j] = keys[j - 1];
            keys[j - 1] = key;
        }
    return n;
}

/* Sums of these depend on the order in which floats are added. */
static float pushed(unsigned clock, unsigned worker, uint64_t key, unsigned column)
{
    uint64_t x = (key + clock * 977 + worker * 31 + column * 7) * UINT64_C(0x9e3779b97f4a7c15);
    return (float)((int64_t)(x >> 40) - (1 << 23)) * (worker == 0 ? 1.0f : 0x1p-20f);
}

static paramo_err push(paramo_worker *w, paramo_table *t, unsigned clock, unsigned worker, uint64_t *ts)
{
    uint64_t keys[KEYS];
    float vals[KEYS * DIM];
    size_t n = keys_of(worker, keys);
    for (size_t i = 0; i < n; i++)
        for (unsigned c = 0; c < DIM; c++)
            vals[i * DIM + c] = pushed(clock, worker, keys[i], c);
    paramo_kv kv;
    paramo_kv_init(&kv);
    paramo_request_options o;
    paramo_request_options_init(&o);
    o.flags = PARAMO_COPY;
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = n * DIM;
    return paramo_push(w, t, &kv, &o, ts);
}

static void pull(paramo_worker *w, paramo_table *t, float vals[KEYS * DIM])
{
    uint64_t keys[KEYS], ts;
    for (uint64_t k = 0; k < KEYS; k++)
        keys[k] = k;
    size_t n = 0;
    for (unsigned worker = 0; worker < WORKERS; worker++) { /* the union: all that is pushed */
        uint64_t own[KEYS];
        size_t some = keys_of(worker, own);
        for (size_t i = 0; i < some; i++) {
            size_t at = 0;
            while (at < n && keys[at] < own[i])
                at++;
            if (at < n && keys[at] == own[i])
                continue;
            memmove(keys + at + 1, keys + at, (n - at) * sizeof *keys);
            keys[at] = own[i];
            n++;
        }
    }
    assert_true(n <= KEYS);
    memset(vals, 0, sizeof(float) * KEYS * DIM);
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = keys;
    kv.n = n;
    kv.vals = vals;
    kv.vals_len = n * DIM;
    ok(paramo_pull(w, t, &kv, NULL, &ts));
    ok(paramo_wait(w, ts, 0));
}

/* Each worker pushes, in the order of `turn`, and ends its iteration. The last one to push reads before it does:
 * nothing of this clock. */
static void one_clock(paramo_worker *const w[WORKERS], paramo_table *const t[WORKERS], unsigned count,
                      unsigned clock, unsigned turn, float seen[KEYS * DIM])
{
    float before[KEYS * DIM], early[KEYS * DIM];
    pull(w[0], t[0], before);
    for (unsigned i = 0; i < count; i++) {
        unsigned k = (i + turn) % count;
        uint64_t ts;
        if (i + 1 == count) {
            pull(w[k], t[k], early);
            assert_memory_equal(early, before, sizeof early);
        }
        ok(push(w[k], t[k], clock, k, &ts));
        ok(paramo_wait(w[k], ts, 0));
        ok(paramo_clock(w[k], NULL));
    }
    for (unsigned k = 0; k < count; k++) {
        paramo_clock_info info = {.size = sizeof info};
        paramo_clock_get(w[k], &info);
        ok(paramo_clock_wait(w[k], info.clock, 0));
        pull(w[k], t[k], k ? early : seen);
        if (k)
            assert_memory_equal(early, seen, sizeof early);
    }
}

static void join_all(paramo_worker *const w[WORKERS])
{
    for (unsigned k = 0; k < WORKERS; k++)
        ok(paramo_clock_join(w[k], NULL));
    for (unsigned k = 0; k < WORKERS; k++) /* each hears how many there are */
        ok(paramo_clock(w[k], NULL));
    for (unsigned k = 0; k < WORKERS; k++)
        ok(paramo_clock_wait(w[k], 1, 0));
}

static void run_embedded(unsigned servers, paramo_aggregate aggregate, unsigned turn, float vals[KEYS * DIM])
{
    paramo_node *node = embedded_start(servers);
    paramo_worker *w[WORKERS];
    paramo_table *t[WORKERS];
    for (unsigned k = 0; k < WORKERS; k++) {
        ok(paramo_worker_open(node, k, &w[k]));
        t[k] = open_table(w[k], aggregate);
    }
    join_all(w);
    for (unsigned clock = 0; clock < CLOCKS; clock++)
        one_clock(w, t, WORKERS, clock, clock * turn, vals);
    ok(paramo_stop(node));
}

static void same_bits(void **state)
{
    (void)state;
    float a[KEYS * DIM], b[KEYS * DIM], mean[KEYS * DIM];
    run_embedded(1, PARAMO_AGGREGATE_SUM, 0, a);
    run_embedded(2, PARAMO_AGGREGATE_SUM, 1, b);
    assert_memory_equal(a, b, sizeof a);
    run_embedded(1, PARAMO_AGGREGATE_MEAN, 2, mean);
    /* Momentum is linear: the mean of three moves a third as far. */
    for (size_t i = 0; i < KEYS * DIM; i++)
        assert_true(a[i] == 0 ? mean[i] == 0
                              : mean[i] / a[i] > 0.33333f * 0.999f && mean[i] / a[i] < 0.33334f * 1.001f);
}

static void configure(paramo_config *config)
{
    config->replicas = 1;
}

static void over_tcp(void **state)
{
    (void)state;
    float want[KEYS * DIM], got[KEYS * DIM];
    run_embedded(1, PARAMO_AGGREGATE_MEAN, 0, want);
    struct cluster c;
    cluster_start_with(&c, 2, WORKERS, configure);
    paramo_worker *w[WORKERS];
    paramo_table *t[WORKERS];
    for (unsigned k = 0; k < WORKERS; k++) {
        ok(paramo_worker_open(c.workers[k].node, 0, &w[k]));
        t[k] = open_table(w[k], PARAMO_AGGREGATE_MEAN);
    }
    join_all(w);
    for (unsigned clock = 0; clock < CLOCKS; clock++) {
        if (clock == CLOCKS / 2) /* partitions move to it while the rest goes on */
            cluster_add_server(&c);
        one_clock(w, t, WORKERS, clock, clock, got);
    }
    assert_memory_equal(got, want, sizeof want);
    cluster_stop(&c);
}

/* What is refused, and which workers count for a mean while workers join and leave. */
static void members(void **state)
{
    (void)state;
    paramo_node *node = embedded_start(1);
    paramo_worker *w[WORKERS];
    paramo_table *t[WORKERS];
    float vals[KEYS * DIM], before[KEYS * DIM];
    uint64_t ts, key = 5;
    for (unsigned k = 0; k < WORKERS; k++) {
        ok(paramo_worker_open(node, k, &w[k]));
        t[k] = open_table(w[k], PARAMO_AGGREGATE_MEAN);
    }
    assert_int_equal(push(w[0], t[0], 0, 0, &ts), PARAMO_E_INVALID);
    assert_non_null(strstr(paramo_last_error(), "paramo_clock_join"));
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = &key;
    kv.n = 1;
    kv.vals = vals;
    kv.vals_len = DIM;
    ok(paramo_clock_join(w[0], NULL));
    assert_int_equal(paramo_pushpull(w[0], t[0], &kv, NULL, &ts), PARAMO_E_UNSUPPORTED);
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.kind = PARAMO_TABLE_DENSE;
    o.rows = 4;
    o.aggregate = PARAMO_AGGREGATE_SUM;
    paramo_table *bad;
    assert_int_equal(paramo_table_open(w[0], "dense", &o, &bad), PARAMO_E_INVALID);

    /* With one worker a step is -0.1 g; with two, half of it for each. */
    for (unsigned c = 0; c < DIM; c++)
        vals[c] = 8;
    for (unsigned count = 1; count <= WORKERS; count++) {
        float got[DIM], v = 0;
        paramo_kv out = kv;
        out.vals = got;
        key = 100 + count;
        for (unsigned k = 0; k < count; k++) {
            ok(paramo_push(w[k], t[k], &kv, NULL, &ts));
            ok(paramo_wait(w[k], ts, 0));
            ok(paramo_clock(w[k], NULL));
        }
        paramo_clock_info info = {.size = sizeof info};
        paramo_clock_get(w[0], &info);
        for (unsigned k = 0; k < count; k++)
            ok(paramo_clock_wait(w[k], info.clock, 0));
        paramo_clock_get(w[0], &info);
        assert_int_equal(info.workers, count);
        ok(paramo_pull(w[0], t[0], &out, NULL, &ts));
        ok(paramo_wait(w[0], ts, 0));
        v = 0.1f * 8;
        for (unsigned c = 0; c < DIM; c++)
            assert_true(got[c] > -v * 1.0001f && got[c] < -v * 0.9999f);
        if (count < WORKERS) { /* one more, from the next iteration on: all hear of it when that begins */
            ok(paramo_clock_join(w[count], NULL));
            for (unsigned k = 0; k <= count; k++)
                ok(paramo_clock(w[k], NULL));
            for (unsigned k = 0; k <= count; k++)
                ok(paramo_clock_wait(w[k], info.clock + 1, 0));
        }
    }
    /* A worker that leaves amid an iteration: what it has pushed counts, once. */
    key = 200;
    ok(paramo_push(w[2], t[2], &kv, NULL, &ts));
    ok(paramo_wait(w[2], ts, 0));
    ok(paramo_clock_leave(w[2]));
    for (unsigned k = 0; k < 2; k++)
        ok(paramo_clock(w[k], NULL));
    paramo_clock_info info = {.size = sizeof info};
    paramo_clock_get(w[0], &info);
    ok(paramo_clock_wait(w[0], info.clock, 0));
    kv.vals = before;
    ok(paramo_pull(w[0], t[0], &kv, NULL, &ts));
    ok(paramo_wait(w[0], ts, 0));
    float third = -0.1f * 8 / 3;
    assert_true(before[0] < third * 0.9999f && before[0] > third * 1.0001f);
    /* It reads without a clock: all that has come. */
    kv.vals = vals;
    ok(paramo_pull(w[2], t[2], &kv, NULL, &ts));
    ok(paramo_wait(w[2], ts, 0));
    assert_memory_equal(vals, before, DIM * sizeof *vals);
    ok(paramo_stop(node));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members),
        cmocka_unit_test(same_bits),
        cmocka_unit_test(over_tcp),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
