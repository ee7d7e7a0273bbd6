/*
 * exp and log for loops that run at every vector level (learn/objective/vector.h), in operations that IEEE 754 fixes:
 * they give the same bits on every machine. The relative error of each is below 1e-14. It never knows what is computed
 * with them. Tests: test/learn/test_logistic.c, test_objective.c.
 */
#ifndef LEARN_OBJECTIVE_VECTOR_MATH_H
#define LEARN_OBJECTIVE_VECTOR_MATH_H

#include "learn/objective/vector.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* The least argument of exp_clamped: exp(-700) is 1e-304, and no caller distinguishes smaller values. */
#define EXP_LOWEST (-700.0)

/* exp(x) for EXP_LOWEST <= x <= 0: x = k ln 2 + r with |r| <= ln(2)/2, exp(r) by its Taylor series to r^12 (the
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

#endif
