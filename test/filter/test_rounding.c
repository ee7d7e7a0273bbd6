/* Filters that round: how far a value may move, that nothing is lost twice, and what is neither a number nor finite. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "filter/coding.h"
#include "unit.h"
#include "wire/capability.h"

enum { N = 4000 };

struct values {
    paramo_dtype dtype;
    uint64_t keys[N];
    float f[N];
    double d[N];
};

static size_t value_bytes(const struct values *v)
{
    return v->dtype == PARAMO_F32 ? 4 : 8;
}

static void *vals_of(struct values *v)
{
    return v->dtype == PARAMO_F32 ? (void *)v->f : (void *)v->d;
}

static double get(const struct values *v, size_t i)
{
    return v->dtype == PARAMO_F32 ? (double)v->f[i] : v->d[i];
}

static void put(struct values *v, size_t i, double value)
{
    v->f[i] = (float)value;
    v->d[i] = value;
}

static struct values *make(paramo_dtype dtype, double scale)
{
    struct values *v = calloc(1, sizeof *v);
    v->dtype = dtype;
    for (size_t i = 0; i < N; i++) {
        v->keys[i] = 7 * i;
        put(v, i, ((double)(mix64(i + 1) % 2000001) - 1e6) / 1e6 * scale);
    }
    return v;
}

static struct filter_setting setting(const char *text)
{
    struct filter_chain chain;
    assert_int_equal(filter_chain_parse(text, FILTER_PUSH, &chain), PARAMO_OK);
    return chain.at[0];
}

/* Rounds the values from `first` on as a part of all of them. */
static bool round_part(const char *text, struct values *v, size_t first, size_t n, const struct values *whole,
                       uint64_t seed)
{
    struct filter_setting s = setting(text);
    struct filter_rows rows = {.dtype = v->dtype,
                               .vals = (uint8_t *)vals_of(v) + first * value_bytes(v),
                               .n = n,
                               .whole =
                                   v->dtype == PARAMO_F32 ? (const void *)whole->f : (const void *)whole->d,
                               .whole_n = N,
                               .keys = v->keys + first,
                               .count = (uint32_t)n,
                               .row_values = 1,
                               .seed = seed};
    return s.ops->round(&s, &rows);
}

static bool round_all(const char *text, struct values *v, uint64_t seed)
{
    return round_part(text, v, 0, N, v, seed);
}

/* Encodes and decodes a part of the values, which must come back as they are. Returns the bytes of values that
 * travelled; 0: they were not encoded. */
static size_t travel(const char *text, struct values *v, size_t first, size_t n)
{
    struct filter_setting s = setting(text);
    struct bufpool pool;
    uint8_t bytes[FILTER_PARAMS_MAX];
    struct writer params = writer_over(bytes, sizeof bytes);
    bufpool_init(&pool, 0);
    void *from = (uint8_t *)vals_of(v) + first * value_bytes(v);
    struct filter_message m = {.use = FILTER_OF_PUSH,
                               .dtype = v->dtype,
                               .value_bytes = (uint32_t)value_bytes(v),
                               .memory = {.pool = &pool}};
    m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = from, .len = n * value_bytes(v)};
    size_t travelled = 0;
    if (s.ops->encode(&s, &m, &params)) {
        travelled = (size_t)m.seg[WIRE_SEG_VALS].len;
        struct reader r = reader_over(bytes, params.len);
        assert_int_equal(s.ops->decode(&r, &m), PARAMO_OK);
    }
    assert_int_equal(m.seg[WIRE_SEG_VALS].len, n * value_bytes(v));
    assert_memory_equal(m.seg[WIRE_SEG_VALS].data, from, n * value_bytes(v));
    filter_memory_give(&m.memory);
    assert_int_equal(pool.out, 0);
    bufpool_fini(&pool);
    return travelled;
}

