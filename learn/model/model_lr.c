#include "learn/model/model_lr.h"
#include "learn/model/model.h"

#include <string.h>

void lr_margins(const struct batch *batch, const float *w, float *margin)
{
    const float bias = w[batch->unique - 1];
    const uint32_t *restrict index = batch->index, *restrict start = batch->start, base = start[0];
    const float *restrict value = batch->value;
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = start[r] - base, end = start[r + 1] - base;
        float sum = bias;
        if (!value)
            for (; i < end; i++)
                sum += w[index[i]];
        else
            for (; i < end; i++)
                sum += w[index[i]] * value[i];
        margin[r] = sum;
    }
}

void lr_gradient(const struct batch *batch, const float *residual, float *g)
{
    memset(g, 0, batch->unique * sizeof *g);
    float bias = 0;
    const uint32_t *restrict index = batch->index, *restrict start = batch->start, base = start[0];
    const float *restrict value = batch->value;
    for (size_t r = 0, rows = batch->rows; r < rows; r++) {
        size_t i = start[r] - base, end = start[r + 1] - base;
        float d = residual[r];
        bias += d;
        if (!value)
            for (; i < end; i++)
                g[index[i]] += d;
        else
            for (; i < end; i++)
                g[index[i]] += d * value[i];
    }
    g[batch->unique - 1] += bias; /* +=: features with the bias's id have added to it */
}

/* ---- the model ---- */

static const struct model_table_def tables[] = {
    {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl", .long_rows = 2},
};

static struct model_shape lr_shape(const struct model_info *info, size_t table)
{
    (void)info;
    (void)table;
    return (struct model_shape){.dim = 1};
}

static void lr_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                             float *scratch, float *margin)
{
    (void)info;
    (void)scratch;
    lr_margins(batch, param[0], margin);
}

static void lr_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                              float *scratch, const float *residual, float *const *grad)
{
    (void)info;
    (void)param;
    (void)scratch;
    lr_gradient(batch, residual, grad[0]);
}

const struct model_ops model_lr = {
    .name = "lr",
    .help = "logistic regression",
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .order = 1,
    .shape = lr_shape,
    .margins = lr_model_margins,
    .gradient = lr_model_gradient,
};
