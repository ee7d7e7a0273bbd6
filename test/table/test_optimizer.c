/* Kernels against the slow reference, bit for bit, and against numbers worked out by hand. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/cpu.h"
#include "base/hash.h"
#include "support_reference.h"
#include "table/optimizer/optimizer.h"
#include "table/optimizer/optimizer_def.h"
#include "table/table_options.h"

enum { COLUMNS = 103, ROUNDS = 40 };

static const paramo_optimizer ALL[] = {
#define NUMBER(number, NAME, name) PARAMO_OPT_##NAME,
    PARAMO_OPTIMIZERS(NUMBER)
#undef NUMBER
};
static const char *const NAMES[] = {
#define NAME_OF(number, NAME, name) #name,
    PARAMO_OPTIMIZERS(NAME_OF)
#undef NAME_OF
};

static paramo_table_options options_for(paramo_optimizer kind, uint32_t dim, float l1, float l2)
{
    paramo_table_options o;
    table_options_default(&o);
    o.optimizer = kind;
    o.dim = dim;
    o.alpha = 0.3F;
    o.beta = 0.7F;
    o.l1 = l1;
    o.l2 = l2;
    assert_int_equal(table_options_check(&o), PARAMO_OK);
    return o;
}

/* -0.0 and 0.0 count as the same: soft(0) has either sign on paper. */
static void assert_same(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        float x = a[i] == 0 ? 0 : a[i];
        float y = b[i] == 0 ? 0 : b[i];
        assert_memory_equal(&x, &y, sizeof x);
    }
}

static float gradient(uint64_t *seed)
{
    uint64_t r = draw(seed);
    float g = draw_float(seed);
    switch (r % 16) {
    case 0:
        return 0;
    case 1:
        return g * 0x1p-80F; /* its square is 0 */
    case 2:
        return g * 1e6F;
    case 3:
        return g * OPTIMIZER_GRADIENT_MAX;
    default:
        return g;
    }
}

static void span_is_the_reference(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        for (unsigned variant = 0; variant < 4; variant++) {
            paramo_table_options o =
                options_for(ALL[k], COLUMNS, variant & 1 ? 0.01F : 0, variant & 2 ? 0.02F : 0);
            struct optimizer opt;
            optimizer_setup(&opt, &o);
            uint64_t seed = 7 + k;
            float expected[3 * COLUMNS + 1] = {0};
            float row[3 * COLUMNS + 1] = {0};
            for (size_t i = 0; i < COLUMNS; i++) {
                expected[i] = row[i] = draw_float(&seed);
            }
            reference_start(&o, expected);
            optimizer_start(&opt, row, row + COLUMNS, row + 2 * COLUMNS, COLUMNS);
            float t = 0;
            for (unsigned round = 0; round < ROUNDS; round++) {
                float g[COLUMNS];
                for (size_t i = 0; i < COLUMNS; i++) {
                    g[i] = gradient(&seed);
                }
                assert_int_equal(optimizer_check(&opt, g, COLUMNS), PARAMO_OK);
                reference_push(&o, expected, g);
                t = optimizer_next_step(t);
                /* in two pieces: a chunk may be cut anywhere */
                size_t cut = draw(&seed) % COLUMNS;
                opt.span(&opt, row, row + COLUMNS, row + 2 * COLUMNS, t, g, cut);
                opt.span(&opt, row + cut, row + COLUMNS + cut, row + 2 * COLUMNS + cut, t, g + cut,
                         COLUMNS - cut);
                size_t values = COLUMNS + optimizer_def(opt.kind)->planes * (size_t)COLUMNS;
                assert_same(row, expected, values);
                if (ALL[k] == PARAMO_OPT_ASSIGN || ALL[k] == PARAMO_OPT_ADD || ALL[k] == PARAMO_OPT_FTRL ||
                    ALL[k] == PARAMO_OPT_ADAM) { /* SGD and others without a norm may diverge */
                    for (size_t i = 0; i < values; i++) {
                        assert_true(isfinite(row[i]));
                    }
                }
            }
        }
    }
}

