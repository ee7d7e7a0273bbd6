/*
 * Fast reading of numbers from text: shared by the parsers, and inline because it is their inner loop.
 *
 * Each function reads at p; PARSE_PAD bytes after any number are readable (parse.h). It returns the end of the number,
 * or NULL. Plain decimals take the fast path, and all others give exactly what strtof gives. It never knows of lines
 * and formats. Tests: test/learn/test_parse_number.c.
 */
#ifndef LEARN_DATA_NUMBER_H
#define LEARN_DATA_NUMBER_H

#include <stdint.h>
#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

static inline uint64_t number_load(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* Of the 16 characters at p: bit i is set if p[i] is not a digit. One load shows where several numbers end, so the CPU
 * can begin the next number before this one is read. */
static inline unsigned number_stops(const char *p)
{
#ifdef __SSE2__
    const __m128i t = _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)p), _mm_set1_epi8('0'));
    const __m128i digits = _mm_cmpeq_epi8(_mm_min_epu8(t, _mm_set1_epi8(9)), t);
    return ~(unsigned)_mm_movemask_epi8(digits) & 0xffffu;
#else
    unsigned stops = 0;
    for (unsigned i = 0; i < 2; i++) {
        const uint64_t t = number_load(p + 8 * i) ^ 0x3030303030303030u;
        const uint64_t bits = (((t & 0x7f7f7f7f7f7f7f7fu) + 0x7676767676767676u) | t) & 0x8080808080808080u;
        stops |= (unsigned)((bits >> 7) * 0x0102040810204080u >> 56) << 8 * i;
    }
    return stops;
#endif
}

/* t has eight characters, each ^ '0'; the first digit of a number is the lowest byte, and the digits take `bits` bits.
 * Shifting them to the top puts zeros before them. Three multiplications then add up pairs, fours and eights. */
static inline uint64_t number_fold(uint64_t t, unsigned bits)
{
    t <<= 64 - bits;
    t = (t * 10 + (t >> 8)) & 0x00FF00FF00FF00FFu;
    t = (t * 100 + (t >> 16)) & 0x0000FFFF0000FFFFu;
    return (t * 10000 + (t >> 32)) & 0xFFFFFFFFu;
}

/* The number of n digits at p, 1 to 8. */
static inline uint64_t number_of(const char *p, unsigned n)
{
    return number_fold(number_load(p) ^ 0x3030303030303030u, 8 * n);
}

/* As number_u64, for any number of digits. NULL: there is no digit, or the number is above 2^64 - 1. */
const char *number_u64_long(const char *p, uint64_t *value);

/* An unsigned decimal, read eight characters at once. In t = text ^ "00000000" a byte is a digit's value, or above 9.
 * The lowest byte above 9 ends the number; a carry can make only higher bytes wrong. */
static inline const char *number_u64(const char *p, uint64_t *value)
{
    uint64_t t = number_load(p) ^ 0x3030303030303030u;
    uint64_t stop = ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;
    if (__builtin_expect(stop == 0, 0))
        return number_u64_long(p, value);
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u;
    if (__builtin_expect(bits == 0, 0))
        return NULL;
    *value = number_fold(t, bits);
    return p + bits / 8;
}

extern const double number_ten[23]; /* powers, from 10^0 on */

/* Writes mantissa * 10^exponent to *value; the mantissa was read from `digits` digits. Returns 0 if strtof must do it.
 *
 * Both mantissa and power of ten are exact doubles: one correctly rounded operation (Clinger, "How to read floating
 * point numbers accurately", 1990). Rounding that again to float is right unless the double may be the very middle
 * between two floats (its lower 29 bits). Zero or between 1e-22 and 9e37, it is not subnormal or infinite as a
 * float. */
static inline int number_scale(uint64_t mantissa, long digits, int exponent, int negative, float *value)
{
    if (digits > 19 || mantissa > (UINT64_C(1) << 53) || exponent < -22 || exponent > 22)
        return 0;
    double d =
        exponent < 0 ? (double)mantissa / number_ten[-exponent] : (double)mantissa * number_ten[exponent];
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    if ((bits & 0x1fffffff) == 0x10000000)
        return 0;
    *value = (float)(negative ? -d : d);
    return 1;
}

/* Reads 1 to 7 digits, a point, and 1 to 8 digits at p. Returns 0 if strtof must do it. */
static inline int number_point(const char *p, unsigned whole, unsigned part, int negative, float *value)
{
    static const uint64_t power[] = {1, 10, 100, 1000, 10000, 100000, 1000000, 10000000, 100000000};
    return number_scale(number_of(p, whole) * power[part] + number_of(p + whole + 1, part), whole + part,
                        -(int)part, negative, value);
}

/* A finite float: [+-] digits [. digits] [e [+-] digits], at least one digit before the e. On failure NULL,
 * and *what says why. */
const char *number_float(const char *p, float *value, const char **what);

#endif
