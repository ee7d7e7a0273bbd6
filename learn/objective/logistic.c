#include "learn/objective/logistic.h"
#include "learn/objective/vector_math.h"

#define LN2 6.93147180559945286227e-01

/* exp(x) for x <= 0. An argument below EXP_LOWEST counts as EXP_LOWEST. */
static double exp_negative(double x)
{
    return exp_clamped(x < EXP_LOWEST ? EXP_LOWEST : x);
}

double link_exp(double x)
{
    return x <= 0 ? exp_negative(x) : 1.0 / exp_negative(-x);
}

/* log(2^k m) = k ln 2 + log(1 + (m - 1)), 1 <= m < 2. */
double link_log(double x)
{
    int exponent;
    double m = 2.0 * frexp(x, &exponent);
    return (double)(exponent - 1) * LN2 + log1p_unit(m - 1.0);
}

double link_probability(float margin)
{
    double m = (double)margin, e = exp_negative(m < 0 ? m : -m);
    return (m < 0 ? e : 1.0) / (1.0 + e);
}

double link_margin(double positives, double negatives)
{
    return link_log(positives + 1.0) - link_log(negatives + 1.0);
}

/* log(1 + exp(m)) - label m, without overflow: max(m, 0) + log(1 + exp(-|m|)) - label m. */
double link_loss(float margin, float label)
{
    double m = (double)margin, e = exp_negative(m < 0 ? m : -m);
    double loss = 0.5 * (m + fabs(m)) - (double)label * m + log1p_unit(e);
    return loss < LINK_MAX_LOSS ? loss : LINK_MAX_LOSS;
}
