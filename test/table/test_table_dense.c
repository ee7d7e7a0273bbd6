/* Dense tables: runs, their borders, keys of other shards, all types, and pushes across everything. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support_reference.h"
#include "table/table.h"

static struct table *make(paramo_optimizer optimizer, paramo_dtype dtype, uint32_t dim, uint64_t rows,
                          const struct table_alloc *alloc)
{
    paramo_table_options o;
    table_options_default(&o);
    o.kind = PARAMO_TABLE_DENSE;
    o.optimizer = optimizer;
    o.dtype = dtype;
    o.dim = dim;
    o.rows = rows;
    struct table *t;
    assert_int_equal(table_create(&o, 0, alloc, &t), PARAMO_OK);
    return t;
}

static void only_keys_that_are_held_are_taken(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_ADD, PARAMO_F32, 1, 100, NULL);
    uint64_t keys[] = {10, 11, 12, 30};
    float vals[] = {1, 2, 3, 4};
    assert_int_equal(table_push(t, keys, 1, vals), PARAMO_E_MOVED);
    assert_int_equal(table_dense_own(t, 30, 5), PARAMO_OK);
    assert_int_equal(table_dense_own(t, 10, 3), PARAMO_OK);
    assert_int_equal(table_rows(t), 8);
    assert_int_equal(table_push(t, keys, 4, vals), PARAMO_OK);
    float out[4];
    assert_int_equal(table_pull(t, keys, 4, out, false), PARAMO_OK);
    assert_memory_equal(out, vals, sizeof vals);
    /* a key that is not held: nothing changes, at any place of it in the request */
    static const uint64_t others[] = {0, 9, 13, 29, 35, 99};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        uint64_t some[2] = {10, others[i]};
        if (others[i] < 10) {
            some[0] = others[i];
            some[1] = 10;
        }
        assert_int_equal(table_push(t, some, 2, vals), PARAMO_E_MOVED);
        assert_int_equal(table_pull(t, some, 2, out, true), PARAMO_E_MOVED);
        assert_int_equal(table_push_columns(t, &others[i], 1, 0, 1, vals), PARAMO_E_MOVED);
        uint32_t rows[2];
        assert_int_equal(table_resolve(t, some, 2, rows, false), PARAMO_E_MOVED);
    }
    static const uint64_t beyond[] = {100, UINT64_MAX};
    for (size_t i = 0; i < 2; i++) {
        uint64_t some[2] = {10, beyond[i]};
        assert_int_equal(table_push(t, some, 2, vals), PARAMO_E_KEY_RANGE);
        assert_int_equal(table_get_rows(t, some, 2, true, out), PARAMO_E_KEY_RANGE);
        assert_int_equal(table_put_rows(t, some, 2, true, vals), PARAMO_E_KEY_RANGE);
    }
    assert_int_equal(table_pull(t, keys, 1, out, false), PARAMO_OK);
    assert_true(out[0] == 1);
    uint64_t *all;
    size_t n;
    assert_int_equal(table_sorted_keys(t, &all, &n), PARAMO_OK);
    static const uint64_t expected[] = {10, 11, 12, 30, 31, 32, 33, 34};
    assert_int_equal(n, 8);
    assert_memory_equal(all, expected, sizeof expected);
    free(all);
    table_destroy(t);
}

static void runs_may_not_overlap_or_leave_the_table(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_FTRL, PARAMO_F32, 2, 100, NULL);
    assert_int_equal(table_dense_own(t, 20, 10), PARAMO_OK);
    assert_int_equal(table_dense_own(t, 29, 1), PARAMO_E_INVALID);
    assert_int_equal(table_dense_own(t, 20, 1), PARAMO_E_INVALID);
    assert_int_equal(table_dense_own(t, 15, 6), PARAMO_E_INVALID);
    assert_int_equal(table_dense_own(t, 0, 100), PARAMO_E_INVALID);
    assert_int_equal(table_dense_own(t, 25, 2), PARAMO_E_INVALID);
    assert_int_equal(table_dense_own(t, 0, 0), PARAMO_E_KEY_RANGE);
    assert_int_equal(table_dense_own(t, 100, 1), PARAMO_E_KEY_RANGE);
    assert_int_equal(table_dense_own(t, 99, 2), PARAMO_E_KEY_RANGE);
    assert_int_equal(table_dense_own(t, 50, UINT64_MAX), PARAMO_E_KEY_RANGE);
    assert_int_equal(table_dense_own(t, 0, 20), PARAMO_OK);
    assert_int_equal(table_dense_own(t, 30, 70), PARAMO_OK);
    assert_int_equal(table_rows(t), 100);
    table_destroy(t);
}

/* All rows at once, across many runs, against the slow reference, and then every other key. */
static void many_runs_are_one_table(void **state)
{
    (void)state;
    enum { ROWS = 1000, RUN = 13, DIM = 3 };
    struct table *t = make(PARAMO_OPT_ADAM, PARAMO_F32, DIM, ROWS, NULL);
    for (uint64_t first = 0; first < ROWS; first += RUN) {
        uint64_t count = ROWS - first < RUN ? ROWS - first : RUN;
        assert_int_equal(table_dense_own(t, first, count), PARAMO_OK);
    }
    static float model[ROWS][3 * DIM + 1];
    static uint64_t keys[ROWS];
    static float g[ROWS * DIM];
    static float out[ROWS * DIM];
    uint64_t seed = 21;
    for (unsigned round = 0; round < 12; round++) {
        size_t n = 0;
        for (uint64_t key = 0; key < ROWS; key += 1 + round % 3) {
            keys[n++] = key;
        }
        for (size_t i = 0; i < n * DIM; i++) {
            g[i] = draw_float(&seed);
        }
        assert_int_equal(table_push(t, keys, n, g), PARAMO_OK);
        assert_int_equal(table_pull(t, keys, n, out, false), PARAMO_OK);
        for (size_t i = 0; i < n; i++) {
            reference_push(table_get_options(t), model[keys[i]], g + i * DIM);
            assert_memory_equal(out + i * DIM, model[keys[i]], DIM * sizeof *out);
        }
    }
    table_destroy(t);
}

