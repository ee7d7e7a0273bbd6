/* Sparse tables: memory per key, growth, row numbers that last, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "support_reference.h"
#include "table/table.h"

static struct table *make(paramo_optimizer optimizer, uint32_t dim, const struct table_alloc *alloc)
{
    paramo_table_options o;
    table_options_default(&o);
    o.optimizer = optimizer;
    o.dim = dim;
    struct table *t;
    assert_int_equal(table_create(&o, 4711, alloc, &t), PARAMO_OK);
    return t;
}

/* One float per key and no optimizer state take at most 24 bytes a key (docs/PERFORMANCE.md), at every size on the
 * way to 3 million keys, in requests of 1,000. Each key's sum is right at the end, for odd and even keys. */
static void grows_to_millions_within_24_bytes_a_key(void **state)
{
    (void)state;
    enum { KEYS = 3000000, BATCH = 1000 };
    struct table *t = make(PARAMO_OPT_ADD, 1, NULL);
    uint64_t keys[BATCH];
    float vals[BATCH];
    for (uint32_t first = 0; first < KEYS; first += BATCH) {
        for (uint32_t i = 0; i < BATCH; i++) {
            keys[i] = (uint64_t)(first + i) * 3;
            vals[i] = (float)(first + i);
        }
        assert_int_equal(table_push(t, keys, BATCH, vals), PARAMO_OK);
        struct table_stats stats = table_get_stats(t);
        assert_int_equal(stats.rows, first + BATCH);
        if (stats.rows >= 200000) {
            assert_true(stats.bytes <= stats.rows * 24);
        }
    }
    assert_int_equal(count_nonzero(t), KEYS - 1);
    uint64_t *all;
    size_t n;
    assert_int_equal(table_sorted_keys(t, &all, &n), PARAMO_OK);
    assert_int_equal(n, KEYS);
    float *sums = malloc(n * sizeof *sums);
    assert_non_null(sums);
    assert_int_equal(table_push(t, all, n, memset(sums, 0, n * sizeof *sums)),
                     PARAMO_OK); /* one large request */
    assert_int_equal(table_pull(t, all, n, sums, false), PARAMO_OK);
    for (size_t i = 0; i < n; i++) {
        assert_true(all[i] == i * 3 && sums[i] == (float)i);
    }
    free(sums);
    free(all);
    table_destroy(t);
}

static void ends_of_the_range_are_keys(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_ADD, 2, NULL);
    uint64_t keys[] = {0, 1, UINT64_MAX - 1, UINT64_MAX};
    float vals[] = {1, 2, 3, 4, 5, 6, 7, 8};
    assert_int_equal(table_push(t, keys, 4, vals), PARAMO_OK);
    float out[8];
    assert_int_equal(table_pull(t, keys, 4, out, false), PARAMO_OK);
    assert_memory_equal(out, vals, sizeof vals);
    assert_int_equal(table_push(t, keys, 0, NULL), PARAMO_OK);
    assert_int_equal(table_pull(t, keys, 0, NULL, true), PARAMO_OK);
    table_destroy(t);
}

/* Of rows in slabs: numbers resolved before the table grew a thousandfold still lead to the rows. */
static void row_numbers_outlive_growth_but_not_deletion(void **state)
{
    (void)state;
    enum { FEW = 50, MANY = 60000 };
    struct table *t = make(PARAMO_OPT_ADD, 2, NULL);
    uint64_t keys[FEW];
    uint32_t rows[FEW];
    float ones[FEW * 2];
    for (size_t i = 0; i < FEW; i++) {
        keys[i] = i << 40;
        ones[2 * i] = ones[2 * i + 1] = 1;
    }
    assert_int_equal(table_resolve(t, keys, FEW, rows, false), PARAMO_OK);
    for (size_t i = 0; i < FEW; i++) {
        assert_int_equal(rows[i], TABLE_NO_ROW);
    }
    assert_int_equal(table_rows(t), 0);
    assert_int_equal(table_push_rows(t, keys, rows, FEW, ones, NULL), PARAMO_OK); /* creates */
    assert_int_equal(table_rows(t), FEW);
    uint64_t generation = table_generation(t);
    for (uint64_t k = 1; k <= MANY; k++) {
        uint64_t key = mix64(k) | 1;
        assert_int_equal(table_push(t, &key, 1, ones), PARAMO_OK);
    }
    assert_int_equal(table_generation(t), generation);
    assert_int_equal(table_push_rows(t, keys, rows, FEW, ones, NULL), PARAMO_OK);
    float out[FEW * 2];
    assert_int_equal(table_pull(t, keys, FEW, out, false), PARAMO_OK);
    for (size_t i = 0; i < FEW * 2; i++) {
        assert_true(out[i] == 2);
    }
    uint64_t nothing = 12;
    assert_int_equal(table_delete(t, &nothing, 1, NULL), PARAMO_OK);
    assert_int_equal(table_generation(t), generation); /* nothing was removed */
    assert_int_equal(table_delete(t, keys, 1, NULL), PARAMO_OK);
    assert_int_not_equal(table_generation(t), generation);
    generation = table_generation(t);
    table_clear(t);
    assert_int_not_equal(table_generation(t), generation);
    assert_int_equal(table_rows(t), 0);
    assert_int_equal(count_nonzero(t), 0);
    table_destroy(t);
}

