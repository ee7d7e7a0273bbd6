/* Initial values: golden numbers, the shape of their distributions, and that only seed, key and column
 * matter. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "table/rowinit.h"
#include "table/table_options.h"

static struct rowinit make(paramo_init_kind kind, paramo_dtype dtype, float a, float b, uint64_t seed)
{
    paramo_table_options o;
    table_options_default(&o);
    o.init = kind;
    o.dtype = dtype;
    o.init_a = a;
    o.init_b = b;
    o.seed = seed;
    struct rowinit r;
    rowinit_setup(&r, &o);
    return r;
}

/* Quantiles of the standard normal distribution, from tables of 16 digits. */
static void quantiles_are_right(void **state)
{
    (void)state;
    static const struct {
        double p, x;
    } golden[] = {
        {0.5, 0},
        {0.75, 0.6744897501960817},
        {0.9, 1.2815515655446004},
        {0.95, 1.6448536269514722},
        {0.975, 1.959963984540054},
        {0.99, 2.3263478740408408},
        {0.999, 3.090232306167813},
        {0.999999, 4.753424308822899},
        {1e-10, -6.361340902404056},
        {1e-15, -7.941345326170997},
    };
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        double x = rowinit_normal_quantile(golden[i].p);
        assert_true(fabs(x - golden[i].x) <=
                    2e-15 * (1 + fabs(golden[i].x)) + (golden[i].p > 0.9999 ? 1e-10 : 0));
    }
    for (double p = 0.001; p < 0.5; p += 0.001) { /* symmetric, and against the error function */
        double x = rowinit_normal_quantile(p);
        assert_true(fabs(0.5 * erfc(-x / sqrt(2)) - p) < 1e-15);
        assert_true(fabs(x + rowinit_normal_quantile(1 - p)) < 1e-12);
    }
}

/* Sample moments of N draws, N = 250,000: 5 standard errors each. */
static void moments(const struct rowinit *r, double m[4])
{
    enum { KEYS = 50000, DIM = 5 };
    double sum[5] = {0};
    for (uint64_t key = 0; key < KEYS; key++) {
        float x[DIM];
        rowinit_fill(r, key, 0, DIM, x);
        for (size_t i = 0; i < DIM; i++) {
            double power = 1;
            for (size_t j = 1; j < 5; j++) {
                power *= (double)x[i];
                sum[j] += power;
            }
        }
    }
    for (size_t j = 1; j < 5; j++) {
        m[j - 1] = sum[j] / (KEYS * DIM);
    }
}

static void normal_is_normal(void **state)
{
    (void)state;
    struct rowinit r = make(PARAMO_INIT_NORMAL, PARAMO_F32, 0, 1, 42);
    double m[4];
    moments(&r, m);
    assert_true(fabs(m[0]) < 0.01);
    assert_true(fabs(m[1] - 1) < 5 * sqrt(2.0 / 250000));
    assert_true(fabs(m[2]) < 5 * sqrt(15.0 / 250000));
    assert_true(fabs(m[3] - 3) < 5 * sqrt(96.0 / 250000));
    r = make(PARAMO_INIT_NORMAL, PARAMO_F32, 3, 0.5F, 42);
    moments(&r, m);
    assert_true(fabs(m[0] - 3) < 0.005);
    assert_true(fabs(m[1] - m[0] * m[0] - 0.25) < 0.005);
}

static void uniform_is_uniform(void **state)
{
    (void)state;
    struct rowinit r = make(PARAMO_INIT_UNIFORM, PARAMO_F32, -1, 1, 42);
    double m[4];
    moments(&r, m);
    assert_true(fabs(m[0]) < 5 * sqrt(1.0 / 3 / 250000));
    assert_true(fabs(m[1] - 1.0 / 3) < 5 * sqrt(4.0 / 45 / 250000));
    assert_true(fabs(m[3] - 0.2) < 0.003);
    unsigned cells[16] = {0};
    for (uint64_t key = 0; key < 16000; key++) {
        float x;
        rowinit_fill(&r, key, 7, 1, &x);
        assert_true(x >= -1 && x < 1);
        cells[(int)((x + 1) * 8)]++;
    }
    for (size_t i = 0; i < 16; i++) {
        assert_in_range(cells[i], 850, 1150);
    }
}

