/*
 * RMSProp, as an example for docs/EXTENDING.md: n = beta2 n + (1 - beta2) g^2; w -= alpha g / (sqrt n + epsilon).
 * State n (s0).
 *
 * Tieleman and Hinton, lecture 6.5 of "Neural Networks for Machine Learning", 2012.
 */
#include "table/optimizer/optimizer_kernel.h"

FLOAT_SPAN(rmsprop)
{
    (void)s1;
    (void)t;
    for (size_t i = 0; i < n; i++) {
        float mean = saturate(o->beta2 * s0[i] + (1.0F - o->beta2) * (g[i] * g[i]));
        s0[i] = mean;
        w[i] = w[i] - o->alpha * g[i] / (sqrtf(mean) + o->epsilon);
    }
}
SPAN_OF(rmsprop)

const struct optimizer_def optimizer_rmsprop = {
    .input = OPTIMIZER_GRADIENT,
    .options = OPTIMIZER_ALPHA | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON,
    .planes = 1,
    .squares = true,
    .kernel = GRADIENT_KERNEL(rmsprop, optimizer_rows_by_span),
};
