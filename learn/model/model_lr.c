#include "learn/model/model_lr.h"
#include "learn/model/model.h"

#include <string.h>

void lr_margins(const struct batch *batch, const float *w, float *margin)
{
    float bias = w[batch->unique - 1];
    uint32_t base = batch->start[0];
    for (size_t r = 0; r < batch->rows; r++) {
        size_t i = batch->start[r] - base, end = batch->start[r + 1] - base;
        float sum = bias;
        if (!batch->value)
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
        if (!batch->value)
            for (; i < end; i++)
                g[batch->index[i]] += d;
        else
            for (; i < end; i++)
                g[batch->index[i]] += d * batch->value[i];
    }
    g[batch->unique - 1] += bias; /* +=: a feature with the bias's id is part of it */
}

/* ---- the model ---- */

static const struct model_table_def tables[] = {
    {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
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
