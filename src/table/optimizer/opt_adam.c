/*
 * Adam: h = g + l2 w; t += 1; m = beta1 m + (1 - beta1) h; v = beta2 v + (1 - beta2) h^2;
 * eta = alpha / (sqrt(v / (1 - beta2^t)) + epsilon); w = soft(w - eta m / (1 - beta1^t), eta l1).
 * State m (s0), v (s1), t. soft(x, t) = sign(x) max(|x| - t, 0).
 *
 * Kingma and Ba, ICLR 2015, Algorithm 1. t counts the pushes of a row and stops at 2^24, where both corrections
 * have long been 1.
 */
#include "table/optimizer/optimizer_kernel.h"

/* b^t by squaring, in double: t < 2^25. */
static double power(double b, float t)
{
    double y = 1.0;
    for (uint32_t e = (uint32_t)t; e; e >>= 1) {
        if (e & 1)
            y *= b;
        b *= b;
    }
    return y;
}

FLOAT_SPAN(adam)
{
    float c1 = (float)(1.0 / (1.0 - power((double)o->beta1, t)));
    float c2 = (float)(1.0 / (1.0 - power((double)o->beta2, t)));
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float m = o->beta1 * s0[i] + (1.0F - o->beta1) * h;
        float v = o->beta2 * s1[i] + (1.0F - o->beta2) * (h * h);
        float eta = o->alpha / (sqrtf(saturate(v * c2)) + o->epsilon);
        s0[i] = m;
        s1[i] = saturate(v);
        w[i] = soft(w[i] - eta * (m * c1), eta * o->l1);
    }
}
SPAN_OF(adam)

const struct optimizer_def optimizer_adam = {
    .input = OPTIMIZER_GRADIENT,
    .options =
        OPTIMIZER_ALPHA | OPTIMIZER_L1 | OPTIMIZER_L2 | OPTIMIZER_BETA1 | OPTIMIZER_BETA2 | OPTIMIZER_EPSILON,
    .planes = 2,
    .squares = true,
    .counts = true,
    .kernel = GRADIENT_KERNEL(adam, optimizer_rows_counted),
};
