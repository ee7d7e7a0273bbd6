#include "learn/model/model_fwfm.h"
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_fm.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* The fields of one row, in the order of their first features, and the sums over their features. */
struct row_fields {
    size_t n;
    uint16_t field[FIELDS_MAX];
    uint16_t features[FIELDS_MAX]; /* of that field; 2 stands for all numbers above 1 */
    float *sum;                    /* s_f at f * dim */
};

/* Where the weight of fields f and g is. */
VECTOR_INLINE size_t pair_place(size_t f, size_t g, size_t fields)
{
    return f < g ? f * fields + g : g * fields + f;
}

/* features[] is 0 for fields that the row before had not: it is put back by row_leave. */
VECTOR_INLINE void row_enter(const struct batch *b, size_t r, int wide, size_t fields, size_t dim,
                             const float *v, struct row_fields *row)
{
    row->n = 0;
    for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
        const size_t f = b->field[i];
        if (f >= fields)
            continue;
        if (row->features[f] == 0) {
            row->field[row->n++] = (uint16_t)f;
            memset(row->sum + f * dim, 0, dim * sizeof *row->sum);
        }
        row->features[f] = row->features[f] == 0 ? 1 : 2;
        factors_add(wide, dim, value_of(b, i), v + (size_t)b->index[i] * dim, row->sum + f * dim);
    }
}

VECTOR_INLINE void row_leave(struct row_fields *row)
{
    for (size_t p = 0; p < row->n; p++)
        row->features[row->field[p]] = 0;
}

/* lane += x (|s_f|^2 - sum_i |v_i x_i|^2) over the features of field f. */
VECTOR_INLINE void own_pairs(const struct batch *b, size_t r, int wide, size_t dim, const float *v, size_t f,
                             float x, const float *sum, float lane[FACTOR_LANES])
{
    factors_dot(wide, dim, x, sum, sum, lane);
    for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
        const float *vi = v + (size_t)b->index[i] * dim, xi = value_of(b, i);
        if (b->field[i] == f)
            factors_dot(wide, dim, -x * (xi * xi), vi, vi, lane);
    }
}

VECTOR_INLINE void margins(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                           const float *weight, float *scratch, float *margin)
{
    struct row_fields row = {.sum = scratch};
    float *met = scratch + fields * dim; /* sum of r_{f,g} s_g over the fields g before f */
    for (size_t r = 0; r < b->rows; r++) {
        float lane[FACTOR_LANES] = {0};
        row_enter(b, r, wide, fields, dim, v, &row);
        for (size_t p = 0; p < row.n; p++) {
            const size_t f = row.field[p];
            memset(met, 0, dim * sizeof *met);
            for (size_t q = 0; q < p; q++)
                factors_add(wide, dim, weight[pair_place(f, row.field[q], fields)],
                            row.sum + row.field[q] * dim, met);
            factors_dot(wide, dim, 1.0f, row.sum + f * dim, met, lane);
            if (row.features[f] > 1)
                own_pairs(b, r, wide, dim, v, f, 0.5f * weight[f * fields + f], row.sum + f * dim, lane);
        }
        row_leave(&row);
        margin[r] += factors_fold(lane);
    }
}

/* The gradient of the pair weights, and into met, at f * dim, the sum of r_{f,g} s_g over the other fields g. */
VECTOR_INLINE void row_meet(const struct batch *b, size_t r, int wide, size_t fields, size_t dim,
                            const float *v, const float *weight, const struct row_fields *row, float d,
                            float *met, float *gr)
{
    for (size_t p = 0; p < row->n; p++) {
        const size_t f = row->field[p];
        const float *s = row->sum + f * dim;
        memset(met + f * dim, 0, dim * sizeof *met);
        for (size_t q = 0; q < p; q++) {
            const size_t g = row->field[q], at = pair_place(f, g, fields);
            float lane[FACTOR_LANES] = {0};
            factors_dot(wide, dim, 1.0f, s, row->sum + g * dim, lane);
            gr[at] += d * factors_fold(lane);
            factors_add(wide, dim, weight[at], row->sum + g * dim, met + f * dim);
            factors_add(wide, dim, weight[at], s, met + g * dim);
        }
        if (row->features[f] > 1) {
            float lane[FACTOR_LANES] = {0};
            own_pairs(b, r, wide, dim, v, f, 0.5f, s, lane);
            gr[f * fields + f] += d * factors_fold(lane);
        }
    }
}