static void bad_values_change_nothing(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_FTRL, 2, NULL);
    uint64_t keys[] = {1, 2, 3};
    float vals[] = {1, 1, 1, 1, 1, NAN};
    assert_int_equal(table_push(t, keys, 3, vals), PARAMO_E_NUMERIC);
    assert_int_equal(table_push_columns(t, keys, 3, 0, 1, &vals[3]), PARAMO_E_NUMERIC);
    assert_int_equal(table_rows(t), 0);
    float row[] = {1, 1, 0, 0, 4, -4}; /* a negative sum of squares */
    assert_int_equal(table_put_rows(t, keys, 1, true, row), PARAMO_E_NUMERIC);
    assert_non_null(strstr(err_text(), "key 1"));
    assert_int_equal(table_put_rows(t, keys, 1, false, &vals[4]), PARAMO_E_NUMERIC);
    assert_int_equal(table_rows(t), 0);
    table_destroy(t);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_ADAM, 4, NULL);
    uint64_t key = 5;
    float vals[8] = {0};
    uint32_t len = 4;
    assert_int_equal(table_push_columns(t, &key, 1, 0, 2, vals), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_var_push(t, &key, 1, vals, &len), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_dense_own(t, 0, 1), PARAMO_E_UNSUPPORTED);
    assert_int_equal(table_get_rows(t, &key, 1, true, vals), PARAMO_E_NOT_FOUND);
    table_destroy(t);
    t = make(PARAMO_OPT_SGD, 4, NULL);
    assert_int_equal(table_push_columns(t, &key, 1, 3, 2, vals), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_push_columns(t, &key, 1, 4, 1, vals), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_pull_columns(t, &key, 1, 1, UINT32_MAX, vals, true), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_pull_columns(t, &key, 1, 0, 0, vals, true), PARAMO_E_SIZE_MISMATCH);
    assert_int_equal(table_rows(t), 0);
    table_destroy(t);
    table_destroy(NULL);
    paramo_table_options o;
    table_options_default(&o);
    o.kind = PARAMO_TABLE_USER;
    assert_int_equal(table_create(&o, 0, NULL, &t), PARAMO_E_INVALID);
    o.kind = PARAMO_TABLE_SPARSE;
    o.dim = 0;
    assert_int_equal(table_create(&o, 0, NULL, &t), PARAMO_E_INVALID);
    struct failing_alloc f;
    failing_alloc_init(&f);
    f.fail_at = 1;
    o.dim = 1;
    assert_int_equal(table_create(&o, 0, &f.alloc, &t), PARAMO_E_MEMORY);
    assert_int_equal(f.live_blocks, 0);
}

/* The shard refuses keys that repeat or descend. A table only has to survive them. */
static void repeated_keys_are_survived(void **state)
{
    (void)state;
    struct table *t = make(PARAMO_OPT_ADD, 1, NULL);
    uint64_t keys[] = {7, 7, 3, 7};
    float vals[] = {1, 2, 3, 4};
    assert_int_equal(table_push(t, keys, 4, vals), PARAMO_OK);
    assert_int_equal(table_rows(t), 2);
    float out[4];
    assert_int_equal(table_pull(t, keys, 4, out, false), PARAMO_OK);
    assert_true(out[0] == 7 && out[1] == 7 && out[2] == 3 && out[3] == 7);
    table_destroy(t);
    struct failing_alloc f;
    failing_alloc_init(&f);
    t = make(PARAMO_OPT_ADD, 1, &f.alloc);
    for (size_t at = 1;; at++) {
        f.fail_at = at;
        if (table_push(t, keys, 4, vals) == PARAMO_OK) {
            break;
        }
        assert_int_equal(table_rows(t), 0);
    }
    assert_int_equal(table_rows(t), 2);
    table_destroy(t);
    assert_int_equal(f.live_blocks, 0);
}

/* A model saved with state and put into another table learns on with the same bits. */
static void state_survives_a_copy(void **state)
{
    (void)state;
    enum { KEYS = 64, DIM = 3 };
    for (paramo_optimizer k = 0; k < PARAMO_OPTIMIZER_COUNT; k++) {
        struct table *a = make(k, DIM, NULL);
        struct table *b = make(k, DIM, NULL);
        uint64_t keys[KEYS];
        float g[KEYS * DIM];
        float rows[KEYS * (3 * DIM + 1)];
        float from_a[KEYS * DIM];
        float from_b[KEYS * DIM];
        uint64_t seed = 3;
        for (size_t i = 0; i < KEYS; i++) {
            keys[i] = i * 1000;
        }
        for (unsigned round = 0; round < 20; round++) {
            for (size_t i = 0; i < KEYS * DIM; i++) {
                g[i] = draw_float(&seed);
            }
            assert_int_equal(table_push(a, keys, KEYS, g), PARAMO_OK);
            if (round >= 10) {
                assert_int_equal(table_push(b, keys, KEYS, g), PARAMO_OK);
            }
            if (round == 9) {
                assert_int_equal(table_get_rows(a, keys, KEYS, true, rows), PARAMO_OK);
                assert_int_equal(table_put_rows(b, keys, KEYS, true, rows), PARAMO_OK);
            }
        }
        assert_int_equal(table_pull(a, keys, KEYS, from_a, false), PARAMO_OK);
        assert_int_equal(table_pull(b, keys, KEYS, from_b, false), PARAMO_OK);
        assert_memory_equal(from_a, from_b, sizeof from_a);
        table_destroy(a);
        table_destroy(b);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grows_to_millions_within_24_bytes_a_key),
        cmocka_unit_test(ends_of_the_range_are_keys),
        cmocka_unit_test(row_numbers_outlive_growth_but_not_deletion),
        cmocka_unit_test(bad_values_change_nothing),
        cmocka_unit_test(what_does_not_fit_is_refused),
        cmocka_unit_test(repeated_keys_are_survived),
        cmocka_unit_test(state_survives_a_copy),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