static void rows_are_the_reference(void **state)
{
    (void)state;
    static const uint32_t dims[] = {1, 2, 5, 8, 16};
    enum { COUNT = 9, VALUES = 3 * 16 + 1 };
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        for (size_t d = 0; d < sizeof dims / sizeof *dims; d++) {
            paramo_table_options o = options_for(ALL[k], dims[d], 0.01F, 0.02F);
            struct optimizer opt;
            optimizer_setup(&opt, &o);
            float rows[COUNT][VALUES] = {{0}};
            float expected[COUNT][VALUES] = {{0}};
            void *at[COUNT];
            for (size_t i = 0; i < COUNT; i++) {
                at[i] = rows[i];
            }
            uint64_t seed = 99 + k;
            for (unsigned round = 0; round < ROUNDS; round++) {
                float g[COUNT * 16];
                for (size_t i = 0; i < COUNT * dims[d]; i++) {
                    g[i] = draw_float(&seed);
                }
                opt.rows(&opt, at, COUNT, dims[d], g);
                for (size_t i = 0; i < COUNT; i++) {
                    reference_push(&o, expected[i], g + i * dims[d]);
                    assert_same(rows[i], expected[i], table_row_values(&o, true));
                }
            }
        }
    }
}

/* The same bits from every compiler, vector width and level of optimization: a hash over the parameters and
 * states of a fixed run of each optimizer. It changes only if a formula does. */
static const uint64_t BITS[PARAMO_OPTIMIZER_COUNT] = {
    [PARAMO_OPT_ASSIGN] = UINT64_C(0x8c49bf6579f2f64b),  [PARAMO_OPT_ADD] = UINT64_C(0xdbccc686b88827bd),
    [PARAMO_OPT_SGD] = UINT64_C(0x3563a3d501b1b0f3),     [PARAMO_OPT_MOMENTUM] = UINT64_C(0x3c9fe3348c44dbdf),
    [PARAMO_OPT_ADAGRAD] = UINT64_C(0xf556f84aee776ca9), [PARAMO_OPT_FTRL] = UINT64_C(0x0ec6daa44080bad7),
    [PARAMO_OPT_ADAM] = UINT64_C(0x17453e0ae04d6110),    [PARAMO_OPT_MAX] = UINT64_C(0x52aed0c5116d3afd),
};

static void bits_are_the_same_everywhere(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        float bits[3 * COLUMNS] = {0};
        uint64_t seed = 1;
        paramo_table_options o = options_for(ALL[k], COLUMNS, 0.01F, 0.02F);
        struct optimizer opt;
        optimizer_setup(&opt, &o);
        for (unsigned round = 0; round < ROUNDS; round++) {
            float g[COLUMNS];
            for (size_t i = 0; i < COLUMNS; i++) {
                g[i] = draw_float(&seed);
            }
            opt.span(&opt, bits, bits + COLUMNS, bits + 2 * COLUMNS, (float)round + 1, g, COLUMNS);
        }
        uint64_t hash = hash_bytes(bits, sizeof bits);
        if (hash != BITS[ALL[k]])
            fail_msg("%s: the hash of its bits is 0x%016" PRIx64, NAMES[k], hash);
    }
}

/* Algorithm 1 of McMahan et al. with alpha 1/2, beta 1, l1 1/4, l2 1/2; one coordinate, three gradients,
 * worked out on paper in exact fractions from z = n = w = 0 on.
 *
 * g = 3: sigma = (3 - 0) / (1/2) = 6; z = 3 - 6*0 = 3; n = 9; w = -(3 - 1/4) / ((1 + 3) * 2 + 1/2) = -11/34
 *
 * g = 4: sigma = (5 - 3) * 2 = 4; z = 3 + 4 - 4*(-11/34) = 141/17; n = 25;
 * w = -(141/17 - 1/4) / ((1 + 5) * 2 + 1/2) = -(547/68) / (25/2) = -547/850
 *
 * g = -12: sigma = (13 - 5) * 2 = 16; z = 141/17 - 12 + 16*547/850 = 141/17 - 12 + 4376/425 = 2801/425; n =
 * 169; w = -(2801/425 - 1/4) / ((1 + 13) * 2 + 1/2) = -(10779/1700) / (57/2) = -10779/48450 */
static void ftrl_by_hand(void **state)
{
    (void)state;
    paramo_table_options o = options_for(PARAMO_OPT_FTRL, 1, 0.25F, 0.5F);
    o.alpha = 0.5F;
    o.beta = 1;
    struct optimizer opt;
    optimizer_setup(&opt, &o);
    static const float g[] = {3, 4, -12};
    static const double w[] = {-11.0 / 34, -547.0 / 850, -10779.0 / 48450};
    static const double z[] = {3, 141.0 / 17, 2801.0 / 425};
    static const double n[] = {9, 25, 169};
    float row[3] = {0};
    void *at = row;
    for (size_t i = 0; i < 3; i++) {
        opt.rows(&opt, &at, 1, 1, g + i);
        assert_true(fabs((double)row[0] - w[i]) < 1e-6);
        assert_true(fabs((double)row[1] - z[i]) < 1e-5);
        assert_true((double)row[2] == n[i]);
    }
    /* within l1 of 0, the weight is exactly 0 */
    float small = 0.2F;
    float fresh[3] = {0};
    at = fresh;
    opt.rows(&opt, &at, 1, 1, &small);
    assert_true(fresh[0] == 0 && fresh[1] == 0.2F);
}

