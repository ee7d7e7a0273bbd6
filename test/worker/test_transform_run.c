/* Functions that change rows, through clients and shards: each row once, on every number of servers, with copies, when
 * an owner dies in the middle, and when partitions change owners. */
#include <stdlib.h>
#include <string.h>

#include "server/shard/shard_impl.h"
#include "server/shard/table_map.h"
#include "table/table.h"
#include "unit.h"
#include "wire/capability.h"
#include "worker/client_impl.h"
#include "worker/support_world.h"
#include "worker/transform_run.h"

enum { DENSE, SPARSE, SECOND, WIDE, VAR, TABLES, ROWS = 70000, SOME = 5000, STEP = 977 };

static uint64_t keys[ROWS];
static float vals[ROWS];

static void world_make(struct world *w, unsigned servers, unsigned replicas, uint64_t capabilities)
{
    world_init(w, true, 11);
    w->scan_keys = 999;
    w->replicas = replicas;
    w->migrations = true;
    w->capabilities = capabilities;
    world_table(w, PARAMO_TABLE_DENSE, 1)->rows = ROWS;
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    world_table(w, PARAMO_TABLE_SPARSE, 1);
    world_table(w, PARAMO_TABLE_DENSE, 3000)->rows = 300;
    world_table(w, PARAMO_TABLE_VAR, 1);
    world_start(w, servers, servers, 1);
}

static void push(struct world *w, unsigned table, uint64_t first, uint64_t step, size_t n, float value)
{
    uint64_t ts;
    for (size_t i = 0; i < n; i++) {
        keys[i] = first + i * step;
        vals[i] = value;
    }
    assert_ok(world_push(w, 0, table, keys, n, vals, n, &ts));
    assert_ok(world_wait(w, 0, ts));
}

static void pull(struct world *w, unsigned table, uint64_t first, uint64_t step, size_t n)
{
    uint64_t ts;
    for (size_t i = 0; i < n; i++)
        keys[i] = first + i * step;
    assert_ok(world_pull(w, 0, table, keys, n, vals, n, &ts));
    assert_ok(world_wait(w, 0, ts));
}

static paramo_err run_rows(struct world *w, unsigned table, int other, unsigned function, double a,
                           struct transform_rows rows)
{
    struct transform what = {.function = (uint8_t)function,
                             .two = other >= 0,
                             .other = other >= 0 ? w->tables[other].id : 0,
                             .a = a};
    return transform_run(w->clients[0].client, &w->tables[table], other >= 0 ? &w->tables[other] : NULL,
                         &what, &rows, 0);
}

static paramo_err run(struct world *w, unsigned table, int other, unsigned function, double a, uint64_t begin,
                      uint64_t end)
{
    return run_rows(w, table, other, function, a, (struct transform_rows){.begin = begin, .end = end});
}

/* Of n keys, `step` apart. */
static paramo_err run_list(struct world *w, unsigned table, int other, unsigned function, double a,
                           uint64_t first, uint64_t step, size_t n)
{
    static uint64_t list[ROWS];
    for (size_t i = 0; i < n; i++)
        list[i] = first + i * step;
    return run_rows(w, table, other, function, a, (struct transform_rows){.keys = list, .n = n});
}

static void dense(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        assert_ok(run(&w, DENSE, -1, PARAMO_TRANSFORM_ADD, 3, 0, 0)); /* in several parts */
        assert_ok(run(&w, DENSE, -1, PARAMO_TRANSFORM_SCALE, 2, 100, 40000));
        assert_ok(run(&w, DENSE, DENSE, PARAMO_TRANSFORM_AXPY, 1, ROWS - 1, ROWS + 5));
        pull(&w, DENSE, 0, 1, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            assert_true(vals[i] == (i >= 100 && i < 40000 ? 6 : i == ROWS - 1 ? 6 : 3));
        assert_ok(run(&w, WIDE, -1, PARAMO_TRANSFORM_FILL, 0.5, 10, 11));
        assert_int_equal(run(&w, DENSE, -1, PARAMO_TRANSFORM_SCALE, 1e300, 0, 0), PARAMO_E_NUMERIC);
        world_fini(&w);
    }
}

