#include "learn/model/model_ffm.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_fm.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* The factors of feature i of the batch for field g. */
VECTOR_INLINE size_t group(const struct batch *b, size_t i, size_t g, size_t fields, size_t dim)
{
    return ((size_t)b->index[i] * fields + g) * dim;
}

/* The sum over the pairs of features from .. to - 1. With spans of whole registers the lanes are kept in them. */
VECTOR_INLINE float pairs_sum(const struct batch *b, size_t from, size_t to, int wide, size_t fields,
                              size_t dim, const float *v)
{
    float lane[FACTOR_LANES] = {0};
    factor_wide8 eight = {0};
    factor_wide4 low = {0}, high = {0};
    for (size_t i = from; i < to; i++) {
        const size_t fi = b->field[i];
        const float xi = value_of(b, i);
        for (size_t j = from; fi < fields && j < i; j++) {
            const size_t fj = b->field[j];
            if (fj >= fields)
                continue;
            const float x = xi * value_of(b, j), *p = v + group(b, i, fj, fields, dim),
                        *q = v + group(b, j, fi, fields, dim);
            if (dim % 8 == 0 && wide >= 8)
                for (size_t k = 0; k < dim; k += 8)
                    eight += x * (*(const factor_wide8 *)(p + k) * *(const factor_wide8 *)(q + k));
            else if (dim % 8 == 0)
                for (size_t k = 0; k < dim; k += 8) {
                    low += x * (*(const factor_wide4 *)(p + k) * *(const factor_wide4 *)(q + k));
                    high += x * (*(const factor_wide4 *)(p + k + 4) * *(const factor_wide4 *)(q + k + 4));
                }
            else if (dim == 4)
                low += x * (*(const factor_wide4 *)p * *(const factor_wide4 *)q);
            else
                factors_dot(wide, dim, x, p, q, lane);
        }
    }
    if (dim % 8 == 0 && wide >= 8) {
        memcpy(lane, &eight, sizeof eight);
    } else if (dim % 8 == 0 || dim == 4) {
        memcpy(lane, &low, sizeof low);
        memcpy(lane + 4, &high, sizeof high);
    }
    return factors_fold(lane);
}

VECTOR_INLINE void margins(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                           float *margin)
{
    for (size_t r = 0; r < b->rows; r++)
        margin[r] += pairs_sum(b, row_from(b, r), row_to(b, r), wide, fields, dim, v);
}

/* Both groups of a pair may be the same one: the second addition follows the first. */
VECTOR_INLINE void gradients(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                             const float *residual, float *gv)
{
    for (size_t r = 0; r < b->rows; r++) {
        const size_t from = row_from(b, r), to = row_to(b, r);
        for (size_t i = from; i < to; i++) {
            const size_t fi = b->field[i];
            const float dx = residual[r] * value_of(b, i);
            for (size_t j = from; fi < fields && j < i; j++) {
                const size_t fj = b->field[j];
                if (fj >= fields)
                    continue;
                const size_t p = group(b, i, fj, fields, dim), q = group(b, j, fi, fields, dim);
                const float x = dx * value_of(b, j);
                factors_add(wide, dim, x, v + q, gv + p);
                factors_add(wide, dim, x, v + p, gv + q);
            }
        }
    }
}

/* The usual numbers of factors are constants. */
VECTOR_INLINE void any_margins(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                               float *margin)
{
    if (dim == 4)
        margins(b, wide, fields, 4, v, margin);
    else if (dim == 8)
        margins(b, wide, fields, 8, v, margin);
    else
        margins(b, wide, fields, dim, v, margin);
}

VECTOR_INLINE void any_gradients(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                                 const float *residual, float *gv)
{
    if (dim == 4)
        gradients(b, wide, fields, 4, v, residual, gv);
    else if (dim == 8)
        gradients(b, wide, fields, 8, v, residual, gv);
    else
        gradients(b, wide, fields, dim, v, residual, gv);
}

VECTOR_LOOP(void, pair_margins,
            (const struct batch *b, size_t fields, size_t dim, const float *v, float *margin),
            any_margins(b, VECTOR_FLOATS, fields, dim, v, margin));
VECTOR_LOOP(void, pair_gradients,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *residual,
             float *gv),
            any_gradients(b, VECTOR_FLOATS, fields, dim, v, residual, gv));

void ffm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                 float *margin)
{
    lr_margins(batch, w, margin);
    pair_margins_at[vector_level()](batch, fields, dim, v, margin);
}

void ffm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v,
                  const float *residual, float *gw, float *gv)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * fields * dim * sizeof *gv);
    pair_gradients_at[vector_level()](batch, fields, dim, v, residual, gv);
}

/* ---- the model ---- */

enum { W, V, TABLES };
enum { DIM, INIT, FIELDS, SETTINGS };

static const struct model_setting settings[SETTINGS] = {
    [DIM] = FACTOR_SETTING(4), [INIT] = FACTOR_INIT_SETTING(0.03), [FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.1,
           .beta = 1,
           .l2 = 0.05},
};

static uint32_t dim_of(const struct model_info *info)
{
    return (uint32_t)info->setting[DIM];
}

static struct model_shape ffm_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    return (struct model_shape){.dim = dim_of(info) * model_fields(info), .init = info->setting[INIT]};
}

static void ffm_model_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    fm_mask(batch, dim_of(info) * model_fields(info), param[W], param[V]);
}

static void ffm_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                              float *scratch, float *margin)
{
    (void)scratch;
    ffm_margins(batch, model_fields(info), dim_of(info), param[W], param[V], margin);
}

static void ffm_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                               float *scratch, const float *residual, float *const *grad)
{
    (void)scratch;
    ffm_gradient(batch, model_fields(info), dim_of(info), param[V], residual, grad[W], grad[V]);
}

const struct model_ops model_ffm = {
    .name = "ffm",
    .help = "a field-aware FM",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .shape = ffm_shape,
    .mask = ffm_model_mask,
    .margins = ffm_model_margins,
    .gradient = ffm_model_gradient,
};
