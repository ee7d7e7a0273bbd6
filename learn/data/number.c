#include "learn/data/number.h"

#include <math.h>
#include <stdlib.h>

#define MAX_NUMBER 127 /* characters of a number that strtof reads; arbitrary */

const char *number_u64_long(const char *p, uint64_t *value)
{
    uint64_t v = 0;
    const char *start = p;
    for (; *p >= '0' && *p <= '9'; p++)
        if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return NULL;
    if (p == start)
        return NULL;
    *value = v;
    return p;
}

static const char *by_strtof(const char *start, const char *end, float *value, const char **what)
{
    char copy[MAX_NUMBER + 1];
    size_t len = (size_t)(end - start);
    if (len > MAX_NUMBER) {
        *what = "a number of more than 127 characters";
        return NULL;
    }
    memcpy(copy, start, len);
    copy[len] = '\0';
    float v = strtof(copy, NULL);
    if (isinf(v)) {
        *what = "a number beyond the range of a float";
        return NULL;
    }
    *value = v;
    return end;
}

/* Does p begin with inf or nan? */
static int is_special(const char *p)
{
    static const char words[][3] = {{'i', 'n', 'f'}, {'n', 'a', 'n'}};
    for (size_t w = 0; w < sizeof words / sizeof *words; w++) {
        size_t i = 0;
        while (i < sizeof *words && (p[i] | 0x20) == words[w][i])
            i++;
        if (i == sizeof *words)
            return 1;
    }
    return 0;
}

static inline int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

const double number_ten[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                             1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* The form of most numbers: up to seven digits, and perhaps a point and up to eight more. NULL: it has another form. */
static inline const char *plain_float(const char *p, int negative, float *value)
{
    unsigned stops = number_stops(p) | 1u << 16;
    const unsigned n = (unsigned)__builtin_ctz(stops);
    if (n == 0 || n > 7)
        return NULL;
    if (p[n] != '.') {
        const float v = (float)number_of(p, n); /* exact: below 2^24 */
        *value = negative ? -v : v;
        return (p[n] | 0x20) == 'e' ? NULL : p + n;
    }
    stops &= stops - 1;
    const unsigned end = (unsigned)__builtin_ctz(stops), part = end - n - 1;
    if (part == 0 || part > 8 || end == 16 || (p[end] | 0x20) == 'e')
        return NULL;
    return number_point(p, n, part, negative, value) ? p + end : NULL;
}

const char *number_float(const char *p, float *value, const char **what)
{
    const char *start = p;
    int negative = *p == '-';
    if (*p == '-' || *p == '+')
        p++;
    const char *plain = plain_float(p, negative, value);
    if (plain)
        return plain;
    uint64_t mantissa = 0;
    const char *digits = p;
    for (; is_digit(*p); p++)
        mantissa = mantissa * 10 + (uint64_t)(*p - '0');
    long count = p - digits;
    int exponent = 0;
    if (*p == '.') {
        const char *fraction = ++p;
        for (; is_digit(*p); p++)
            mantissa = mantissa * 10 + (uint64_t)(*p - '0');
        count += p - fraction;
        exponent = fraction - p < -1000 ? -1000 : (int)(fraction - p);
    }
    if (count == 0) {
        *what = is_special(p) ? "inf and nan are not valid values" : "expected a number";
        return NULL;
    }
    if (*p == 'e' || *p == 'E') {
        const char *q = p + 1;
        int sign = *q == '-' ? -1 : 1;
        if (*q == '-' || *q == '+')
            q++;
        if (!is_digit(*q)) {
            *what = "expected digits after the exponent's e";
            return NULL;
        }
        int e = 0;
        for (; is_digit(*q); q++)
            e = e < 10000 ? e * 10 + (*q - '0') : e;
        exponent += sign * e;
        p = q;
    }
    if (number_scale(mantissa, count, exponent, negative, value))
        return p;
    return by_strtof(start, p, value, what);
}
