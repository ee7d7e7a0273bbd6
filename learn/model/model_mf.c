#include "learn/model/model_mf.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_fm.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* p at both, and q behind it. */
VECTOR_INLINE void user_and_item(const struct batch *b, size_t r, const struct mf_fields *fields, int wide,
                                 size_t dim, const float *v, float *both)
{
    memset(both, 0, 2 * dim * sizeof *both);
    for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
        const float *vi = v + (size_t)b->index[i] * dim;
        if (b->field[i] == fields->user)
            factors_add(wide, dim, value_of(b, i), vi, both);
        if (b->field[i] == fields->item)
            factors_add(wide, dim, value_of(b, i), vi, both + dim);
    }
}

VECTOR_INLINE void margins(const struct batch *b, const struct mf_fields *fields, int wide, size_t dim,
                           const float *v, float *both, float *margin)
{
    for (size_t r = 0; r < b->rows; r++) {
        float lane[FACTOR_LANES] = {0};
        user_and_item(b, r, fields, wide, dim, v, both);
        factors_dot(wide, dim, 1.0f, both, both + dim, lane);
        margin[r] += factors_fold(lane);
    }
}

VECTOR_INLINE void gradients(const struct batch *b, const struct mf_fields *fields, int wide, size_t dim,
                             const float *v, float *both, const float *residual, float *gv)
{
    for (size_t r = 0; r < b->rows; r++) {
        user_and_item(b, r, fields, wide, dim, v, both);
        for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
            const float dx = residual[r] * value_of(b, i);
            float *gi = gv + (size_t)b->index[i] * dim;
            if (b->field[i] == fields->user)
                factors_add(wide, dim, dx, both + dim, gi);
            if (b->field[i] == fields->item)
                factors_add(wide, dim, dx, both, gi);
        }
    }
}

VECTOR_LOOP(void, rating_margins,
            (const struct batch *b, const struct mf_fields *fields, size_t dim, const float *v, float *both,
             float *margin),
            margins(b, fields, VECTOR_FLOATS, dim, v, both, margin));
VECTOR_LOOP(void, rating_gradients,
            (const struct batch *b, const struct mf_fields *fields, size_t dim, const float *v, float *both,
             const float *residual, float *gv),
            gradients(b, fields, VECTOR_FLOATS, dim, v, both, residual, gv));

void mf_margins(const struct batch *batch, const struct mf_fields *fields, uint32_t dim, const float *w,
                const float *v, float *scratch, float *margin)
{
    lr_margins(batch, w, margin);
    rating_margins_at[vector_level()](batch, fields, dim, v, scratch, margin);
}

void mf_gradient(const struct batch *batch, const struct mf_fields *fields, uint32_t dim, const float *v,
                 float *scratch, const float *residual, float *gw, float *gv)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    rating_gradients_at[vector_level()](batch, fields, dim, v, scratch, residual, gv);
}

/* ---- the model ---- */

enum { W, V, TABLES };
enum { DIM, INIT, USER, ITEM, SETTINGS };

static const struct model_setting settings[SETTINGS] = {
    [DIM] = FACTOR_SETTING(32),
    [INIT] = FACTOR_INIT_SETTING(0.1),
    [USER] = {.option = "user-field",
              .manifest = "user_field",
              .meta = "F",
              .help = "number of the field of users",
              .whole = 1,
              .max = UINT16_MAX,
              .initial = 0,
              .fixed = 1,
              .field = FIELD_NUMBER},
    [ITEM] = {.option = "item-field",
              .manifest = "item_field",
              .meta = "F",
              .help = "number of the field of items",
              .whole = 1,
              .max = UINT16_MAX,
              .initial = 1,
              .fixed = 1,
              .field = FIELD_NUMBER},
};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.1,
           .beta = 1,
           .l2 = 0.1},
};

static uint32_t dim_of(const struct model_info *info)
{
    return (uint32_t)info->setting[DIM];
}

static struct mf_fields fields_of(const struct model_info *info)
{
    return (struct mf_fields){.user = (uint32_t)info->setting[USER], .item = (uint32_t)info->setting[ITEM]};
}

static struct model_shape mf_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    return (struct model_shape){.dim = dim_of(info), .init = info->setting[INIT]};
}

static size_t mf_scratch(const struct model_info *info, size_t rows)
{
    (void)rows;
    return (size_t)2 * dim_of(info);
}

static void mf_model_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    fm_mask(batch, dim_of(info), param[W], param[V]);
}

static void mf_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                             float *scratch, float *margin)
{
    const struct mf_fields fields = fields_of(info);
    mf_margins(batch, &fields, dim_of(info), param[W], param[V], scratch, margin);
}

static void mf_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                              float *scratch, const float *residual, float *const *grad)
{
    const struct mf_fields fields = fields_of(info);
    mf_gradient(batch, &fields, dim_of(info), param[V], scratch, residual, grad[W], grad[V]);
}

const struct model_ops model_mf = {
    .name = "mf",
    .help = "matrix factorization with biases",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .shape = mf_shape,
    .scratch = mf_scratch,
    .mask = mf_model_mask,
    .margins = mf_model_margins,
    .gradient = mf_model_gradient,
};
