#include "base/exactsum.h"

#include <assert.h>
#include <math.h>

void exactsum_carry(struct exactsum *s)
{
    for (unsigned i = 0; i + 1 < EXACTSUM_CHUNKS; i++) {
        /* two's complement: without low the chunk is a multiple of 2^32, even if it is negative */
        int64_t low = s->chunk[i] & UINT32_MAX;
        s->chunk[i + 1] += (s->chunk[i] - low) / (INT64_C(1) << 32);
        s->chunk[i] = low;
    }
    s->taken = 0;
}

void exactsum_add_special(struct exactsum *s, double value)
{
    s->nans += value != value;
    s->plus += value > 0;
    s->minus += value < 0;
}

void exactsum_merge(struct exactsum *s, struct exactsum *other)
{
    exactsum_carry(s);
    exactsum_carry(other);
    for (unsigned i = 0; i < EXACTSUM_CHUNKS; i++)
        s->chunk[i] += other->chunk[i];
    exactsum_carry(s);
    s->nans += other->nans;
    s->plus += other->plus;
    s->minus += other->minus;
}

static double double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* Chunks are carried and the sum is not negative. top: the highest chunk that is not 0. */
static double rounded(const int64_t *chunk, unsigned top)
{
    uint64_t window = (uint64_t)chunk[top], below = 0;
    bool rest = false;
    if (top == 0)
        return double_of(window); /* units of 2^-1074 are a double's own lowest bits */
    window = window << 32 | (uint64_t)chunk[top - 1];
    below = top > 1 ? (uint64_t)chunk[top - 2] : 0;
    for (unsigned i = 0; i + 2 < top; i++)
        rest |= chunk[i] != 0;
    unsigned zeros = (unsigned)__builtin_clzll(window),
             place = 32 * (top - 1) + 63 - zeros; /* of the first bit */
    if (place < 53)
        return double_of(window);
    assert(zeros < 32);
    window = window << zeros | below << zeros >> 32;
    rest |= (below << zeros & UINT32_MAX) != 0;
    uint64_t kept = window >> 11, half = window & 0x7ff;
    kept += half > 0x400 || (half == 0x400 && (rest || (kept & 1)));
    if (kept >> 53) {
        kept >>= 1;
        place++;
    }
    uint64_t exponent = place - 51;
    return exponent >= 0x7ff ? (double)INFINITY
                             : double_of(exponent << 52 | (kept & ((UINT64_C(1) << 52) - 1)));
}

double exactsum_value(struct exactsum *s)
{
    if (s->nans || (s->plus && s->minus))
        return (double)NAN;
    if (s->plus || s->minus)
        return s->plus ? (double)INFINITY : -(double)INFINITY;
    exactsum_carry(s);
    struct exactsum positive = *s;
    bool negative = s->chunk[EXACTSUM_CHUNKS - 1] < 0;
    for (unsigned i = 0; i < EXACTSUM_CHUNKS && negative; i++)
        positive.chunk[i] = -positive.chunk[i];
    exactsum_carry(&positive);
    unsigned top = EXACTSUM_CHUNKS - 1;
    while (top && !positive.chunk[top])
        top--;
    /* The last chunk holds carries only: any value in it is beyond a double. */
    double value = positive.chunk[top] >> 32 ? (double)INFINITY : rounded(positive.chunk, top);
    return negative ? -value : value;
}
