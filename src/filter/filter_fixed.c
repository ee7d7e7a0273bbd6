/*
 * fixed:N: values as whole numbers of N bytes, times a power of two that is chosen for each message (Li et al.,
 * OSDI'14, section 5.1, "fixing-float"). A value between two such numbers becomes the upper one with the
 * probability of its place between them (stochastic rounding; Gupta et al., "Deep Learning with Limited Numerical
 * Precision", ICML'15, section 3). So the error of a value has the mean 0, and is below
 *
 *     step = the least power of two with step * (2^(8N-1) - 1) >= the greatest value of the push or answer
 *
 * A power of two, because the rounded values are then values of the table's type, and encode finds a step from
 * them: the greatest of which all values are multiples. It is at least that of round. So encode takes any part
 * of a push, and loses nothing. A push or answer with a value that is not finite is not rounded.
 *
 *     params    u8 N + 16 * dtype, i16 the step's exponent
 *     values    N bytes each, little-endian, two's complement
 */
#include <math.h>

#include "filter/message.h"
#include "filter/rounding.h"
#include "wire/capability.h"

/* Exponents of steps. The inverse of the least step must be a double. */
enum { EXPONENT_MIN = -900, EXPONENT_MAX = 1023, BYTES_MAX = 4 };

static int64_t most_of(unsigned bytes)
{
    return (INT64_C(1) << (8 * bytes - 1)) - 1;
}

/* The greatest magnitude; infinite or NaN, if any value is. */
static double greatest(paramo_dtype dtype, const void *vals, size_t n)
{
    if (dtype == PARAMO_F32) {
        const float *v = vals;
        uint32_t most = 0;
        for (size_t i = 0; i < n; i++) {
            uint32_t bits;
            memcpy(&bits, &v[i], sizeof bits);
            bits &= INT32_MAX;
            most = bits > most ? bits : most;
        }
        float value;
        memcpy(&value, &most, sizeof value);
        return (double)value;
    }
    const double *v = vals;
    uint64_t most = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t bits;
        memcpy(&bits, &v[i], sizeof bits);
        bits &= INT64_MAX;
        most = bits > most ? bits : most;
    }
    double value;
    memcpy(&value, &most, sizeof value);
    return value;
}

/* The exponent of the least step that is large enough. most: finite, not 0. */
static int step_of(double most, unsigned bytes)
{
    int exponent;
    (void)frexp(most, &exponent);
    exponent -= (int)(8 * bytes - 1);
    return ldexp(most, -exponent) > (double)most_of(bytes) ? exponent + 1 : exponent;
}

/* The multiple of 1 below or above x; |x| is below 2^31. */
static inline double round_one(double x, double draw)
{
    int64_t low = (int64_t)x;
    low -= (double)low > x;
    return (double)(low + (draw < x - (double)low));
}

static void round_row(paramo_dtype dtype, void *row, uint32_t n, uint64_t seed, uint64_t column, double step,
                      double inverse)
{
    float *f = row;
    double *d = row;
    for (uint32_t i = 0; i < n; i++) {
        double x = dtype == PARAMO_F32 ? (double)f[i] : d[i];
        double rounded = round_one(x * inverse, filter_rows_draw(seed, column + i)) * step;
        if (dtype == PARAMO_F32)
            f[i] = (float)rounded;
        else
            d[i] = rounded;
    }
}

static bool fixed_round(const struct filter_setting *setting, struct filter_rows *r)
{
    unsigned bytes = (unsigned)setting->arg, value_bytes = r->dtype == PARAMO_F32 ? 4 : 8;
    double most = greatest(r->dtype, r->whole, r->whole_n);
    if (bytes >= value_bytes || !isfinite(most))
        return false;
    if (most == 0) {
        memset(r->vals, 0, r->n * value_bytes); /* no zeros with a sign */
        return true;
    }
    int exponent = step_of(most, bytes);
    if (exponent < EXPONENT_MIN)
        return false;
    double step = ldexp(1, exponent), inverse = ldexp(1, -exponent);
    uint8_t *row = r->vals;
    for (uint32_t i = 0; i < r->count; i++) {
        uint32_t n = r->lens ? r->lens[i] : r->row_values;
        uint64_t seed = filter_rows_seed(r, i);
        if (r->dtype == PARAMO_F32)
            round_row(PARAMO_F32, row, n, seed, r->column, step, inverse);
        else
            round_row(PARAMO_F64, row, n, seed, r->column, step, inverse);
        row += (size_t)n * value_bytes;
    }
    return true;
}

/* A value is bits * 2^exponent, with odd bits. */
static int lowest_bit(double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int exponent = (int)(bits >> 52 & 0x7ff);
    mantissa |= exponent ? UINT64_C(1) << 52 : 0;
    return (exponent ? exponent : 1) - 1075 + __builtin_ctzll(mantissa);
}