/* First step of Adam: m = 0.1 g, v = 0.001 g^2, corrected to g and g^2: w = -alpha g / (|g| + epsilon). The
 * second, g = 2 then 4: m = 0.9*0.2 + 0.1*4 = 0.58, /0.19; v = 0.999*0.004 + 0.001*16 = 0.019996, /0.001999.
 */
static void adam_by_hand(void **state)
{
    (void)state;
    paramo_table_options o = options_for(PARAMO_OPT_ADAM, 1, 0, 0);
    o.alpha = 0.5F;
    struct optimizer opt;
    optimizer_setup(&opt, &o);
    float row[4] = {0};
    void *at = row;
    float g = 2;
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(fabs((double)row[0] + 0.5) < 1e-6);
    g = 4;
    opt.rows(&opt, &at, 1, 1, &g);
    double step = 0.5 * (0.58 / 0.19) / (sqrt(0.019996 / 0.001999) + 1e-8);
    assert_true(fabs((double)row[0] + 0.5 + step) < 1e-5);
    assert_true(row[3] == 2);
    row[3] = OPTIMIZER_STEPS_MAX;
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(row[3] == OPTIMIZER_STEPS_MAX);
}

/* AdaGrad, alpha 1, beta 1, l1 1/4: g = 3 -> n = 9, eta = 1/4, w = soft(-3/4, 1/16) = -11/16.
 * Momentum 1/2, alpha 1/4: g = 1, 1 -> v = 1, 1.5; w = -0.25, -0.625. SGD alpha 1/2, l1 1/2, l2 1/4 from w =
 * 2: g = 1 -> 2 - 1/2 (1 + 1/2) = 1.25, soft(1.25, 1/4) = 1. */
static void others_by_hand(void **state)
{
    (void)state;
    struct optimizer opt;
    paramo_table_options o = options_for(PARAMO_OPT_ADAGRAD, 1, 0.25F, 0);
    o.alpha = o.beta = 1;
    optimizer_setup(&opt, &o);
    float row[2] = {0};
    void *at = row;
    float g = 3;
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(row[0] == -11.0F / 16 && row[1] == 9);

    o = options_for(PARAMO_OPT_MOMENTUM, 1, 0, 0);
    o.alpha = 0.25F;
    o.momentum = 0.5F;
    optimizer_setup(&opt, &o);
    row[0] = row[1] = 0;
    g = 1;
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(row[0] == -0.25F && row[1] == 1);
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(row[0] == -0.625F && row[1] == 1.5F);

    o = options_for(PARAMO_OPT_SGD, 1, 0.5F, 0.25F);
    o.alpha = 0.5F;
    optimizer_setup(&opt, &o);
    row[0] = 2;
    opt.rows(&opt, &at, 1, 1, &g);
    assert_true(row[0] == 1);
}

/* The largest gradient again and again: sums of squares stay at the largest float; they never become infinite. */
static void sums_of_squares_saturate(void **state)
{
    (void)state;
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        const struct optimizer_def *def = optimizer_def(ALL[k]);
        if (!def->squares) {
            continue;
        }
        paramo_table_options o = options_for(ALL[k], 1, 0, 0);
        struct optimizer opt;
        optimizer_setup(&opt, &o);
        float row[4] = {0};
        float expected[4] = {0};
        void *at = row;
        float g = OPTIMIZER_GRADIENT_MAX;
        if (!def->counts) { /* Adam's is a mean, which gets there by itself */
            row[def->planes] = expected[def->planes] = FLT_MAX;
        }
        for (unsigned round = 0; round < 600; round++) {
            opt.rows(&opt, &at, 1, 1, &g);
            reference_push(&o, expected, &g);
            size_t values = table_row_values(&o, true);
            for (size_t i = 0; i < values; i++) {
                assert_true(isfinite(row[i]));
            }
            assert_same(row, expected, values);
        }
    }
}