static void sparse(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, 0, UINT64_MAX);
        push(&w, SPARSE, 0, STEP, SOME, 1);
        push(&w, SECOND, 2 * STEP, 2 * STEP, SOME, 10);
        assert_ok(run(&w, SPARSE, -1, PARAMO_TRANSFORM_ADD, 4, STEP, 0)); /* only rows that exist */
        assert_ok(run(&w, SPARSE, SECOND, PARAMO_TRANSFORM_AXPY, 0.5, 0, 0));
        pull(&w, SPARSE, 0, STEP, 2 * SOME);
        for (size_t i = 0; i < 2 * SOME; i++)
            assert_true(vals[i] == (i == 0 ? 1 : i < SOME ? 5 : 0) + (i && i % 2 == 0 ? 5 : 0));
        assert_ok(run(&w, SECOND, SPARSE, PARAMO_TRANSFORM_COPY, 0, 0, 3 * STEP));
        pull(&w, SECOND, 0, STEP, 5);
        assert_true(vals[0] == 1 && vals[1] == 5 && vals[2] == 10 && vals[3] == 0 && vals[4] == 10);
        world_fini(&w);
    }
}

/* Only the rows of the list, in several parts; of a list of no keys, none. */
static void listed(void **state)
{
    (void)state;
    for (unsigned servers = 1; servers <= 3; servers++) {
        struct world w;
        world_make(&w, servers, servers > 1, UINT64_MAX);
        assert_ok(run_list(&w, DENSE, -1, PARAMO_TRANSFORM_FILL, 7, 1, 2, ROWS / 2));
        assert_ok(run_list(&w, DENSE, -1, PARAMO_TRANSFORM_FILL, 9, 0, 1, 0));
        pull(&w, DENSE, 0, 1, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            assert_true(vals[i] == (i % 2 ? 7 : 0));
        push(&w, SPARSE, 0, STEP, SOME, 1);
        push(&w, SECOND, 0, 3 * STEP, SOME, 10);
        assert_ok(run_list(&w, SPARSE, -1, PARAMO_TRANSFORM_SCALE, 2, STEP, STEP, 2 * SOME));
        struct shard_table *t = shard_table_get(w.servers[0].shard, w.tables[SPARSE].id);
        assert_true(table_rows(t->table) <= SOME); /* the keys without a row get none */
        assert_ok(run_list(&w, SPARSE, SECOND, PARAMO_TRANSFORM_AXPY, 1, 0, 2 * STEP, 2 * SOME));
        pull(&w, SPARSE, 0, STEP, 4 * SOME);
        for (size_t i = 0; i < 4 * SOME; i++)
            assert_true(vals[i] == (i < SOME ? 1 + (i > 0) : 0) + (i % 6 || i / 3 >= SOME ? 0 : 10));
        world_fini(&w);
    }
}

static void refused(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 2, 0, UINT64_MAX);
    assert_int_equal(run(&w, VAR, -1, PARAMO_TRANSFORM_FILL, 1, 0, 0), PARAMO_E_UNSUPPORTED);
    assert_int_equal(run(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 1, 5, 5), PARAMO_E_INVALID);
    push(&w, SPARSE, 0, 1, 3, 1);
    assert_int_equal(run(&w, SPARSE, DENSE, PARAMO_TRANSFORM_AXPY, 1, 0, 0), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(run(&w, SPARSE, -1, PARAMO_TRANSFORM_AXPY, 1, 0, 0), PARAMO_E_INVALID);
    assert_int_equal(run(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 1.0 / 0.0, 0, 0), PARAMO_E_INVALID);

    uint64_t list[] = {0, 2, 1, 1};
    struct transform_rows rows = {.keys = list, .n = 3};
    assert_int_equal(run_rows(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 8, rows), PARAMO_E_KEYS_UNSORTED);
    rows = (struct transform_rows){.keys = list + 2, .n = 2};
    assert_int_equal(run_rows(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 8, rows), PARAMO_E_KEYS_REPEATED);
    rows = (struct transform_rows){.keys = list, .n = 2, .end = 2};
    assert_int_equal(run_rows(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 8, rows), PARAMO_E_INVALID);
    rows = (struct transform_rows){.n = 2};
    assert_int_equal(run_rows(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 8, rows), PARAMO_E_INVALID);
    assert_int_equal(run_list(&w, DENSE, -1, PARAMO_TRANSFORM_FILL, 8, 0, 1, ROWS), PARAMO_OK);
    assert_int_equal(run_list(&w, DENSE, -1, PARAMO_TRANSFORM_ADD, 8, 1, 1, ROWS), PARAMO_E_KEY_RANGE);
    pull(&w, DENSE, 0, 1, ROWS);
    for (size_t i = 0; i < ROWS; i++)
        assert_true(vals[i] == 8); /* nothing of the refused list was changed */
    pull(&w, SPARSE, 0, 1, 3);
    assert_true(vals[0] == 1 && vals[1] == 1 && vals[2] == 1);
    world_fini(&w);
    world_make(&w, 2, 0, UINT64_MAX & ~CAPABILITY_TRANSFORM);
    push(&w, SPARSE, 0, 1, 3, 1);
    assert_int_equal(run(&w, SPARSE, -1, PARAMO_TRANSFORM_FILL, 2, 0, 0), PARAMO_E_UNSUPPORTED);
    assert_int_equal(run(&w, DENSE, -1, PARAMO_TRANSFORM_FILL, 2, 0, 0), PARAMO_E_UNSUPPORTED);
    pull(&w, SPARSE, 0, 1, 3); /* the connection stays open */
    assert_true(vals[0] == 1);
    world_fini(&w);
}

/* Parts that the dead owner had passed on are done; the others are done by its successor. */
static void an_owner_dies_amid(void **state)
{
    (void)state;
    unsigned amid = 0;
    for (uint64_t wait = 0; wait < 12; wait++) {
        struct world w;
        world_make(&w, 3, 1, UINT64_MAX);
        struct world_death e;
        assert_ok(run(&w, DENSE, -1, PARAMO_TRANSFORM_ADD, 1, 0, 0)); /* connections are up */
        uint64_t began = sim_now(w.sim);
        assert_ok(run(&w, DENSE, -1, PARAMO_TRANSFORM_ADD, 1, 0, 0));
        uint64_t took = sim_now(w.sim) - began;
        world_dies_in(&w, &e, 1, took * wait / 12 + 1);
        assert_ok(run(&w, DENSE, -1, PARAMO_TRANSFORM_ADD, 1, 0, 0));
        amid += e.over;
        pull(&w, DENSE, 0, 1, ROWS);
        for (size_t i = 0; i < ROWS; i++)
            assert_true(vals[i] == 3);
        world_pass(&w, ENV_SEC);
        world_fini(&w);
    }
    assert_true(amid > 3);
}

/* Copies have the same rows. */
static void copies(void **state)
{
    (void)state;
    struct world w;
    world_make(&w, 3, 2, UINT64_MAX);
    push(&w, SPARSE, 0, STEP, SOME, 1);
    assert_ok(run(&w, SPARSE, -1, PARAMO_TRANSFORM_SCALE, 3, 0, 0));
    for (unsigned s = 0; s < 3; s++) {
        struct shard_table *t = shard_table_get(w.servers[s].shard, w.tables[SPARSE].id);
        assert_int_equal(table_rows(t->table), SOME); /* each has all */
        for (size_t i = 0; i < SOME; i++)
            keys[i] = i * STEP;
        assert_ok(table_pull(t->table, keys, SOME, vals, false));
        for (size_t i = 0; i < SOME; i++)
            assert_true(vals[i] == 3);
    }
    world_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(dense),
                                       cmocka_unit_test(sparse),
                                       cmocka_unit_test(listed),
                                       cmocka_unit_test(refused),
                                       cmocka_unit_test(an_owner_dies_amid),
                                       cmocka_unit_test(copies)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
