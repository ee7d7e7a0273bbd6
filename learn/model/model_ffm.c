/*
 * Field-aware factorization machine over one batch (Y. Juan, Y. Zhuang, W.-S. Chin, C.-J. Lin, "Field-aware Factorization
 * Machines for CTR Prediction", RecSys 2016).
 *
 * Eq. (4), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_{i<j} <v_{i,f_j}, v_{j,f_i}> x_i x_j
 * over the features i, j of a row, f_i the field of feature i. A feature has `dim` factors for each of the fields
 * 0 .. fields - 1: v holds fields * dim values a key, those for field g from g * dim on. Two features of one field are
 * a pair, too. So are two features with the same key.
 *
 * Gradient, d the residual of the row: of w_i, d x_i; of v_{i,g}, d x_i times the sum of v_{j,f_i} x_j over the other
 * features j of field g.
 *
 * A feature whose w is exactly 0 has no factors, as in an FM (factors_clear). A feature of a field that is not counted has
 * its weight and no pairs. All pairs are computed: time grows with the square of the features of a row.
 * It never knows of tables, servers or files. Tests: test/learn/test_ffm.c.
 */
#include "learn/model/factors.h"
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

VECTOR_INLINE void margins(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
                           float *margin)
{
    for (size_t r = 0; r < b->rows; r++)
        margin[r] += pairs_sum(b, row_from(b, r), row_to(b, r), wide, fields, dim, v);
}

/* Both groups of a pair may be the same one: the second addition follows the first. */
VECTOR_INLINE void gradients(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
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

/* 4 and 8 are constants. */
VECTOR_LOOP(void, pair_margins,
            (const struct batch *b, size_t fields, size_t dim, const float *v, float *margin),
            dim == 4 ? margins(4, b, VECTOR_FLOATS, fields, v, margin)
                     : FACTORS_USUAL(8, margins, dim, b, VECTOR_FLOATS, fields, v, margin));
VECTOR_LOOP(void, pair_gradients,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *residual,
             float *gv),
            dim == 4 ? gradients(4, b, VECTOR_FLOATS, fields, v, residual, gv)
                     : FACTORS_USUAL(8, gradients, dim, b, VECTOR_FLOATS, fields, v, residual, gv));

/* ---- the model ---- */

static const struct model_setting settings[] = {[FACTORS_DIM] = FACTOR_SETTING(4),
                                                [FACTORS_INIT] = FACTOR_INIT_SETTING(0.03),
                                                [FACTORS_FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[] = {
    [FACTORS_W] = WEIGHTS_TABLE,
    [FACTORS_V] = {.name = "v",
                   .prefix = "factor-",
                   .what = "the factors",
                   .optimizer = "adagrad",
                   .alpha = 0.1,
                   .beta = 1,
                   .l2 = 0.05},
};

static struct model_shape ffm_shape(const struct model_info *info, size_t table)
{
    struct model_shape shape = factors_shape(info, table);
    if (table == FACTORS_V)
        shape.dim *= model_fields(info);
    return shape;
}

static void ffm_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                        float *scratch, float *margin)
{
    (void)scratch;
    lr_margins(batch, param[FACTORS_W], margin);
    pair_margins_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V], margin);
}

static void ffm_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                         float *scratch, const float *residual, float *const *grad)
{
    (void)scratch;
    factors_gradient(info, batch, residual, grad);
    pair_gradients_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V],
                                      residual, grad[FACTORS_V]);
}

const struct model_ops model_ffm = {
    .name = "ffm",
    .help = "a field-aware FM",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = sizeof settings / sizeof *settings,
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .order = 2,
    .shape = ffm_shape,
    .mask = factors_mask,
    .margins = ffm_margins,
    .gradient = ffm_gradient,
};