static void errors_are_bounded(void **state)
{
    (void)state;
    static const double scales[] = {1, 1e-30, 1e-42, 3e30, 65000, 0.0001};
    static const char *const filters[] = {"fixed:1", "fixed:2", "fixed:3", "fixed:4", "bf16", "fp16"};
    for (unsigned k = 0; k < sizeof scales / sizeof *scales; k++)
        for (unsigned i = 0; i < sizeof filters / sizeof *filters; i++)
            for (unsigned dtype = PARAMO_F32; dtype <= PARAMO_F64; dtype++) {
                struct values *v = make((paramo_dtype)dtype, scales[k]), *before = malloc(sizeof *before);
                *before = *v;
                bool four = i == 3 && dtype == PARAMO_F32; /* nothing is gained */
                bool large = i == 5 && scales[k] > 65504;  /* stay as they are */
                assert_int_equal(round_all(filters[i], v, 5), !four);
                double most = 0, step = 0;
                for (size_t n = 0; n < N; n++)
                    most = fmax(most, fabs(get(before, n)));
                if (i < 4)
                    step = ldexp(1, (int)ceil(log2(most / (ldexp(1, 8 * (int)i + 7) - 1))));
                for (size_t n = 0; n < N; n++) {
                    double x = get(before, n), error = fabs(get(v, n) - x);
                    double bound = i < 4    ? step
                                   : i == 4 ? fmax(fabs(x) * 0x1p-8, 0x1p-134)
                                            : fmax(fabs(x) * 0x1p-11, 0x1p-25);
                    if (!(error <= bound * (1 + 1e-12)))
                        fail_msg("%s of %g: %g became %g, at most %g is allowed", filters[i], scales[k], x,
                                 get(v, n), bound);
                }
                size_t bytes = i < 4 ? i + 1 : 2;
                assert_int_equal(travel(filters[i], v, 0, N), four || large ? 0 : bytes * N);
                if (!four && !large) {
                    travel(filters[i], v, 100, 50);
                    assert_int_equal(travel(filters[i], v, 17, 1), bytes);
                }
                free(v);
                free(before);
            }
}

/* The mean of many roundings of a value is the value: the sum of their errors is within five standard deviations. */
static void fixed_has_no_bias(void **state)
{
    (void)state;
    enum { TIMES = 200 };
    struct values *v = make(PARAMO_F32, 1), *once = malloc(sizeof *once);
    double *sum = calloc(N, sizeof *sum), step = 0x1p-6, all = 0;
    v->f[0] = 1; /* the greatest: the step is 2^-6 */
    for (unsigned t = 0; t < TIMES; t++) {
        *once = *v;
        assert_true(round_all("fixed:1", once, mix64(t + 1)));
        for (size_t i = 0; i < N; i++)
            sum[i] += (double)once->f[i] - (double)v->f[i];
    }
    for (size_t i = 0; i < N; i++) {
        double place = (double)v->f[i] / step - floor((double)v->f[i] / step);
        double deviation = step * sqrt(TIMES * place * (1 - place));
        if (fabs(sum[i]) > 5 * deviation + 1e-9)
            fail_msg("%g: %u roundings are off by %g, the deviation is %g", (double)v->f[i], TIMES, sum[i],
                     deviation);
        all += sum[i];
    }
    assert_true(fabs(all) < 5 * step / sqrt(6) * sqrt((double)N * TIMES));
    free(sum);
    free(once);
    free(v);
}

/* The result depends on the request, the key and the greatest value of the push, and on nothing else. */
static void a_part_is_rounded_as_the_whole(void **state)
{
    (void)state;
    for (unsigned dtype = PARAMO_F32; dtype <= PARAMO_F64; dtype++) {
        struct values *v = make((paramo_dtype)dtype, 3), *a = malloc(sizeof *a), *b = malloc(sizeof *b);
        *a = *b = *v;
        assert_true(round_all("fixed:2", a, 77));
        for (size_t first = 0; first < N; first += 250)
            assert_true(round_part("fixed:2", b, first, 250, v, 77));
        assert_memory_equal(vals_of(a), vals_of(b), N * value_bytes(v));
        *b = *v;
        assert_true(round_all("fixed:2", b, 78));
        assert_memory_not_equal(vals_of(a), vals_of(b), N * value_bytes(v));
        free(v);
        free(a);
        free(b);
    }
}

static void bits_are_known(void **state)
{
    (void)state;
    struct values *v = make(PARAMO_F32, 1);
    assert_true(round_all("fixed:1", v, 1));
    uint64_t hash = hash_bytes(v->f, sizeof v->f);
    if (hash != UINT64_C(0x8ece87bc40a8e291))
        fail_msg("fixed:1 gives other bits than before: %016llx", (unsigned long long)hash);
    free(v);
}

static void what_is_not_finite(void **state)
{
    (void)state;
    static const double odd[] = {NAN, INFINITY, -INFINITY};
    for (unsigned dtype = PARAMO_F32; dtype <= PARAMO_F64; dtype++)
        for (unsigned i = 0; i < 3; i++) {
            struct values *v = make((paramo_dtype)dtype, 1), *before = malloc(sizeof *before);
            put(v, 3, odd[i]);
            *before = *v;
            assert_false(round_all("fixed:2", v, 1)); /* the push stays as it is */
            assert_memory_equal(vals_of(v), vals_of(before), N * value_bytes(v));
            assert_int_equal(travel("fixed:2", v, 0, N), 0);
            for (unsigned half = 0; half < 2; half++) {
                const char *name = half ? "fp16" : "bf16";
                *v = *before;
                assert_true(round_all(name, v, 1));
                assert_true(i == 0 ? isnan(get(v, 3)) : get(v, 3) == odd[i]);
                assert_int_equal(travel(name, v, 0, N), 2 * N);
                put(v, 5, 1e38 * (dtype == PARAMO_F32 ? 3.4 : 1e100)); /* too large for the format */
                *before = *v;
                assert_true(round_all(name, v, 1));
                assert_true(get(v, 5) == get(before, 5));
                assert_int_equal(travel(name, v, 0, N), 0);
                put(before, 5, 0);
            }
            free(v);
            free(before);
        }
}

