/*
 * Proximal gradient step (ISTA): w = soft(w - alpha (g + l2 w), alpha l1), without state.
 * soft(x, t) = sign(x) max(|x| - t, 0).
 */
#include "table/optimizer/optimizer_kernel.h"

FLOAT_SPAN(sgd)
{
    (void)s0;
    (void)s1;
    (void)t;
    float threshold = o->alpha * o->l1;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        w[i] = soft(w[i] - o->alpha * h, threshold);
    }
}
SPAN_OF(sgd)

const struct optimizer_def optimizer_sgd = {
    .input = OPTIMIZER_GRADIENT,
    .options = OPTIMIZER_ALPHA | OPTIMIZER_L1 | OPTIMIZER_L2,
    .kernel = GRADIENT_KERNEL(sgd, optimizer_rows_by_span),
};