static void a_wide_row_in_parts_is_a_row(void **state)
{
    (void)state;
    enum { DIM = 10000 };
    struct table *whole = make(PARAMO_OPT_ADAGRAD, PARAMO_F32, DIM, 2, NULL);
    struct table *parts = make(PARAMO_OPT_ADAGRAD, PARAMO_F32, DIM, 2, NULL);
    assert_int_equal(table_dense_own(whole, 0, 2), PARAMO_OK);
    assert_int_equal(table_dense_own(parts, 0, 2), PARAMO_OK);
    static float g[DIM];
    static float a[DIM];
    static float b[DIM];
    uint64_t seed = 2;
    uint64_t key = 1;
    for (unsigned round = 0; round < 5; round++) {
        for (size_t i = 0; i < DIM; i++) {
            g[i] = draw_float(&seed);
        }
        assert_int_equal(table_push(whole, &key, 1, g), PARAMO_OK);
        for (uint32_t col = 0, n; col < DIM; col += n) {
            n = (uint32_t)(1 + draw(&seed) % 999);
            n = n < DIM - col ? n : DIM - col;
            assert_int_equal(table_push_columns(parts, &key, 1, col, n, g + col), PARAMO_OK);
        }
    }
    assert_int_equal(table_pull(whole, &key, 1, a, false), PARAMO_OK);
    for (uint32_t col = 0; col < DIM; col += 2500) {
        assert_int_equal(table_pull_columns(parts, &key, 1, col, 2500, b + col, false), PARAMO_OK);
    }
    assert_memory_equal(a, b, sizeof a);
    table_destroy(whole);
    table_destroy(parts);
}

static void every_type_is_kept(void **state)
{
    (void)state;
    uint64_t keys[] = {0, 1, 2};
    struct table *t = make(PARAMO_OPT_ADD, PARAMO_U8, 1, 3, NULL);
    assert_int_equal(table_dense_own(t, 0, 3), PARAMO_OK);
    uint8_t u[] = {200, 0, 3};
    assert_int_equal(table_push(t, keys, 3, u), PARAMO_OK);
    assert_int_equal(table_push(t, keys, 3, u), PARAMO_OK);
    assert_int_equal(table_pull(t, keys, 3, u, false), PARAMO_OK);
    assert_true(u[0] == 144 && u[1] == 0 && u[2] == 6);
    assert_int_equal(count_nonzero(t), 2);
    table_destroy(t);
    t = make(PARAMO_OPT_ADD, PARAMO_F64, 1, 3, NULL);
    assert_int_equal(table_dense_own(t, 0, 3), PARAMO_OK);
    double d[] = {1e300, -0.0, 1};
    double out[3];
    assert_int_equal(table_put_rows(t, keys, 3, true, d), PARAMO_OK);
    assert_int_equal(table_get_rows(t, keys, 3, true, out), PARAMO_OK);
    assert_memory_equal(out, d, sizeof d);
    assert_int_equal(count_nonzero(t), 2);
    table_clear(t);
    assert_int_equal(count_nonzero(t), 0);
    d[1] = (double)INFINITY;
    assert_int_equal(table_push(t, keys, 3, d), PARAMO_E_NUMERIC);
    assert_int_equal(count_nonzero(t), 0);
    table_destroy(t);
    t = make(PARAMO_OPT_ASSIGN, PARAMO_I64, 1, 3, NULL);
    assert_int_equal(table_dense_own(t, 0, 3), PARAMO_OK);
    int64_t in[] = {INT64_MIN, 0, INT64_MAX};
    int64_t back[3];
    assert_int_equal(table_push(t, keys, 3, in), PARAMO_OK);
    assert_int_equal(table_pull(t, keys, 3, back, false), PARAMO_OK);
    assert_memory_equal(in, back, sizeof in);
    table_destroy(t);
}

static void without_memory_no_run_is_added(void **state)
{
    (void)state;
    struct failing_alloc f;
    failing_alloc_init(&f);
    struct table *t = make(PARAMO_OPT_ADAM, PARAMO_F32, 2, 1000, &f.alloc);
    size_t blocks = f.live_blocks;
    for (size_t at = 1;; at++) {
        f.fail_at = at;
        paramo_err err = table_dense_own(t, 0, 1000);
        f.fail_at = 0;
        if (err == PARAMO_OK) {
            break;
        }
        assert_int_equal(err, PARAMO_E_MEMORY);
        assert_int_equal(table_rows(t), 0);
        assert_true(f.live_blocks <= blocks + 1); /* room for runs may stay */
    }
    assert_int_equal(table_rows(t), 1000);
    table_destroy(t);
    assert_int_equal(f.live_blocks, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_keys_that_are_held_are_taken),
        cmocka_unit_test(runs_may_not_overlap_or_leave_the_table),
        cmocka_unit_test(many_runs_are_one_table),
        cmocka_unit_test(a_wide_row_in_parts_is_a_row),
        cmocka_unit_test(every_type_is_kept),
        cmocka_unit_test(without_memory_no_run_is_added),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
