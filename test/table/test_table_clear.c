/* A table that is cleared is empty at once. The memory of its rows is freed in steps, with new rows between. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/table.h"
#include "table/table_snapshot.h"

enum { N = 40000, DIM = 16, FEW = 100 };

static uint64_t keys[N];
static float vals[N * DIM];
static uint32_t lens[N];

/* Small rows, larger ones, rows of any length. */
static const paramo_table_options kinds[] = {
    {.size = sizeof(paramo_table_options), .kind = PARAMO_TABLE_SPARSE, .dim = 1},
    {.size = sizeof(paramo_table_options), .kind = PARAMO_TABLE_SPARSE, .dim = DIM},
    {.size = sizeof(paramo_table_options), .kind = PARAMO_TABLE_VAR, .dim = 1},
};
enum { KINDS = sizeof kinds / sizeof *kinds };

static struct table *made(size_t kind, const struct table_alloc *alloc)
{
    struct table *t;
    paramo_table_options options = kinds[kind];
    options.optimizer = kinds[kind].kind == PARAMO_TABLE_VAR ? PARAMO_OPT_ASSIGN : PARAMO_OPT_ADD;
    assert_int_equal(table_create(&options, 7, alloc, &t), PARAMO_OK);
    return t;
}

static void push(struct table *t, size_t n)
{
    bool var = table_get_options(t)->kind == PARAMO_TABLE_VAR;
    for (size_t i = 0; i < n; i++) {
        keys[i] = 3 * i;
        lens[i] = (uint32_t)(i % 5);
    }
    assert_int_equal(var ? table_var_push(t, keys, n, vals, lens) : table_push(t, keys, n, vals), PARAMO_OK);
    assert_int_equal(table_rows(t), n);
}

static void freed_in_steps(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct table *t = made(kind, NULL);
        size_t empty = table_get_stats(t).bytes, steps = 0;
        push(t, N);
        size_t full = table_get_stats(t).bytes;
        assert_true(table_clear_is_short(t));
        uint64_t generation = table_generation(t);
        table_clear(t);
        assert_int_equal(table_rows(t), 0);
        assert_true(table_generation(t) != generation);
        assert_true(table_get_stats(t).bytes >= full); /* it still counts */
        push(t, FEW);
        table_clear(t); /* once more, before all has been freed */
        push(t, FEW);
        for (size_t least = table_get_stats(t).bytes, bytes; table_clear_step(t); least = bytes) {
            bytes = table_get_stats(t).bytes;
            assert_true(bytes <= least);
            assert_int_equal(table_rows(t), FEW);
            steps++;
        }
        assert_true(steps >= 1);
        assert_true(table_get_stats(t).bytes - empty < full / 4);
        assert_false(table_clear_step(t));
        table_clear(t);
        push(t, N);
        table_clear(t);
        table_destroy(t); /* with what is not freed yet */
    }
}

/* Deleted rows return their memory slab by slab; with the last row all memory is returned. */
static void deleted_rows(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct table *t = made(kind, NULL);
        size_t empty = table_get_stats(t).bytes, removed;
        push(t, N);
        size_t full = table_get_stats(t).bytes;
        assert_int_equal(table_delete(t, keys, N - 1, &removed), PARAMO_OK);
        assert_int_equal(removed, N - 1);
        assert_false(table_clear_due(t));
        if (kinds[kind].kind == PARAMO_TABLE_SPARSE && kinds[kind].dim == DIM) /* the index stays */
            assert_true(table_get_stats(t).bytes < full / 2);
        assert_int_equal(table_delete(t, keys + N - 1, 1, &removed), PARAMO_OK);
        assert_true(table_clear_due(t));
        while (table_clear_step(t)) {
        }
        assert_false(table_clear_due(t));
        assert_true(table_get_stats(t).bytes - empty < (512 << 10));
        push(t, N);
        assert_int_equal(table_get_stats(t).rows, N);
        table_destroy(t);
    }
}

static void without_memory_at_once(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct failing_alloc f;
        failing_alloc_init(&f);
        struct table *t = made(kind, &f.alloc);
        push(t, FEW);
        f.fail_at = 1;
        table_clear(t);
        f.fail_at = 0;
        assert_int_equal(table_rows(t), 0);
        assert_false(table_clear_step(t));
        push(t, FEW);
        table_destroy(t);
        assert_int_equal(f.live_blocks, 0);
    }
}

static void take_row(void *arg, uint64_t key, const void *row, uint32_t values)
{
    (void)key;
    (void)row;
    (void)values;
    ++*(size_t *)arg;
}

/* Rows that an open snapshot needs are given out first. That takes long, and table_clear_is_short says so before. */
static void with_a_snapshot(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < KINDS; kind++) {
        struct table *t = made(kind, NULL);
        struct table_snapshot *snapshot;
        size_t given = 0;
        bool done = false;
        push(t, FEW);
        assert_int_equal(table_snapshot_open(t, TABLE_SNAPSHOT_ALL, true, take_row, &given, &snapshot),
                         PARAMO_OK);
        assert_false(table_clear_is_short(t));
        table_clear(t);
        assert_int_equal(given, FEW);
        assert_true(table_clear_is_short(t));
        assert_int_equal(table_snapshot_step(snapshot, SIZE_MAX / 16, &done), PARAMO_OK);
        assert_true(done);
        table_snapshot_close(snapshot);
        assert_false(table_changes_known(t));
        push(t, FEW);
        while (table_clear_step(t)) {
        }
        assert_int_equal(table_rows(t), FEW);
        table_destroy(t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(freed_in_steps),
        cmocka_unit_test(deleted_rows),
        cmocka_unit_test(without_memory_at_once),
        cmocka_unit_test(with_a_snapshot),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