static void ftrl_starts_where_it_is_told(void **state)
{
    (void)state;
    paramo_table_options o = options_for(PARAMO_OPT_FTRL, 1, 0.5F, 0.1F);
    struct optimizer opt;
    optimizer_setup(&opt, &o);
    uint64_t seed = 5;
    for (unsigned i = 0; i < 1000; i++) {
        float wanted = draw_float(&seed);
        float w = wanted;
        float z;
        float n;
        optimizer_start(&opt, &w, &z, &n, 1);
        assert_true(fabsf(w - wanted) <= 1e-6F);
        float only_w = wanted;
        optimizer_start(&opt, &only_w, NULL, NULL, 1);
        assert_memory_equal(&w, &only_w, sizeof w);
        /* a push of 0 changes nothing: w is the function of z and n that a push computes */
        float zero = 0;
        float before = w;
        opt.span(&opt, &w, &z, &n, 0, &zero, 1);
        assert_memory_equal(&w, &before, sizeof w);
    }
}

#define ADD_WRAPS(type, dtype_value, a, b, sum)                                                              \
    do {                                                                                                     \
        paramo_table_options o = options_for(PARAMO_OPT_ADD, 1, 0, 0);                                       \
        o.dtype = dtype_value;                                                                               \
        struct optimizer opt;                                                                                \
        optimizer_setup(&opt, &o);                                                                           \
        type w[40];                                                                                          \
        type g[40];                                                                                          \
        for (size_t i = 0; i < 40; i++) {                                                                    \
            w[i] = (a);                                                                                      \
            g[i] = (b);                                                                                      \
        }                                                                                                    \
        assert_int_equal(optimizer_check(&opt, g, 40), PARAMO_OK);                                           \
        opt.span(&opt, w, NULL, NULL, 0, g, 39);                                                             \
        void *at = &w[39];                                                                                   \
        opt.rows(&opt, &at, 1, 1, g);                                                                        \
        for (size_t i = 0; i < 40; i++) {                                                                    \
            assert_true(w[i] == (sum));                                                                      \
        }                                                                                                    \
        o.optimizer = PARAMO_OPT_ASSIGN;                                                                     \
        optimizer_setup(&opt, &o);                                                                           \
        opt.span(&opt, w, NULL, NULL, 0, g, 39);                                                             \
        opt.rows(&opt, &at, 1, 1, g);                                                                        \
        assert_memory_equal(w, g, sizeof w);                                                                 \
    } while (0)

static void all_types_add_and_assign(void **state)
{
    (void)state;
    ADD_WRAPS(float, PARAMO_F32, 1.5F, 2.25F, 3.75F);
    ADD_WRAPS(double, PARAMO_F64, 1e100, 1.0, 1e100);
    ADD_WRAPS(int32_t, PARAMO_I32, INT32_MAX, 1, INT32_MIN);
    ADD_WRAPS(int64_t, PARAMO_I64, INT64_MAX, 2, INT64_MIN + 1);
    ADD_WRAPS(uint8_t, PARAMO_U8, 250, 10, 4);
}

static void values_that_are_no_numbers_are_found(void **state)
{
    (void)state;
    enum { N = 67 };
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY};
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        paramo_table_options o = options_for(ALL[k], 1, 0, 0);
        struct optimizer opt;
        optimizer_setup(&opt, &o);
        bool any = optimizer_def(opt.kind)->input == OPTIMIZER_ANY;
        for (size_t b = 0; b < 4; b++) {
            for (size_t at = 0; at < N; at++) {
                float g[N] = {0};
                g[at] = bad[b];
                assert_int_equal(optimizer_check(&opt, g, N), any ? PARAMO_OK : PARAMO_E_NUMERIC);
            }
        }
        float big[2] = {-OPTIMIZER_GRADIENT_MAX, FLT_MAX};
        assert_int_equal(optimizer_check(&opt, big, 1), PARAMO_OK);
        any |= optimizer_def(opt.kind)->input == OPTIMIZER_FINITE;
        assert_int_equal(optimizer_check(&opt, big, 2), any ? PARAMO_OK : PARAMO_E_NUMERIC);
    }
    paramo_table_options o = options_for(PARAMO_OPT_ADD, 1, 0, 0);
    o.dtype = PARAMO_F64;
    struct optimizer opt;
    optimizer_setup(&opt, &o);
    double g[3] = {1, -DBL_MAX, 0};
    assert_int_equal(optimizer_check(&opt, g, 3), PARAMO_OK);
    g[2] = (double)NAN;
    assert_int_equal(optimizer_check(&opt, g, 3), PARAMO_E_NUMERIC);
    g[2] = -(double)INFINITY;
    assert_int_equal(optimizer_check(&opt, g, 3), PARAMO_E_NUMERIC);
}

