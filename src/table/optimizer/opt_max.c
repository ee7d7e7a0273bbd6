/*
 * w = max(w, g). Rows begin at 0, so with values that are not negative w is the greatest one pushed so far, in any
 * order. Without state or options.
 */
#include "table/optimizer/optimizer_kernel.h"

FLOAT_SPAN(max)
{
    (void)o;
    (void)s0;
    (void)s1;
    (void)t;
    for (size_t i = 0; i < n; i++)
        w[i] = g[i] > w[i] ? g[i] : w[i];
}
SPAN_OF(max)

const struct optimizer_def optimizer_max = {
    .input = OPTIMIZER_FINITE,
    .kernel = GRADIENT_KERNEL(max, optimizer_rows_by_span),
};
