#include "learn/model/factors.h"
#include "learn/model/model_lr.h"

#include <string.h>

void factors_clear(const struct batch *batch, uint32_t dim, const float *w, float *v)
{
    size_t last = batch->unique - 1;
    for (size_t i = 0; i < last; i++)
        if (w[i] == 0.0f)
            memset(v + i * dim, 0, dim * sizeof *v);
    memset(v + last * dim, 0, dim * sizeof *v);
}

uint32_t factors_dim(const struct model_info *info)
{
    return (uint32_t)info->setting[FACTORS_DIM];
}

struct model_shape factors_shape(const struct model_info *info, size_t table)
{
    if (table == FACTORS_W)
        return (struct model_shape){.dim = 1};
    return (struct model_shape){.dim = factors_dim(info), .init = info->setting[FACTORS_INIT]};
}

void factors_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    factors_clear(batch, model_shape(info, FACTORS_V).dim, param[FACTORS_W], param[FACTORS_V]);
}

void factors_gradient(const struct model_info *info, const struct batch *batch, const float *residual,
                      float *const *grad)
{
    lr_gradient(batch, residual, grad[FACTORS_W]);
    for (size_t t = FACTORS_V; t < info->ops->tables; t++) {
        const size_t fixed = model_fixed_rows(info, t), rows = fixed > 0 ? fixed : batch->unique;
        memset(grad[t], 0, rows * model_shape(info, t).dim * sizeof *grad[t]);
    }
}

size_t fields_rows(const struct model_info *info, size_t table)
{
    return table == FACTORS_T ? model_fields(info) : 0;
}

size_t fields_scratch(const struct model_info *info, size_t rows)
{
    (void)rows;
    return (size_t)2 * model_fields(info) * factors_dim(info);
}