static void state_is_checked(void **state)
{
    (void)state;
    struct optimizer opt;
    paramo_table_options o = options_for(PARAMO_OPT_FTRL, 1, 0, 0);
    optimizer_setup(&opt, &o);
    float w = 1;
    float z = -3;
    float n = 2;
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, 0, 1), PARAMO_OK);
    n = -1;
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, 0, 1), PARAMO_E_NUMERIC);
    assert_int_equal(optimizer_check_state(&opt, &w, NULL, NULL, 0, 1), PARAMO_OK);
    w = NAN;
    assert_int_equal(optimizer_check_state(&opt, &w, NULL, NULL, 0, 1), PARAMO_E_NUMERIC);
    o = options_for(PARAMO_OPT_ADAM, 1, 0, 0);
    optimizer_setup(&opt, &o);
    w = 1;
    n = 2;
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, 5, 1), PARAMO_OK);
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, -5, 1), PARAMO_E_NUMERIC);
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, 1.5F, 1), PARAMO_E_NUMERIC);
    assert_int_equal(optimizer_check_state(&opt, &w, &z, &n, NAN, 1), PARAMO_E_NUMERIC);
    o = options_for(PARAMO_OPT_ADAGRAD, 1, 0, 0);
    optimizer_setup(&opt, &o);
    assert_int_equal(optimizer_check_state(&opt, &w, &z, NULL, 0, 1), PARAMO_E_NUMERIC);
}

static const char *const LEVEL[CPU_LEVELS] = {"base", "avx2", "avx512"};

/* Every vector level that this machine has: the same bits, the sign of zero included, at every length. */
static void levels_give_the_same_bits(void **state)
{
    (void)state;
    enum { LENGTHS = 70, ARRAYS = 3 };
    static float start[ARRAYS + 1][LENGTHS];
    uint64_t seed = 77;
    size_t compared = 0;
    for (size_t k = 0; k < sizeof ALL / sizeof *ALL; k++) {
        for (size_t n = 0; n <= LENGTHS; n++) {
            for (size_t i = 0; i < LENGTHS; i++) {
                start[0][i] = gradient(&seed);
                start[1][i] = draw_float(&seed);
                start[2][i] = draw_float(&seed) * draw_float(&seed);
                start[3][i] = gradient(&seed);
                start[1][i] *= start[1][i]; /* either may be a sum of squares */
                start[2][i] *= start[2][i];
            }
            static float result[CPU_LEVELS][ARRAYS][LENGTHS];
            for (unsigned level = 0; level < CPU_LEVELS; level++) {
                if (cpu_limit(LEVEL[level]) != PARAMO_OK) {
                    continue;
                }
                paramo_table_options options = options_for(ALL[k], 1, n % 2 ? 0.1F : 0, n % 3 ? 0.01F : 0);
                struct optimizer o;
                optimizer_setup(&o, &options);
                memcpy(result[level], start, sizeof result[level]);
                o.span(&o, result[level][0], result[level][1], result[level][2], 3, start[3], n);
                assert_memory_equal(result[level], result[0], sizeof result[0]);
                compared += level > 0;
            }
        }
    }
    assert_int_equal(cpu_limit("auto"), PARAMO_OK);
    print_message("%zu spans compared, up to %s\n", compared, cpu_level_name(cpu_level()));
}

/* All of it once for each vector level. */
int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(span_is_the_reference),
        cmocka_unit_test(rows_are_the_reference),
        cmocka_unit_test(bits_are_the_same_everywhere),
        cmocka_unit_test(ftrl_by_hand),
        cmocka_unit_test(adam_by_hand),
        cmocka_unit_test(others_by_hand),
        cmocka_unit_test(sums_of_squares_saturate),
        cmocka_unit_test(ftrl_starts_where_it_is_told),
        cmocka_unit_test(all_types_add_and_assign),
        cmocka_unit_test(values_that_are_no_numbers_are_found),
        cmocka_unit_test(state_is_checked),
    };
    const struct CMUnitTest between[] = {cmocka_unit_test(levels_give_the_same_bits)};
    int failed = cmocka_run_group_tests_name("levels", between, NULL, NULL);
    for (unsigned level = 0; level < CPU_LEVELS; level++) {
        if (cpu_limit(LEVEL[level]) != PARAMO_OK) {
            print_message("not here: %s\n", LEVEL[level]);
            continue;
        }
        failed += cmocka_run_group_tests_name(LEVEL[level], tests, NULL, NULL);
    }
    return failed;
}
