#include "learn/model/model_mvm.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_fm.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* s_f at sum + f * dim, for all fields. */
VECTOR_INLINE void field_sums(const struct batch *batch, size_t r, int wide, size_t fields, size_t dim,
                              const float *v, const float *b, float *sum)
{
    memcpy(sum, b, fields * dim * sizeof *sum);
    for (size_t i = row_from(batch, r); i < row_to(batch, r); i++) {
        const size_t f = batch->field[i];
        if (f < fields)
            factors_add(wide, dim, value_of(batch, i), v + (size_t)batch->index[i] * dim, sum + f * dim);
    }
}

VECTOR_INLINE void margins(const struct batch *batch, int wide, size_t fields, size_t dim, const float *v,
                           const float *b, float *scratch, float *margin)
{
    float *sum = scratch;
    for (size_t r = 0; r < batch->rows; r++) {
        float lane[FACTOR_LANES] = {0};
        field_sums(batch, r, wide, fields, dim, v, b, sum);
        for (size_t f = 1; f < fields; f++)
            factors_product(wide, dim, sum, sum + f * dim, sum);
        for (size_t k = 0; k < dim; k++)
            lane[k % FACTOR_LANES] += sum[k];
        margin[r] += factors_fold(lane);
    }
}

/* Leaves p_f at p + f * dim, from the last field to the first: `after` is the product of those after f. */
VECTOR_INLINE void other_products(int wide, size_t fields, size_t dim, float *sum, float *p)
{
    float *before = p; /* p_f begins as the product of the fields before f */
    for (size_t k = 0; k < dim; k++)
        before[k] = 1.0f;
    for (size_t f = 1; f < fields; f++)
        factors_product(wide, dim, p + (f - 1) * dim, sum + (f - 1) * dim, p + f * dim);
    for (size_t f = fields - 1; f > 0; f--) {
        /* sum + f * dim becomes the product of the fields from f on */
        if (f + 1 < fields)
            factors_product(wide, dim, sum + f * dim, sum + (f + 1) * dim, sum + f * dim);
        factors_product(wide, dim, p + (f - 1) * dim, sum + f * dim, p + (f - 1) * dim);
    }
}

VECTOR_INLINE void gradients(const struct batch *batch, int wide, size_t fields, size_t dim, const float *v,
                             const float *b, float *scratch, const float *residual, float *gv, float *gb)
{
    float *sum = scratch, *p = scratch + fields * dim;
    for (size_t r = 0; r < batch->rows; r++) {
        const float d = residual[r];
        field_sums(batch, r, wide, fields, dim, v, b, sum);
        other_products(wide, fields, dim, sum, p);
        factors_add(wide, fields * dim, d, p, gb);
        for (size_t i = row_from(batch, r); i < row_to(batch, r); i++) {
            const size_t f = batch->field[i];
            if (f < fields)
                factors_add(wide, dim, d * value_of(batch, i), p + f * dim,
                            gv + (size_t)batch->index[i] * dim);
        }
    }
}

/* The usual number of factors is a constant. */
VECTOR_INLINE void any_margins(const struct batch *batch, int wide, size_t fields, size_t dim, const float *v,
                               const float *b, float *scratch, float *margin)
{
    if (dim == 8)
        margins(batch, wide, fields, 8, v, b, scratch, margin);
    else
        margins(batch, wide, fields, dim, v, b, scratch, margin);
}

VECTOR_INLINE void any_gradients(const struct batch *batch, int wide, size_t fields, size_t dim,
                                 const float *v, const float *b, float *scratch, const float *residual,
                                 float *gv, float *gb)
{
    if (dim == 8)
        gradients(batch, wide, fields, 8, v, b, scratch, residual, gv, gb);
    else
        gradients(batch, wide, fields, dim, v, b, scratch, residual, gv, gb);
}

VECTOR_LOOP(void, view_margins,
            (const struct batch *batch, size_t fields, size_t dim, const float *v, const float *b,
             float *scratch, float *margin),
            any_margins(batch, VECTOR_FLOATS, fields, dim, v, b, scratch, margin));
VECTOR_LOOP(void, view_gradients,
            (const struct batch *batch, size_t fields, size_t dim, const float *v, const float *b,
             float *scratch, const float *residual, float *gv, float *gb),
            any_gradients(batch, VECTOR_FLOATS, fields, dim, v, b, scratch, residual, gv, gb));

size_t mvm_scratch(uint32_t fields, uint32_t dim)
{
    return (size_t)2 * fields * dim;
}

void mvm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                 const float *b, float *scratch, float *margin)
{
    lr_margins(batch, w, margin);
    view_margins_at[vector_level()](batch, fields, dim, v, b, scratch, margin);
}

void mvm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v, const float *b,
                  float *scratch, const float *residual, float *gw, float *gv, float *gb)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    memset(gb, 0, (size_t)fields * dim * sizeof *gb);
    view_gradients_at[vector_level()](batch, fields, dim, v, b, scratch, residual, gv, gb);
}

/* ---- the model ---- */

enum { W, V, B, TABLES };
enum { DIM, INIT, FIELDS, SETTINGS };

static const struct model_setting settings[SETTINGS] = {
    [DIM] = FACTOR_SETTING(8), [INIT] = FACTOR_INIT_SETTING(0.03), [FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.2,
           .beta = 10,
           .l2 = 0.05},
    [B] = {.name = "b",
           .prefix = "field-",
           .what = "the fields' own factors",
           .optimizer = "adagrad",
           .alpha = 0.002,
           .beta = 10},
};

static uint32_t dim_of(const struct model_info *info)
{
    return (uint32_t)info->setting[DIM];
}

static struct model_shape mvm_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    if (table == B)
        return (struct model_shape){.dim = dim_of(info), .mean = 1};
    return (struct model_shape){.dim = dim_of(info), .init = info->setting[INIT]};
}

static size_t mvm_rows(const struct model_info *info, size_t table)
{
    return table == B ? model_fields(info) : 0;
}

static double mvm_offset(const struct model_info *info)
{
    return dim_of(info);
}

static size_t mvm_model_scratch(const struct model_info *info, size_t rows)
{
    (void)rows;
    return mvm_scratch(model_fields(info), dim_of(info));
}

static void mvm_model_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    fm_mask(batch, dim_of(info), param[W], param[V]);
}

static void mvm_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                              float *scratch, float *margin)
{
    mvm_margins(batch, model_fields(info), dim_of(info), param[W], param[V], param[B], scratch, margin);
}

static void mvm_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                               float *scratch, const float *residual, float *const *grad)
{
    mvm_gradient(batch, model_fields(info), dim_of(info), param[V], param[B], scratch, residual, grad[W],
                 grad[V], grad[B]);
}

const struct model_ops model_mvm = {
    .name = "mvm",
    .help = "a multi-view machine",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .shape = mvm_shape,
    .rows = mvm_rows,
    .offset = mvm_offset,
    .scratch = mvm_model_scratch,
    .mask = mvm_model_mask,
    .margins = mvm_model_margins,
    .gradient = mvm_model_gradient,
};