static double value_at(paramo_dtype dtype, const void *vals, size_t i)
{
    return dtype == PARAMO_F32 ? (double)((const float *)vals)[i] : ((const double *)vals)[i];
}

/* The exponent of the greatest step of which all values are multiples. False: there is none for that many bytes. */
static bool step_find(paramo_dtype dtype, const void *vals, size_t n, unsigned bytes, int *exponent)
{
    double most = greatest(dtype, vals, n);
    int least = EXPONENT_MAX;
    if (!isfinite(most))
        return false;
    for (size_t i = 0; i < n; i++) {
        double value = value_at(dtype, vals, i);
        int low = value != 0 ? lowest_bit(value) : EXPONENT_MAX;
        if (value == 0 && signbit(value))
            return false;
        least = low < least ? low : least;
    }
    *exponent = most == 0 ? 0 : least;
    return *exponent >= EXPONENT_MIN && ldexp(most, -*exponent) <= (double)most_of(bytes);
}

static inline void store(uint8_t *to, int64_t q, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        to[i] = (uint8_t)((uint64_t)q >> 8 * i);
}

static inline int64_t load(const uint8_t *from, unsigned bytes)
{
    uint64_t q = 0;
    for (unsigned i = 0; i < bytes; i++)
        q |= (uint64_t)from[i] << 8 * i;
    unsigned shift = 64 - 8 * bytes;
    return (int64_t)(q << shift) >> shift;
}

static bool fixed_encode(const struct filter_setting *setting, struct filter_message *m,
                         struct writer *params)
{
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    unsigned bytes = (unsigned)setting->arg;
    int exponent;
    if (!filter_rows_rounds(m->dtype) || bytes >= m->value_bytes || !seg->len)
        return false;
    size_t n = (size_t)seg->len / m->value_bytes;
    if (!step_find(m->dtype, seg->data, n, bytes, &exponent))
        return false;
    uint8_t *to = filter_memory_take(&m->memory, n * bytes);
    if (!to)
        return false;
    double inverse = ldexp(1, -exponent);
    for (size_t i = 0; i < n; i++)
        store(to + i * bytes, (int64_t)(value_at(m->dtype, seg->data, i) * inverse), bytes);
    write_u8(params, (uint8_t)(bytes | (unsigned)m->dtype << 4));
    write_u16(params, (uint16_t)exponent);
    *seg = (struct van_seg){.data = to, .len = n * bytes};
    return true;
}

static paramo_err fixed_decode(struct reader *params, struct filter_message *m)
{
    struct van_seg *seg = &m->seg[WIRE_SEG_VALS];
    unsigned what = read_u8(params), bytes = what & 15;
    int exponent = (int16_t)read_u16(params);
    paramo_dtype dtype = (paramo_dtype)(what >> 4);
    if (!reader_done(params) || !filter_rows_rounds(dtype) || !bytes || bytes > BYTES_MAX || !seg->len ||
        seg->len % bytes || exponent < EXPONENT_MIN || exponent > EXPONENT_MAX)
        return err_set(PARAMO_E_PROTOCOL, "fixed: %u bytes with exponent %d are not valid", bytes, exponent);
    size_t n = (size_t)seg->len / bytes, value_bytes = dtype == PARAMO_F32 ? 4 : 8;
    if (n * value_bytes > FILTER_MESSAGE_MAX)
        return err_set(PARAMO_E_PROTOCOL, "fixed: %zu values are too many", n);
    void *to = filter_memory_take(&m->memory, n * value_bytes);
    if (!to)
        return err_memory(n * value_bytes);
    const uint8_t *from = seg->data;
    double step = ldexp(1, exponent);
    for (size_t i = 0; i < n; i++) {
        double value = (double)load(from + i * bytes, bytes) * step;
        if (dtype == PARAMO_F32)
            ((float *)to)[i] = (float)value;
        else
            ((double *)to)[i] = value;
    }
    *seg = (struct van_seg){.data = to, .len = n * value_bytes};
    return PARAMO_OK;
}

const struct filter_ops filter_fixed = {
    .name = "fixed",
    .id = 4,
    .rank = FILTER_ROUNDS,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ANSWER,
    .capability = CAPABILITY_FIXED,
    .lossy = true,
    .whole = true,
    .meta = "BYTES",
    .min = 1,
    .max = BYTES_MAX,
    .preset = NAN,
    .help = "values as whole numbers of 1 to 4 bytes times a step, rounded at random without bias",
    .unfit = filter_unfit_float,
    .round = fixed_round,
    .encode = fixed_encode,
    .decode = fixed_decode,
};
