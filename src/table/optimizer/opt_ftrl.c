/*
 * FTRL-proximal: sigma = (sqrt(n + g^2) - sqrt n) / alpha; z += g - sigma w; n += g^2;
 * w = 0 if |z| <= l1, else -(z - sign(z) l1) / ((beta + sqrt n) / alpha + l2). State z (s0), n (s1).
 *
 * McMahan et al., KDD 2013, Algorithm 1. w is kept beside its state, so a pull is a copy.
 */
#include "table/optimizer/optimizer_kernel.h"

/* Algorithm 1's closed form; root is sqrt n. */
static inline float ftrl_weight(const struct optimizer *o, float z, float root)
{
    float rest = fabsf(z) - o->l1;
    float w = rest / ((o->beta + root) / o->alpha + o->l2);
    return rest > 0 ? copysignf(w, -z) : 0.0F;
}

FLOAT_SPAN(ftrl)
{
    (void)t;
    for (size_t i = 0; i < n; i++) {
        float sum = saturate(s1[i] + g[i] * g[i]);
        float root = sqrtf(sum);
        float sigma = (root - sqrtf(s1[i])) / o->alpha;
        float z = s0[i] + (g[i] - sigma * w[i]);
        s0[i] = z;
        s1[i] = sum;
        w[i] = ftrl_weight(o, z, root);
    }
}
SPAN_OF(ftrl)

/* A row that starts at w starts with n = 0 and the z that gives w there, z = -w (beta / alpha + l2) - sign(w)
 * l1. w then is set by the formula, which moves it by a rounding error at most. */
static void ftrl_start(const struct optimizer *o, float *w, float *s0, float *s1, size_t n)
{
    float slope = o->beta / o->alpha + o->l2;
    for (size_t i = 0; i < n; i++) {
        float x = w[i];
        float z = x == 0 ? 0.0F : -(x * slope + copysignf(o->l1, x));
        w[i] = ftrl_weight(o, z, 0.0F);
        if (s0) {
            s0[i] = z;
            s1[i] = 0.0F;
        }
    }
}

const struct optimizer_def optimizer_ftrl = {
    .input = OPTIMIZER_GRADIENT,
    .options = OPTIMIZER_ALPHA | OPTIMIZER_L1 | OPTIMIZER_L2 | OPTIMIZER_BETA,
    .planes = 2,
    .squares = true,
    .kernel = GRADIENT_KERNEL(ftrl, optimizer_rows_by_span),
    .start = ftrl_start,
};
