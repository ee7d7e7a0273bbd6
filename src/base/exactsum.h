/*
 * Exact sums of doubles: the sum is kept as one long integer, so the result is the true sum, rounded once. It has the
 * same bits in every order and however the values are split among sums that are merged. R. M. Neal, "Fast exact
 * summation using small and large superaccumulators", 2015 (the small one).
 *
 *     chunk[i] counts units of 2^(32 i - 1074). A value is cut into two chunks; carries run every EXACTSUM_FREE values.
 *
 * Infinities and NaN are counted beside the chunks. This module never knows what is summed. Tests:
 * test/base/test_exactsum.c.
 */
#ifndef BASE_EXACTSUM_H
#define BASE_EXACTSUM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum {
    EXACTSUM_CHUNKS = 68, /* 2,098 bits of a double's range, and 64 for carries */
    EXACTSUM_FREE = 1000  /* values that a chunk takes without overflow: each adds less than 2^53 */
};

/* Zero-initialised: 0. */
struct exactsum {
    int64_t chunk[EXACTSUM_CHUNKS];
    uint64_t nans, plus, minus; /* infinities */
    unsigned taken;             /* values since carries ran */
};

/* Brings all chunks but the last into 0 .. 2^32 - 1. Then equal sums have equal chunks. */
void exactsum_carry(struct exactsum *s);
void exactsum_add_special(struct exactsum *s, double value);

static inline void exactsum_add(struct exactsum *s, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    unsigned exponent = (unsigned)(bits >> 52) & 0x7ff;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    if (exponent == 0x7ff) {
        exactsum_add_special(s, value);
        return;
    }
    if (exponent)
        mantissa |= UINT64_C(1) << 52;
    else
        exponent = 1;
    unsigned place = exponent - 1;
    int64_t *chunk = &s->chunk[place / 32];
    int64_t low = (int64_t)(mantissa << place % 32 & UINT32_MAX),
            high = (int64_t)(mantissa >> (32 - place % 32));
    int64_t sign = -(int64_t)(bits >> 63); /* 0, or -1: all bits */
    chunk[0] += (low ^ sign) - sign;
    chunk[1] += (high ^ sign) - sign;
    if (++s->taken == EXACTSUM_FREE)
        exactsum_carry(s);
}

/* Adds another sum. Carries run in both. */
void exactsum_merge(struct exactsum *s, struct exactsum *other);
/* The nearest double; ties go to the even one. Infinite, or NaN, if the values say so, or if the sum is too large. */
double exactsum_value(struct exactsum *s);

#endif