/* Each value of a format is its own rounding; the value between two of them goes to the even one. */
static void halves_are_exact(void **state)
{
    (void)state;
    struct values *v = make(PARAMO_F32, 1);
    for (unsigned half = 0; half < 2; half++) {
        const struct filter_setting s = setting(half ? "fp16" : "bf16");
        struct bufpool pool;
        bufpool_init(&pool, 0);
        float last = 0;
        for (uint32_t bits = 0; bits < 0x7c00; bits++) {
            uint16_t wire = (uint16_t)bits;
            uint8_t params = PARAMO_F32;
            struct reader r = reader_over(&params, 1);
            struct filter_message m = {.memory = {.pool = &pool}};
            m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = &wire, .len = 2};
            assert_int_equal(s.ops->decode(&r, &m), PARAMO_OK);
            float value;
            memcpy(&value, m.seg[WIRE_SEG_VALS].data, sizeof value);
            filter_memory_give(&m.memory);
            assert_true(!bits || value > last);
            float got[3] = {value, (value + last) / 2, -value}; /* exact: one bit more */
            struct filter_rows rows = {.dtype = PARAMO_F32, .vals = got, .n = 3, .whole = got, .whole_n = 3};
            assert_true(s.ops->round(&s, &rows));
            assert_true(got[0] == value && got[2] == -value);
            if (bits && (half || value > 1e-37f))
                assert_true(got[1] == (bits & 1 ? last : value));
            last = value;
        }
        bufpool_fini(&pool);
    }
    free(v);
}

static void zeros_have_no_sign(void **state)
{
    (void)state;
    struct values *v = make(PARAMO_F32, 0);
    v->f[9] = -0.f;
    assert_true(round_all("fixed:1", v, 1));
    assert_int_equal(travel("fixed:1", v, 0, N), N);
    v->f[0] = 1;
    v->f[9] = -1e-9f;
    v->f[11] = -0.f;
    assert_true(round_all("fixed:1", v, 1));
    assert_false(signbit(v->f[11]));
    assert_int_equal(travel("fixed:1", v, 0, N), N);
    free(v);
}

static void wrong_parameters_are_refused(void **state)
{
    (void)state;
    struct bufpool pool;
    bufpool_init(&pool, 0);
    static const struct {
        const char *filter;
        uint8_t params[4], len;
        uint64_t bytes;
    } wrong[] = {{"fixed:1", {0, 0, 0}, 3, 8},
                 {"fixed:1", {5, 0, 0}, 3, 10},
                 {"fixed:1", {1, 0, 0x80}, 3, 8},
                 {"fixed:1", {1, 0, 4}, 3, 8},
                 {"fixed:1", {0x21, 0, 0}, 3, 8},
                 {"fixed:3", {3, 0, 0}, 3, 8},
                 {"fixed:1", {1, 0}, 2, 8},
                 {"fixed:1", {1, 0, 0, 0}, 4, 8},
                 {"fixed:1", {1, 0, 0}, 3, 0},
                 {"fixed:1", {1, 0, 0}, 3, FILTER_MESSAGE_MAX / 4 + 1},
                 {"bf16", {2}, 1, 8},
                 {"bf16", {0}, 1, 7},
                 {"fp16", {0, 0}, 2, 8},
                 {"fp16", {1}, 1, FILTER_MESSAGE_MAX / 4 + 2},
                 {"fp16", {0}, 1, 0}};
    uint8_t *data = calloc(1, FILTER_MESSAGE_MAX);
    for (unsigned i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct filter_setting s = setting(wrong[i].filter);
        struct reader r = reader_over(wrong[i].params, wrong[i].len);
        struct filter_message m = {.memory = {.pool = &pool}};
        m.seg[WIRE_SEG_VALS] = (struct van_seg){.data = data, .len = wrong[i].bytes};
        if (s.ops->decode(&r, &m) != PARAMO_E_PROTOCOL)
            fail_msg("case %u was accepted", i);
        assert_int_equal(m.memory.count, 0); /* no memory was taken */
    }
    free(data);
    bufpool_fini(&pool);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(errors_are_bounded),
                                       cmocka_unit_test(fixed_has_no_bias),
                                       cmocka_unit_test(a_part_is_rounded_as_the_whole),
                                       cmocka_unit_test(bits_are_known),
                                       cmocka_unit_test(what_is_not_finite),
                                       cmocka_unit_test(halves_are_exact),
                                       cmocka_unit_test(zeros_have_no_sign),
                                       cmocka_unit_test(wrong_parameters_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