VECTOR_INLINE void gradients(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                             const float *weight, float *scratch, const float *residual, float *gv, float *gr)
{
    struct row_fields row = {.sum = scratch};
    float *met = scratch + fields * dim;
    for (size_t r = 0; r < b->rows; r++) {
        row_enter(b, r, wide, fields, dim, v, &row);
        row_meet(b, r, wide, fields, dim, v, weight, &row, residual[r], met, gr);
        for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
            const size_t f = b->field[i], at = (size_t)b->index[i] * dim;
            if (f >= fields)
                continue;
            const float x = value_of(b, i), dx = residual[r] * x;
            factors_add(wide, dim, dx, met + f * dim, gv + at);
            if (row.features[f] > 1) {
                const float own = dx * weight[f * fields + f];
                factors_add(wide, dim, own, row.sum + f * dim, gv + at);
                factors_add(wide, dim, -own * x, v + at, gv + at);
            }
        }
        row_leave(&row);
    }
}

/* The usual number of factors is a constant. */
VECTOR_INLINE void any_margins(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                               const float *weight, float *scratch, float *margin)
{
    if (dim == 8)
        margins(b, wide, fields, 8, v, weight, scratch, margin);
    else
        margins(b, wide, fields, dim, v, weight, scratch, margin);
}

VECTOR_INLINE void any_gradients(const struct batch *b, int wide, size_t fields, size_t dim, const float *v,
                                 const float *weight, float *scratch, const float *residual, float *gv,
                                 float *gr)
{
    if (dim == 8)
        gradients(b, wide, fields, 8, v, weight, scratch, residual, gv, gr);
    else
        gradients(b, wide, fields, dim, v, weight, scratch, residual, gv, gr);
}

VECTOR_LOOP(void, pair_margins,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *weight,
             float *scratch, float *margin),
            any_margins(b, VECTOR_FLOATS, fields, dim, v, weight, scratch, margin));
VECTOR_LOOP(void, pair_gradients,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *weight,
             float *scratch, const float *residual, float *gv, float *gr),
            any_gradients(b, VECTOR_FLOATS, fields, dim, v, weight, scratch, residual, gv, gr));

size_t fwfm_scratch(uint32_t fields, uint32_t dim)
{
    return (size_t)2 * fields * dim;
}

void fwfm_margins(const struct batch *batch, uint32_t fields, uint32_t dim, const float *w, const float *v,
                  const float *r, float *scratch, float *margin)
{
    lr_margins(batch, w, margin);
    pair_margins_at[vector_level()](batch, fields, dim, v, r, scratch, margin);
}

void fwfm_gradient(const struct batch *batch, uint32_t fields, uint32_t dim, const float *v, const float *r,
                   float *scratch, const float *residual, float *gw, float *gv, float *gr)
{
    lr_gradient(batch, residual, gw);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    memset(gr, 0, (size_t)fields * fields * sizeof *gr);
    pair_gradients_at[vector_level()](batch, fields, dim, v, r, scratch, residual, gv, gr);
}

/* ---- the model ---- */

enum { W, V, R, TABLES };
enum { DIM, INIT, FIELDS, SETTINGS };

static const struct model_setting settings[SETTINGS] = {
    [DIM] = FACTOR_SETTING(8), [INIT] = FACTOR_INIT_SETTING(0.03), [FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.1,
           .beta = 10},
    [R] = {.name = "r",
           .prefix = "pair-",
           .what = "the weights of pairs of fields",
           .optimizer = "adagrad",
           .alpha = 0.1,
           .beta = 10},
};

static uint32_t dim_of(const struct model_info *info)
{
    return (uint32_t)info->setting[DIM];
}

/* An FM at first. */
static struct model_shape fwfm_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    if (table == R)
        return (struct model_shape){.dim = model_fields(info), .mean = 1};
    return (struct model_shape){.dim = dim_of(info), .init = info->setting[INIT]};
}

static size_t fwfm_rows(const struct model_info *info, size_t table)
{
    return table == R ? model_fields(info) : 0;
}

static size_t fwfm_model_scratch(const struct model_info *info, size_t rows)
{
    (void)rows;
    return fwfm_scratch(model_fields(info), dim_of(info));
}

static void fwfm_model_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    fm_mask(batch, dim_of(info), param[W], param[V]);
}

static void fwfm_model_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                               float *scratch, float *margin)
{
    fwfm_margins(batch, model_fields(info), dim_of(info), param[W], param[V], param[R], scratch, margin);
}

static void fwfm_model_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                                float *scratch, const float *residual, float *const *grad)
{
    fwfm_gradient(batch, model_fields(info), dim_of(info), param[V], param[R], scratch, residual, grad[W],
                  grad[V], grad[R]);
}

const struct model_ops model_fwfm = {
    .name = "fwfm",
    .help = "a field-weighted FM",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .shape = fwfm_shape,
    .rows = fwfm_rows,
    .scratch = fwfm_model_scratch,
    .mask = fwfm_model_mask,
    .margins = fwfm_model_margins,
    .gradient = fwfm_model_gradient,
};
