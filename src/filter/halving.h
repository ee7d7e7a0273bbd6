/*
 * What bf16 and fp16 share: values of two bytes in a format of their own. A value that the format cannot hold,
 * because it is finite and too large, stays as it is, and the message with it travels as it is. Infinite values
 * stay, and a NaN stays a NaN. Their params are one byte, the type of the values. It must never know a format.
 * Tests: test/filter/test_rounding.c.
 */
#ifndef FILTER_HALVING_H
#define FILTER_HALVING_H

#include "filter/message.h"
#include "filter/rounding.h"

struct half_format {
    uint16_t (*narrow)(float value); /* to the nearest; ties to even */
    float (*widen)(uint16_t half);   /* exact */
};

bool halving_round(const struct half_format *format, struct filter_rows *rows);
bool halving_encode(const struct half_format *format, struct filter_message *m, struct writer *params);
MUST_USE paramo_err halving_decode(const struct half_format *format, const char *name, struct reader *params,
                                   struct filter_message *m);

#endif
