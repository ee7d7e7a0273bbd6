/*
 * Numbers out of text, fast: shared by the parsers, inline because they are the inner loop.
 *
 * Each function reads at p, of which PARSE_PAD bytes beyond any number are readable (parse.h), and returns
 * where the number ends, or NULL. Plain decimals take the fast path; all others give exactly what strtof
 * gives. It never knows of lines and formats. Tests: test/learn/test_parse_number.c.
 */
#ifndef LEARN_DATA_NUMBER_H
#define LEARN_DATA_NUMBER_H

#include <stdint.h>
#include <string.h>

static inline uint64_t number_load(const char *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    x = __builtin_bswap64(x);
#endif
    return x;
}

/* More than seven digits, or a number that does not fit. */
const char *number_u64_long(const char *p, uint64_t *value);

/* An unsigned decimal: eight characters at once. With t = text ^ "00000000" a byte is a digit's value or
 * above 9; the lowest byte above 9 ends the number (a carry can only spoil higher ones); shifting the digits
 * to the top puts zeros before them, and three multiplications add up pairs, fours and eights. */
static inline const char *number_u64(const char *p, uint64_t *value)
{
    uint64_t t = number_load(p) ^ 0x3030303030303030u;
    uint64_t stop = ((t + 0x7676767676767676u) | t) & 0x8080808080808080u;
    if (__builtin_expect(stop == 0, 0))
        return number_u64_long(p, value);
    unsigned bits = (unsigned)__builtin_ctzll(stop) & ~7u;
    if (__builtin_expect(bits == 0, 0))
        return NULL;
    t <<= 64 - bits;
    t = (t * 10 + (t >> 8)) & 0x00FF00FF00FF00FFu;
    t = (t * 100 + (t >> 16)) & 0x0000FFFF0000FFFFu;
    *value = (t * 10000 + (t >> 32)) & 0xFFFFFFFFu;
    return p + bits / 8;
}

/* A finite float: [+-] digits [. digits] [e [+-] digits], at least one digit before the e. On failure NULL,
 * and *what says why. */
const char *number_float(const char *p, float *value, const char **what);

#endif
