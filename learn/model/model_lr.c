#include "learn/model/model_lr.h"

#include <string.h>

void lr_margins(const struct batch *batch, const float *w, float *margin)
{
    float bias = w[batch->unique - 1];
    uint32_t base = batch->start[0];
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = batch->start[r] - base, end = batch->start[r + 1] - base;
        float sum = bias;
        if (batch->value == NULL)
            for (; i < end; i++)
                sum += w[batch->index[i]];
        else
            for (; i < end; i++)
                sum += w[batch->index[i]] * batch->value[i];
        margin[r] = sum;
    }
}

void lr_gradient(const struct batch *batch, const float *residual, float *g)
{
    memset(g, 0, batch->unique * sizeof *g);
    float bias = 0;
    uint32_t base = batch->start[0];
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = batch->start[r] - base, end = batch->start[r + 1] - base;
        float d = residual[r];
        bias += d;
        if (batch->value == NULL)
            for (; i < end; i++)
                g[batch->index[i]] += d;
        else
            for (; i < end; i++)
                g[batch->index[i]] += d * batch->value[i];
    }
    g[batch->unique - 1] += bias; /* +=: a feature with the bias's id is part of it */
}
