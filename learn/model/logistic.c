#include "learn/model/logistic.h"
#include "learn/objective/vector.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define LOWEST (-700.0)

/* exp(x) for LOWEST <= x <= 0: x = k ln 2 + r with |r| <= ln(2)/2, exp(r) by its Taylor series to r^12 (the
 * rest is below 1e-15), then the exponent field is set to k. */
VECTOR_INLINE double exp_clamped(double x)
{
    static const double log2e = 1.4426950408889634, ln2_high = 6.93147180369123816490e-01,
                        ln2_low = 1.90821492927058770002e-10;
    int32_t k = (int32_t)(x * log2e - 0.5); /* x <= 0: cutting toward zero rounds to nearest */
    double r = (x - (double)k * ln2_high) - (double)k * ln2_low;
    double p = 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    int64_t bits = (int64_t)(k + 1023) * ((int64_t)1 << 52);
    double scale;
    memcpy(&scale, &bits, sizeof scale);
    return p * scale;
}

/* x <= 0. Below -700 (1e-304) the argument is held there: nothing tells them apart. */
static double exp_negative(double x)
{
    return exp_clamped(x < LOWEST ? LOWEST : x);
}

/* log(1 + e) for 0 <= e <= 1: 2 artanh(s) with s = e / (2 + e) <= 1/3, by its series to s^29. */
VECTOR_INLINE double log1p_unit(double e)
{
    double s = e / (2.0 + e), q = s * s, p = 1.0 / 29;
    p = p * q + 1.0 / 27;
    p = p * q + 1.0 / 25;
    p = p * q + 1.0 / 23;
    p = p * q + 1.0 / 21;
    p = p * q + 1.0 / 19;
    p = p * q + 1.0 / 17;
    p = p * q + 1.0 / 15;
    p = p * q + 1.0 / 13;
    p = p * q + 1.0 / 11;
    p = p * q + 1.0 / 9;
    p = p * q + 1.0 / 7;
    p = p * q + 1.0 / 5;
    p = p * q + 1.0 / 3;
    p = p * q + 1.0;
    return 2.0 * s * p;
}

double link_probability(float margin)
{
    double m = (double)margin, e = exp_negative(m < 0 ? m : -m);
    return (m < 0 ? e : 1.0) / (1.0 + e);
}

/* log(2^k m) = k ln 2 + log(1 + (m - 1)), 1 <= m < 2. */
static double log_of(double x)
{
    int exponent;
    double m = 2.0 * frexp(x, &exponent);
    return (double)(exponent - 1) * 6.93147180559945286227e-01 + log1p_unit(m - 1.0);
}

double link_margin(size_t positives, size_t negatives)
{
    return log_of((double)positives + 1.0) - log_of((double)negatives + 1.0);
}

/* log(1 + exp(m)) - label m, without overflow: max(m, 0) + log(1 + exp(-|m|)) - label m. */
VECTOR_INLINE double loss_from(double m, double e, double label)
{
    double loss = 0.5 * (m + fabs(m)) - label * m + log1p_unit(e);
    return loss < LINK_MAX_LOSS ? loss : LINK_MAX_LOSS;
}

double link_loss(float margin, float label)
{
    double m = (double)margin;
    return loss_from(m, exp_negative(m < 0 ? m : -m), (double)label);
}

/* In strips: the first loops have no dependence between rows and become vector code, the sum keeps its order.
 * The clamp is a loop of its own since compilers else carry its constant through all that follows, as a
 * branch. */
VECTOR_INLINE double residuals(const float *margin, const float *label, size_t n, float *residual)
{
    double sum = 0;
    for (size_t at = 0; at < n; at += 64) {
        size_t strip = n - at < 64 ? n - at : 64;
        double x[64], loss[64];
        for (size_t i = 0; i < strip; i++) {
            double m = -fabs((double)margin[at + i]);
            x[i] = m < LOWEST ? LOWEST : m;
        }
        for (size_t i = 0; i < strip; i++)
            x[i] = exp_clamped(x[i]);
        for (size_t i = 0; i < strip; i++) {
            double m = (double)margin[at + i], y = (double)label[at + i], e = x[i];
            loss[i] = loss_from(m, e, y);
            residual[at + i] = (float)((m < 0 ? e : 1.0) / (1.0 + e) - y);
        }
        for (size_t i = 0; i < strip; i++)
            sum += loss[i];
    }
    return sum;
}

VECTOR_LOOP(double, residuals, (const float *margin, const float *label, size_t n, float *residual),
            residuals(margin, label, n, residual));

double link_residuals(const float *margin, const float *label, size_t n, float *residual)
{
    return residuals_at[vector_level()](margin, label, n, residual);
}
