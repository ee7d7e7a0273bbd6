/*
 * fp16: values of two bytes, IEEE 754's binary16 (Micikevicius et al., "Mixed Precision Training", ICLR'18, has what
 * training does with it). A value is rounded to the nearest: the error is at most 2^-11 of the value, and 2^-25
 * below 2^-14. The greatest value is 65504.
 */
#include "filter/halving.h"
#include "wire/capability.h"

enum { BIAS_GAP = 127 - 15, FRACTION_GAP = 23 - 10 };

/* bits / 2^shift, rounded to the nearest, and to the even one between two. */
static uint32_t shifted(uint32_t bits, unsigned shift)
{
    uint32_t half = UINT32_C(1) << (shift - 1), rest = bits & (2 * half - 1), low = bits >> shift;
    return low + (rest > half || (rest == half && low & 1));
}

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    bits &= INT32_MAX;
    uint32_t exponent = bits >> 23, fraction = bits & 0x7fffff;
    if (bits > 0x7f800000) /* a quiet NaN */
        return (uint16_t)(sign | 0x7e00 | fraction >> FRACTION_GAP);
    if (exponent >= 143) /* 2^16 and more, and infinite */
        return (uint16_t)(sign | 0x7c00);
    if (exponent > BIAS_GAP) /* a carry out of the fraction raises the exponent, as it should */
        return (uint16_t)(sign | shifted((exponent - BIAS_GAP) << 23 | fraction, FRACTION_GAP));
    unsigned shift = FRACTION_GAP + 1 + BIAS_GAP - exponent;
    return (uint16_t)(sign | (shift < 25 ? shifted(fraction | 1 << 23, shift) : 0));
}

static float widen(uint16_t half)
{
    uint32_t sign = (uint32_t)(half & 0x8000) << 16, exponent = half >> 10 & 31, fraction = half & 1023;
    float value;
    if (!exponent) {
        value = (float)fraction * 0x1p-24f;
        return sign ? -value : value;
    }
    uint32_t bits = sign | (exponent == 31 ? 255 : exponent + BIAS_GAP) << 23 | fraction << FRACTION_GAP;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const struct half_format fp16 = {.narrow = narrow, .widen = widen};

static bool fp16_round(const struct filter_setting *setting, struct filter_rows *rows)
{
    (void)setting;
    return halving_round(&fp16, rows);
}

static bool fp16_encode(const struct filter_setting *setting, struct filter_message *m, struct writer *params)
{
    (void)setting;
    return halving_encode(&fp16, m, params);
}

static paramo_err fp16_decode(struct reader *params, struct filter_message *m)
{
    return halving_decode(&fp16, "fp16", params, m);
}

const struct filter_ops filter_fp16 = {
    .name = "fp16",
    .id = 6,
    .rank = FILTER_ROUNDS,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ANSWER,
    .capability = CAPABILITY_FP16,
    .lossy = true,
    .help = "values of two bytes with 11 significant bits, at most 65504, rounded to the nearest",
    .unfit = filter_unfit_float,
    .round = fp16_round,
    .encode = fp16_encode,
    .decode = fp16_decode,
};
