#include "learn/model_fm.h"
#include "learn/model_lr.h"

#include <string.h>

void fm_mask(const struct batch *batch, uint32_t dim, const float *w, float *v)
{
    size_t last = batch->unique - 1;
    for (size_t i = 0; i < last; i++)
        if (w[i] == 0.0f)
            memset(v + i * dim, 0, dim * sizeof *v);
    memset(v + last * dim, 0, dim * sizeof *v);
}

/*
 * The loops below are over factors innermost: lanes that do not depend on each other, so that a compiler
 * vectorises them without changing the order of any sum. dim is a constant where they are instantiated for
 * the usual sizes.
 */
static inline __attribute__((always_inline)) void margins(const struct batch *batch, size_t dim,
                                                          const float *v, float *sum, float *margin)
{
    uint32_t base = batch->start[0];
    float squares[FM_MAX_DIM];
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = batch->start[r] - base, end = batch->start[r + 1] - base;
        float *s = sum + r * dim;
        for (size_t f = 0; f < dim; f++)
            s[f] = squares[f] = 0;
        for (; i < end; i++) {
            float x = batch->value == NULL ? 1.0f : batch->value[i];
            const float *vi = v + (size_t)batch->index[i] * dim;
            for (size_t f = 0; f < dim; f++) {
                float t = vi[f] * x;
                s[f] += t;
                squares[f] += t * t;
            }
        }
        float pairs = 0;
        for (size_t f = 0; f < dim; f++)
            pairs += s[f] * s[f] - squares[f];
        margin[r] += 0.5f * pairs;
    }
}

static inline __attribute__((always_inline)) void factor_gradient(const struct batch *batch, size_t dim,
                                                                  const float *v, const float *sum,
                                                                  const float *residual, float *gv)
{
    uint32_t base = batch->start[0];
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = batch->start[r] - base, end = batch->start[r + 1] - base;
        const float *s = sum + r * dim;
        for (; i < end; i++) {
            float x = batch->value == NULL ? 1.0f : batch->value[i], dx = residual[r] * x;
            const float *vi = v + (size_t)batch->index[i] * dim;
            float *gi = gv + (size_t)batch->index[i] * dim;
            for (size_t f = 0; f < dim; f++)
                gi[f] += dx * (s[f] - vi[f] * x);
        }
    }
}

void fm_margins(const struct batch *batch, uint32_t dim, const float *w, const float *v, float *sum,
                float *margin)
{
    lr_margins(batch, w, margin);
    switch (dim) {
    case 4:
        margins(batch, 4, v, sum, margin);
        break;
    case 8:
        margins(batch, 8, v, sum, margin);
        break;
    case 16:
        margins(batch, 16, v, sum, margin);
        break;
    default:
        margins(batch, dim, v, sum, margin);
    }
}

void fm_gradient(const struct batch *batch, uint32_t dim, const float *v, const float *sum,
                 const float *residual, float *gw, float *gv)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    switch (dim) {
    case 4:
        factor_gradient(batch, 4, v, sum, residual, gv);
        break;
    case 8:
        factor_gradient(batch, 8, v, sum, residual, gv);
        break;
    case 16:
        factor_gradient(batch, 16, v, sum, residual, gv);
        break;
    default:
        factor_gradient(batch, dim, v, sum, residual, gv);
    }
}
