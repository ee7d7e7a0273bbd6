/* Requests for ranges of keys, through clients and shards: the values of each key once and in its place, on every
 * number of servers, when an owner dies in the middle and when partitions change owners; and no keys on the wire. */
#include <stdlib.h>
#include <string.h>

#include "filter/filter_chain.h"
#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"
#include "worker/waiting.h"

enum { DENSE, SPARSE, WIDE, LONG, VAR, USER, TABLES, ROWS = 150000, DIM = 3, LONG_DIM = 200000 };

static float vals[ROWS * DIM], got[ROWS * DIM];
static uint32_t lens[ROWS];

static void world_make(struct world *w, unsigned servers, unsigned replicas, uint64_t capabilities)
{
    world_init(w, true, 11);
    w->replicas = replicas;
    w->migrations = true;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    world_table(w, PARAMO_TABLE_DENSE, DIM)->rows = ROWS;
    world_table(w, PARAMO_TABLE_DENSE, LONG_DIM)->rows = 2;
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_table(w, PARAMO_TABLE_USER, 1);
    world_start(w, servers, servers, 1);
}

static paramo_err request(struct world *w, enum request_kind kind, unsigned table, uint64_t begin, size_t n,
                          float *values, size_t len, uint32_t flags)
{
    uint64_t ts;
    paramo_request_options o = {.size = sizeof o, .flags = flags};
    paramo_kv kv = {.size = sizeof kv, .n = n, .vals = values, .vals_len = len};
    kv.lens = table == VAR ? lens : NULL;
    struct client_call call = {
        .kind = kind, .table = &w->tables[table], .kv = &kv, .range = true, .begin = begin, .options = &o};
    paramo_err err = client_issue(w->clients[0].client, &call, &ts);
    return err ? err : world_wait(w, 0, ts);
}

static void fill(size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        vals[i] = (float)(i % 1000) * factor;
}

/* got[i] is vals[i] times a factor. */
static void check(size_t n, float factor)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != vals[i] * factor)
            fail_msg("value %zu is %g, not %g", i, got[i], vals[i] * factor);
}

static uint64_t sent(const struct world *w)
{
    struct client_counters c;
    client_get_counters(w->clients[0].client, &c);
    return c.bytes_sent;
}

static void dense_tables(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        fill(ROWS * DIM, 1);
        assert_ok(request(&w, REQUEST_PUSH, WIDE, 0, ROWS, vals, ROWS * DIM, PARAMO_COPY));
        assert_ok(request(&w, REQUEST_PULL, WIDE, 0, ROWS, got, ROWS * DIM, 0));
        check(ROWS * DIM, 1);
        memset(got, 0, sizeof got);
        assert_ok(request(&w, REQUEST_PULL, WIDE, 1001, 60001, got, 60001 * DIM, 0));
        assert_memory_equal(got, vals + 1001 * DIM, 60001 * DIM * sizeof *got);
        memcpy(got, vals, sizeof got);
        assert_ok(request(&w, REQUEST_PUSHPULL, WIDE, 0, ROWS, got, ROWS * DIM, 0));
        check(ROWS * DIM, 2);
        uint64_t keys[3] = {4, 77777, ROWS - 1}, ts; /* as other requests see it */
        assert_ok(world_pull(&w, 0, WIDE, keys, 3, got, 3 * DIM, &ts));
        assert_ok(world_wait(&w, 0, ts));
        for (unsigned i = 0; i < 3 * DIM; i++)
            assert_true(got[i] == 2 * vals[keys[i / DIM] * DIM + i % DIM]);
        assert_ok(request(&w, REQUEST_PUSH, LONG, 1, 1, vals, LONG_DIM, 0)); /* a row in several chunks */
        assert_ok(request(&w, REQUEST_PULL, LONG, 0, 2, got, 2 * LONG_DIM, 0));
        for (unsigned i = 0; i < 2 * LONG_DIM; i++)
            assert_true(got[i] == (i < LONG_DIM ? 0 : vals[i - LONG_DIM]));
        world_fini(&w);
    }
}

/* Pulled by keys, the same rows cost 8 bytes more each. */
static void no_keys_travel(void **state)
{
    (void)state;
    static uint64_t keys[ROWS];
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        uint64_t ts, before;
        world_make(&w, servers, 0, UINT64_MAX);
        for (unsigned table = DENSE; table <= SPARSE; table++) {
            for (size_t i = 0; i < ROWS; i++)
                keys[i] = i;
            assert_ok(request(&w, REQUEST_PUSH, table, 0, ROWS, vals, ROWS, 0));
            before = sent(&w);
            assert_ok(world_pull(&w, 0, table, keys, ROWS, got, ROWS, &ts));
            assert_ok(world_wait(&w, 0, ts));
            uint64_t with = sent(&w) - before;
            before = sent(&w);
            assert_ok(request(&w, REQUEST_PULL, table, 0, ROWS, got, ROWS, 0));
            uint64_t without = sent(&w) - before;
            assert_true(with > 8 * ROWS);
            /* keys that are mixed have a bit each for each server; a header takes 128 bytes */
            uint64_t bits = table == SPARSE && servers > 1 ? ROWS / 8 * servers : 0;
            if (without > bits + 100 * 256)
                fail_msg("table %u, %u servers: %llu bytes, %llu with keys", table, servers,
                         (unsigned long long)without, (unsigned long long)with);
        }
        world_fini(&w);
    }
}

