/* Results of reductions: the best entries by a full sort, and merges in any order. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/reduction.h"
#include "unit.h"

enum { N = 2000 };

static unsigned function;

static int by_order(const void *a, const void *b)
{
    return reduced_before(function, a, b) ? -1 : reduced_before(function, b, a);
}

static float value(uint64_t i)
{
    return (float)(int64_t)(mix64(i) % 200) - 100; /* many are equal */
}

static void entries(void **state)
{
    (void)state;
    static const struct reduction kinds[] = {
        {.function = PARAMO_REDUCE_MIN, .last = UINT64_MAX, .most = 1},
        {.function = PARAMO_REDUCE_MAX, .last = UINT64_MAX, .most = 1},
        {.function = PARAMO_REDUCE_TOP, .last = UINT64_MAX, .most = 1},
        {.function = PARAMO_REDUCE_TOP, .last = UINT64_MAX, .most = 97},
        {.function = PARAMO_REDUCE_TOP, .last = UINT64_MAX, .most = 5000}};
    static paramo_entry all[N];
    for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        struct reduced one, part[3];
        function = kinds[k].function;
        assert_int_equal(reduction_check(&kinds[k]), PARAMO_OK);
        assert_int_equal(reduced_init(&one, &kinds[k]), PARAMO_OK);
        for (unsigned p = 0; p < 3; p++)
            assert_int_equal(reduced_init(&part[p], &kinds[k]), PARAMO_OK);
        for (uint64_t i = 0; i < N; i += 2) { /* rows of two */
            float row[2] = {value(i), value(i + 1)};
            reduced_add(&part[mix64(i) % 3], i / 2, 0, PARAMO_F32, row, PARAMO_F32, NULL, 2);
            for (uint64_t c = 0; c < 2; c++)
                all[i + c] = (paramo_entry){.key = i / 2, .column = (uint32_t)c, .value = row[c]};
        }
        qsort(all, N, sizeof *all, by_order);
        for (unsigned p = 0; p < 3; p++)
            reduced_sort(&part[p]);
        for (unsigned p = 0; p < 3; p++)
            assert_int_equal(reduced_merge(&one, &part[(p + k) % 3]), PARAMO_OK);
        size_t n = kinds[k].most < N ? kinds[k].most : N;
        assert_int_equal(one.n, n);
        assert_memory_equal(one.entries, all, n * sizeof *all);
        assert_int_equal(one.values, N);
        assert_true(reduced_value(&one) == all[0].value);
        reduced_reset(&one);
        assert_int_equal(one.n + one.values, 0);
        reduced_fini(&one);
        for (unsigned p = 0; p < 3; p++)
            reduced_fini(&part[p]);
    }
}

static double of(unsigned what, paramo_dtype dtype, const void *values, const void *other, size_t n)
{
    struct reduction r = {.function = (uint8_t)what, .two = other, .most = what == PARAMO_REDUCE_MAX};
    struct reduced found;
    assert_int_equal(reduction_check(&r), PARAMO_OK);
    assert_int_equal(reduced_init(&found, &r), PARAMO_OK);
    reduced_add(&found, 0, 0, dtype, values, dtype, other, n);
    double result = reduced_value(&found);
    reduced_fini(&found);
    return result;
}

static void types(void **state)
{
    (void)state;
    assert_true(of(PARAMO_REDUCE_SUM, PARAMO_F32, (float[]){1.5f, -4}, NULL, 2) == -2.5);
    assert_true(of(PARAMO_REDUCE_NORM1, PARAMO_F64, (double[]){1.5, -4}, NULL, 2) == 5.5);
    assert_true(of(PARAMO_REDUCE_NORM2_SQUARED, PARAMO_I32, (int32_t[]){3, -4}, NULL, 2) == 25);
    assert_true(of(PARAMO_REDUCE_MAX, PARAMO_I64, (int64_t[]){-3, -4}, NULL, 2) == -3);
    assert_true(of(PARAMO_REDUCE_SUM, PARAMO_U8, (uint8_t[]){200, 100}, NULL, 2) == 300);
    assert_true(of(PARAMO_REDUCE_DOT, PARAMO_F32, (float[]){1, 2}, (float[]){3, 0.5f}, 2) == 4);
    assert_true(of(PARAMO_REDUCE_COUNT, PARAMO_F32, (float[]){1, 2}, NULL, 2) == 0);
}

static void refused(void **state)
{
    (void)state;
    static const struct reduction wrong[] = {
        {.function = PARAMO_REDUCE_FUNCTIONS},
        {.function = PARAMO_REDUCE_DOT},
        {.function = PARAMO_REDUCE_SUM, .two = true},
        {.function = PARAMO_REDUCE_SUM, .most = 1},
        {.function = PARAMO_REDUCE_TOP},
        {.function = PARAMO_REDUCE_TOP, .most = REDUCTION_ENTRIES_MAX + 1},
        {.function = PARAMO_REDUCE_MIN, .most = 2}};
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(reduction_check(&wrong[i]), PARAMO_E_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(entries), cmocka_unit_test(types),
                                       cmocka_unit_test(refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
