#include "table/rowinit.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/hash.h"
#include "table/table_options.h"

#define GAMMA UINT64_C(0x9e3779b97f4a7c15) /* SplitMix64's: 2^64 / golden ratio, odd */

void rowinit_setup(struct rowinit *r, const paramo_table_options *o)
{
    *r =
        (struct rowinit){.kind = o->init, .dtype = o->dtype, .a = o->init_a, .b = o->init_b, .seed = o->seed};
}

bool rowinit_varies(const struct rowinit *r)
{
    return r->kind == PARAMO_INIT_UNIFORM || r->kind == PARAMO_INIT_NORMAL;
}

static uint64_t stream_start(uint64_t seed, uint64_t key)
{
    return mix64(key + mix64(seed + GAMMA));
}

uint64_t rowinit_bits(uint64_t seed, uint64_t key, uint32_t col)
{
    return mix64(stream_start(seed, key) + GAMMA * ((uint64_t)col + 1));
}

/* The natural logarithm of a normal positive double: x = m 2^e with m in [sqrt 1/2, sqrt 2), log m = 2
 * atanh s with s = (m-1)/(m+1), |s| < 0.1716; the first term left out of the series is below 1e-17. */
static double natural_log(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    int e = (int)(bits >> 52) - 1023;
    bits = (bits & UINT64_C(0x000fffffffffffff)) | UINT64_C(0x3ff0000000000000);
    double m;
    memcpy(&m, &bits, sizeof m);
    if (m > 1.4142135623730951) {
        m *= 0.5;
        e++;
    }
    double s = (m - 1.0) / (m + 1.0);
    double q = s * s;
    double sum = 0.0;
    for (int k = 21; k >= 1; k -= 2)
        sum = sum * q + 1.0 / k;
    return e * 0.693147180559945309417 + 2.0 * s * sum;
}

static double polynomial(const double c[8], double x)
{
    double y = c[7];
    for (int i = 6; i >= 0; i--)
        y = y * x + c[i];
    return y;
}

/* PPND16 of AS 241: three rational approximations, for the centre, the shoulders and the far tails. */
double rowinit_normal_quantile(double p)
{
    static const double a[8] = {3.3871328727963666080e0,  1.3314166789178437745e+2, 1.9715909503065514427e+3,
                                1.3731693765509461125e+4, 4.5921953931549871457e+4, 6.7265770927008700853e+4,
                                3.3430575583588128105e+4, 2.5090809287301226727e+3};
    static const double b[8] = {1.0,
                                4.2313330701600911252e+1,
                                6.8718700749205790830e+2,
                                5.3941960214247511077e+3,
                                2.1213794301586595867e+4,
                                3.9307895800092710610e+4,
                                2.8729085735721942674e+4,
                                5.2264952788528545610e+3};
    static const double c[8] = {1.42343711074968357734e0,  4.63033784615654529590e0,
                                5.76949722146069140550e0,  3.64784832476320460504e0,
                                1.27045825245236838258e0,  2.41780725177450611770e-1,
                                2.27238449892691845833e-2, 7.74545014278341407640e-4};
    static const double d[8] = {1.0,
                                2.05319162663775882187e0,
                                1.67638483018380384940e0,
                                6.89767334985100004550e-1,
                                1.48103976427480074590e-1,
                                1.51986665636164571966e-2,
                                5.47593808499534494600e-4,
                                1.05075007164441684324e-9};
    static const double e[8] = {6.65790464350110377720e0,  5.46378491116411436990e0,
                                1.78482653991729133580e0,  2.96560571828504891230e-1,
                                2.65321895265761230930e-2, 1.24266094738807843860e-3,
                                2.71155556874348757815e-5, 2.01033439929228813265e-7};
    static const double f[8] = {1.0,
                                5.99832206555887937690e-1,
                                1.36929880922735805310e-1,
                                1.48753612908506148525e-2,
                                7.86869131145613259100e-4,
                                1.84631831751005468180e-5,
                                1.42151175831644588870e-7,
                                2.04426310338993978564e-15};
    double q = p - 0.5;
    if (fabs(q) <= 0.425) {
        double r = 0.180625 - q * q;
        return q * polynomial(a, r) / polynomial(b, r);
    }
    double r = sqrt(-natural_log(q < 0 ? p : 1.0 - p));
    double x = r <= 5.0 ? polynomial(c, r - 1.6) / polynomial(d, r - 1.6)
                        : polynomial(e, r - 5.0) / polynomial(f, r - 5.0);
    return q < 0 ? -x : x;
}

/* 52 bits, centred: exact, and never 0 or 1. */
static double open_unit(uint64_t bits)
{
    return ((double)(bits >> 12) + 0.5) * 0x1p-52;
}

/* Rounding may raise a draw from [a, b) to b. This keeps the interval half open. */
static float below(float x, float b)
{
    return x < b ? x : nextafterf(b, -INFINITY);
}

static void store(paramo_dtype dtype, double x, void *out, size_t i)
{
    switch (dtype) {
    case PARAMO_F32:
        ((float *)out)[i] = (float)x;
        return;
    case PARAMO_F64:
        ((double *)out)[i] = x;
        return;
    case PARAMO_I32:
        ((int32_t *)out)[i] = (int32_t)x;
        return;
    case PARAMO_I64:
        ((int64_t *)out)[i] = (int64_t)x;
        return;
    case PARAMO_U8:
        ((uint8_t *)out)[i] = (uint8_t)x;
        return;
    }
}

void rowinit_fill(const struct rowinit *r, uint64_t key, uint32_t col, uint32_t ncols, void *out)
{
    if (r->kind == PARAMO_INIT_ZERO) {
        memset(out, 0, ncols * table_dtype_size(r->dtype));
        return;
    }
    bool whole = r->dtype != PARAMO_F32 && r->dtype != PARAMO_F64;
    uint64_t state = stream_start(r->seed, key) + GAMMA * col;
    for (uint32_t i = 0; i < ncols; i++) {
        state += GAMMA;
        double x = (double)r->a;
        if (r->kind == PARAMO_INIT_NORMAL) {
            x += (double)r->b * rowinit_normal_quantile(open_unit(mix64(state)));
        } else if (r->kind == PARAMO_INIT_UNIFORM) {
            x += ((double)r->b - (double)r->a) * ((double)(mix64(state) >> 11) * 0x1p-53);
            if (r->dtype == PARAMO_F32)
                x = (double)below((float)x, r->b);
            else if (x >= (double)r->b)
                x = nextafter((double)r->b, -INFINITY);
            if (whole)
                x = floor(x);
        }
        store(r->dtype, x, out, i);
    }
}
