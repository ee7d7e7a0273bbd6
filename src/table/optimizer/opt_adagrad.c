/*
 * AdaGrad: h = g + l2 w; n += h^2; eta = alpha / (beta + sqrt n); w = soft(w - eta h, eta l1). State n (s0).
 * soft(x, t) = sign(x) max(|x| - t, 0).
 *
 * Duchi, Hazan, Singer, JMLR 12 (2011): diagonal AdaGrad, composite mirror descent with the l1 norm (5.1).
 */
#include "table/optimizer/optimizer_kernel.h"

FLOAT_SPAN(adagrad)
{
    (void)s1;
    (void)t;
    for (size_t i = 0; i < n; i++) {
        float h = g[i] + o->l2 * w[i];
        float sum = saturate(s0[i] + h * h);
        float eta = o->alpha / (o->beta + sqrtf(sum));
        s0[i] = sum;
        w[i] = soft(w[i] - eta * h, eta * o->l1);
    }
}
SPAN_OF(adagrad)

const struct optimizer_def optimizer_adagrad = {
    .input = OPTIMIZER_GRADIENT,
    .options = OPTIMIZER_ALPHA | OPTIMIZER_L1 | OPTIMIZER_L2 | OPTIMIZER_BETA,
    .planes = 1,
    .squares = true,
    .kernel = GRADIENT_KERNEL(adagrad, optimizer_rows_by_span),
};