/* Bits that must never change: users see them as "the same seed". */
static void numbers_never_change(void **state)
{
    (void)state;
    assert_true(rowinit_bits(0, 0, 0) == UINT64_C(0x568a9b0b1a2c05ec));
    assert_true(rowinit_bits(1, UINT64_MAX, 9) == UINT64_C(0xdaf965c1e9dfed77));
    struct rowinit r = make(PARAMO_INIT_NORMAL, PARAMO_F32, 0, 0.01F, 1);
    uint32_t bits[4];
    rowinit_fill(&r, 12345, 0, 4, bits);
    static const uint32_t golden[4] = {0xbc0ca4f0, 0xbc43861b, 0x3baadca8, 0x3c2d9804};
    assert_memory_equal(bits, golden, sizeof golden);
}

static void column_and_order_do_not_matter(void **state)
{
    (void)state;
    for (unsigned kind = PARAMO_INIT_ZERO; kind <= PARAMO_INIT_NORMAL; kind++) {
        struct rowinit r = make((paramo_init_kind)kind, PARAMO_F32, 0.5F, 2, 9);
        float whole[64];
        rowinit_fill(&r, UINT64_MAX, 0, 64, whole);
        for (uint32_t col = 0; col < 64; col += 16) {
            float part[16];
            rowinit_fill(&r, UINT64_MAX, col, 16, part);
            assert_memory_equal(part, whole + col, sizeof part);
        }
        if (kind > PARAMO_INIT_CONSTANT) {
            float other[64];
            rowinit_fill(&r, 0, 0, 64, other);
            assert_memory_not_equal(other, whole, sizeof other);
            r.seed++;
            rowinit_fill(&r, UINT64_MAX, 0, 64, other);
            assert_memory_not_equal(other, whole, sizeof other);
        }
    }
}

static void all_types_are_filled(void **state)
{
    (void)state;
    struct rowinit r = make(PARAMO_INIT_CONSTANT, PARAMO_U8, 200, 0, 0);
    uint8_t u[3];
    rowinit_fill(&r, 1, 0, 3, u);
    assert_true(u[0] == 200 && u[2] == 200);
    r = make(PARAMO_INIT_UNIFORM, PARAMO_I64, -2, 2, 0);
    unsigned seen = 0;
    for (uint64_t key = 0; key < 200; key++) {
        int64_t x;
        rowinit_fill(&r, key, 0, 1, &x);
        assert_true(x >= -2 && x < 2);
        seen |= 1U << (x + 2);
    }
    assert_int_equal(seen, 0xf);
    r = make(PARAMO_INIT_UNIFORM, PARAMO_I32, 0, 100, 0);
    int32_t i;
    rowinit_fill(&r, 1, 0, 1, &i);
    assert_true(i >= 0 && i < 100);
    r = make(PARAMO_INIT_NORMAL, PARAMO_F64, 5, 0, 0);
    double d;
    rowinit_fill(&r, 1, 0, 1, &d);
    assert_true(d == 5);
    r = make(PARAMO_INIT_UNIFORM, PARAMO_F32, 1, nextafterf(1, 2),
             0); /* one float wide: rounding stays inside */
    for (uint64_t key = 0; key < 100; key++) {
        float x;
        rowinit_fill(&r, key, 0, 1, &x);
        assert_true(x == 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(quantiles_are_right),
        cmocka_unit_test(normal_is_normal),
        cmocka_unit_test(uniform_is_uniform),
        cmocka_unit_test(numbers_never_change),
        cmocka_unit_test(column_and_order_do_not_matter),
        cmocka_unit_test(all_types_are_filled),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
