/* Exact sums against integers, in any order, and at the edges of doubles. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "base/exactsum.h"
#include "base/hash.h"
#include "unit.h"

static double sum_of(const double *values, size_t n)
{
    struct exactsum s = {0};
    for (size_t i = 0; i < n; i++)
        exactsum_add(&s, values[i]);
    return exactsum_value(&s);
}

#define SUM(...) sum_of((const double[]){__VA_ARGS__}, sizeof((const double[]){__VA_ARGS__}) / sizeof(double))

/* Bit for bit; any NaN is like any other. */
static void same(double got, double want)
{
    if (got != got && want != want)
        return;
    assert_memory_equal(&got, &want, sizeof got);
}

static void edges(void **state)
{
    (void)state;
    double tiny = DBL_TRUE_MIN, one_up = 1 + DBL_EPSILON;
    same(sum_of(NULL, 0), 0);
    same(SUM(0.0, -0.0), 0);
    same(SUM(tiny), tiny);
    same(SUM(-tiny, tiny), 0);
    same(SUM(tiny, tiny, tiny), 3 * tiny);
    same(SUM(DBL_MIN, -tiny), DBL_MIN - tiny);
    same(SUM(DBL_MAX, DBL_MAX, -DBL_MAX), DBL_MAX);
    same(SUM(DBL_MAX, DBL_MAX), INFINITY);
    same(SUM(-DBL_MAX, -DBL_MAX), -INFINITY);
    same(SUM(1e300, 1, -1e300), 1);
    same(SUM(1e300, -1, -1e300, tiny), -1 /* tiny is far below its last bit */);
    /* ties go to the even one, unless something is left of them */
    same(SUM(1, DBL_EPSILON / 2), 1);
    same(SUM(1, DBL_EPSILON / 2, tiny), one_up);
    same(SUM(one_up, DBL_EPSILON / 2), 1 + 2 * DBL_EPSILON);
    same(SUM(one_up, DBL_EPSILON / 2, -tiny), one_up);
    same(SUM(-1, -DBL_EPSILON / 2, -tiny), -one_up);
    same(SUM(2 - DBL_EPSILON, DBL_EPSILON / 2), 2); /* the carry makes one bit more */
    same(SUM(DBL_MAX, 0x1p969), DBL_MAX);
    same(SUM(DBL_MAX, 0x1p970), INFINITY);
    same(SUM(INFINITY, 1), INFINITY);
    same(SUM(1, -INFINITY), -INFINITY);
    same(SUM(INFINITY, -INFINITY), NAN);
    same(SUM(1, NAN), NAN);
}

/* Multiples of 2^-1060 that a long integer adds up, too. */
static void integers(void **state)
{
    (void)state;
    for (unsigned shift = 0; shift < 1900; shift += 19) {
        struct exactsum s = {0};
        int64_t sum = 0;
        double unit = ldexp(1, (int)shift - 1060);
        for (uint64_t i = 0; i < 3000; i++) {
            int64_t value = (int64_t)(mix64(i + shift) >> 24) - (INT64_C(1) << 39);
            sum += value;
            exactsum_add(&s, (double)value * unit);
        }
        same(exactsum_value(&s), (double)sum * unit);
    }
}

static double any(uint64_t i)
{
    uint64_t bits = mix64(i);
    double value;
    memcpy(&value, &bits, sizeof value);
    return isfinite(value) ? value / 1024 : 1;
}

/* The same bits forwards, backwards, and in parts that are merged. */
static void any_order(void **state)
{
    (void)state;
    enum { N = 5000, PARTS = 7 };
    for (uint64_t seed = 0; seed < 20; seed++) {
        struct exactsum all = {0}, back = {0}, merged = {0}, part[PARTS];
        memset(part, 0, sizeof part);
        for (uint64_t i = 0; i < N; i++) {
            exactsum_add(&all, any(seed * N + i));
            exactsum_add(&back, any(seed * N + N - 1 - i));
            exactsum_add(&part[mix64(i ^ seed) % PARTS], any(seed * N + i));
        }
        for (unsigned p = 0; p < PARTS; p++)
            exactsum_merge(&merged, &part[(p + seed) % PARTS]);
        exactsum_carry(&all);
        exactsum_carry(&back);
        assert_memory_equal(all.chunk, back.chunk, sizeof all.chunk);
        assert_memory_equal(all.chunk, merged.chunk, sizeof all.chunk);
        same(exactsum_value(&merged), exactsum_value(&all));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(edges), cmocka_unit_test(integers),
                                       cmocka_unit_test(any_order)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
