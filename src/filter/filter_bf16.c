/*
 * bf16: values of two bytes, the upper half of an IEEE single (Kalamkar et al., "A Study of BFLOAT16 for Deep
 * Learning Training", 2019). A value is rounded to the nearest: the error is at most 2^-8 of the value.
 */
#include "filter/halving.h"
#include "wire/capability.h"

static uint16_t narrow(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & INT32_MAX) > 0x7f800000) /* a quiet NaN: its upper half alone might be infinite */
        return (uint16_t)(bits >> 16 | 0x40);
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

static float widen(uint16_t half)
{
    uint32_t bits = (uint32_t)half << 16;
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const struct half_format bf16 = {.narrow = narrow, .widen = widen};

static bool bf16_round(const struct filter_setting *setting, struct filter_rows *rows)
{
    (void)setting;
    return halving_round(&bf16, rows);
}

static bool bf16_encode(const struct filter_setting *setting, struct filter_message *m, struct writer *params)
{
    (void)setting;
    return halving_encode(&bf16, m, params);
}

static paramo_err bf16_decode(struct reader *params, struct filter_message *m)
{
    return halving_decode(&bf16, "bf16", params, m);
}

const struct filter_ops filter_bf16 = {
    .name = "bf16",
    .id = 5,
    .rank = FILTER_ROUNDS,
    .directions = 1 << FILTER_PUSH | 1 << FILTER_PULL,
    .codes = FILTER_OF_PUSH | FILTER_OF_ANSWER,
    .capability = CAPABILITY_BF16,
    .lossy = true,
    .help = "values of two bytes with 8 significant bits, rounded to the nearest",
    .unfit = filter_unfit_float,
    .round = bf16_round,
    .encode = bf16_encode,
    .decode = bf16_decode,
};