static void other_tables(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        size_t total = 0;
        world_make(&w, servers, 0, UINT64_MAX);
        fill(ROWS, 1);
        assert_ok(request(&w, REQUEST_PUSH, SPARSE, UINT64_MAX - 69999, 70000, vals, 70000, 0));
        assert_ok(request(&w, REQUEST_PULL, SPARSE, UINT64_MAX - 79999, 80000, got, 80000, 0));
        for (size_t i = 0; i < 80000; i++)
            assert_true(got[i] == (i < 10000 ? 0 : vals[i - 10000]));
        for (size_t i = 0; i < 1000; i++)
            total += lens[i] = i % 4;
        assert_ok(request(&w, REQUEST_PUSH, VAR, 50, 1000, vals, total, 0));
        memset(lens, 0xff, sizeof lens);
        assert_ok(request(&w, REQUEST_PULL, VAR, 40, 1020, got, ROWS, 0));
        for (size_t i = 0; i < 1020; i++)
            assert_int_equal(lens[i], i < 10 || i >= 1010 ? 0 : (i - 10) % 4);
        check(total, 1);
        world_fini(&w);
    }
}

static void refused(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 0, UINT64_MAX);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, 1, ROWS, got, ROWS, 0), PARAMO_E_KEY_RANGE);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, 1, 7, got, 8, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(request(&w, REQUEST_PULL, DENSE, 0, (size_t)1 << 33, got, 8, 0), PARAMO_E_TOO_LARGE);
    world_fini(&w);
    world_make(&w, 2, 0, UINT64_MAX & ~CAPABILITY_RANGE);
    uint64_t key = 3, ts;
    fill(ROWS, 1);
    assert_int_equal(request(&w, REQUEST_PUSH, DENSE, 0, ROWS, vals, ROWS, 0), PARAMO_E_UNSUPPORTED);
    assert_ok(world_pull(&w, 0, DENSE, &key, 1, got, 1, &ts)); /* the connection stays open */
    assert_ok(world_wait(&w, 0, ts));
    assert_true(got[0] == 0);
    world_fini(&w);
}

/* Those that need the keys have them, and those of key lists leave them alone. */
static void filters(void **state)
{
    (void)state;
    static const char *const chains[] = {"keycache", "keycache,lz4", "fixed:2", "bf16"};
    for (unsigned i = 0; i < sizeof chains / sizeof *chains; i++) {
        struct world w;
        world_init(&w, true, 11);
        world_table(&w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
        world_table(&w, PARAMO_TABLE_SPARSE, 1);
        for (unsigned d = 0; d < FILTER_DIRECTIONS; d++)
            assert_ok(filter_chain_parse(chains[i], (enum filter_direction)d, &w.filters[d]));
        w.capabilities = UINT64_MAX;
        world_start(&w, 3, 3, 1);
        fill(ROWS, 0.5F);
        for (unsigned table = DENSE; table <= SPARSE; table++)
            for (unsigned again = 1; again <= 2; again++) {
                assert_ok(request(&w, REQUEST_PUSH, table, 0, ROWS, vals, ROWS, 0));
                assert_ok(request(&w, REQUEST_PULL, table, 0, ROWS, got, ROWS, 0));
                for (size_t k = 0; k < ROWS; k++)
                    assert_true(got[k] >= vals[k] * (float)again - 3 && got[k] <= vals[k] * (float)again + 3);
                if (i < 2)
                    check(ROWS, (float)again);
            }
        world_fini(&w);
    }
}

/* What the dead owner had passed on is done; the rest is done by its successor. */
static void an_owner_dies_amid(void **state)
{
    (void)state;
    unsigned amid = 0;
    for (uint64_t wait = 0; wait < 8; wait++) {
        struct world w;
        world_make(&w, 3, 1, UINT64_MAX);
        struct world_death e;
        unsigned table = wait % 2 ? SPARSE : DENSE;
        fill(ROWS, 1);
        assert_ok(request(&w, REQUEST_PUSH, table, 0, ROWS, vals, ROWS, 0)); /* connections are up */
        uint64_t began = sim_now(w.sim);
        assert_ok(request(&w, REQUEST_PUSH, table, 0, ROWS, vals, ROWS, 0));
        uint64_t took = sim_now(w.sim) - began;
        world_dies_in(&w, &e, 1, took * wait / 8 + 1);
        memcpy(got, vals, sizeof got);
        assert_ok(request(&w, REQUEST_PUSHPULL, table, 0, ROWS, got, ROWS, 0));
        amid += e.over;
        check(ROWS, 3);
        assert_ok(request(&w, REQUEST_PULL, table, 0, ROWS, got, ROWS, 0));
        check(ROWS, 3);
        world_pass(&w, ENV_SEC);
        world_fini(&w);
    }
    assert_true(amid > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense_tables), cmocka_unit_test(no_keys_travel),
                                       cmocka_unit_test(other_tables), cmocka_unit_test(refused),
                                       cmocka_unit_test(filters),      cmocka_unit_test(an_owner_dies_amid)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
