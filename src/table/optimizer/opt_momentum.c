/*
 * Polyak's heavy ball: v = momentum v + (g + l2 w); w = soft(w - alpha v, alpha l1). State v (s0).
 * soft(x, t) = sign(x) max(|x| - t, 0).
 */
#include "table/optimizer/optimizer_kernel.h"

FLOAT_SPAN(momentum)
{
    (void)s1;
    (void)t;
    float threshold = o->alpha * o->l1;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float v = o->momentum * s0[i] + h;
        s0[i] = v;
        w[i] = soft(w[i] - o->alpha * v, threshold);
    }
}
SPAN_OF(momentum)

const struct optimizer_def optimizer_momentum = {
    .input = OPTIMIZER_GRADIENT,
    .options = OPTIMIZER_ALPHA | OPTIMIZER_L1 | OPTIMIZER_L2 | OPTIMIZER_MOMENTUM,
    .planes = 1,
    .kernel = GRADIENT_KERNEL(momentum, optimizer_rows_by_span),
};
