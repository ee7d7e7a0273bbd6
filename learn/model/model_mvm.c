/*
 * Multi-view machine over one batch (B. Cao, H. Zhou, G. Li, P. S. Yu, "Multi-view Machines", WSDM 2016). A view is a
 * field.
 *
 * Eq. (6), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_k prod_f s_{f,k},   s_{f,k} = b_{f,k} + sum over the features i of field f of
 *   v_{i,k} x_i
 * over the factors k and all fields f = 0 .. fields - 1. b_f are the factors of field f itself, those of a constant
 * feature in each view. So the product has the interactions of every order, from single features to all fields at
 * once, and where a row has no feature of a field, its factor is b_f.
 *
 * Gradient, d the residual of the row and p_{f,k} the product of s_{g,k} over the fields g other than f: of b_{f,k},
 * d p_{f,k}; of v_{i,k}, d x_i p_{f_i,k}. p_f is the product of the sums before f and of those after it, without a
 * division: a sum may be 0.
 *
 * b has `fields` rows of `dim` values. They begin at 1, so the margin of a new model without bias is about dim. A
 * feature whose w is exactly 0 has no factors, as in an FM (factors_clear). A feature of a field that is not counted
 * has its weight only. It never knows of tables, servers or files. Tests: test/learn/test_mvm.c.
 */
#include "learn/model/factors.h"
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

VECTOR_INLINE void margins(size_t dim, const struct batch *batch, int wide, size_t fields, const float *v,
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

/* Writes p_f to p + f * dim. sum is used up. */
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

VECTOR_INLINE void gradients(size_t dim, const struct batch *batch, int wide, size_t fields, const float *v,
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

VECTOR_LOOP(void, view_margins,
            (const struct batch *batch, size_t fields, size_t dim, const float *v, const float *b,
             float *scratch, float *margin),
            FACTORS_USUAL(8, margins, dim, batch, VECTOR_FLOATS, fields, v, b, scratch, margin));
VECTOR_LOOP(void, view_gradients,
            (const struct batch *batch, size_t fields, size_t dim, const float *v, const float *b,
             float *scratch, const float *residual, float *gv, float *gb),
            FACTORS_USUAL(8, gradients, dim, batch, VECTOR_FLOATS, fields, v, b, scratch, residual, gv, gb));

/* ---- the model ---- */

static const struct model_setting settings[] = {[FACTORS_DIM] = FACTOR_SETTING(8),
                                                [FACTORS_INIT] = FACTOR_INIT_SETTING(0.03),
                                                [FACTORS_FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[] = {
    [FACTORS_W] = WEIGHTS_TABLE,
    [FACTORS_V] = {.name = "v",
                   .prefix = "factor-",
                   .what = "the factors",
                   .optimizer = "adagrad",
                   .alpha = 0.2,
                   .beta = 10,
                   .l2 = 0.05},
    [FACTORS_T] = {.name = "b",
                   .prefix = "field-",
                   .what = "the fields' own factors",
                   .optimizer = "adagrad",
                   .alpha = 0.002,
                   .beta = 10},
};

static struct model_shape mvm_shape(const struct model_info *info, size_t table)
{
    return table == FACTORS_T ? (struct model_shape){.dim = factors_dim(info), .mean = 1}
                              : factors_shape(info, table);
}

static double mvm_offset(const struct model_info *info)
{
    return factors_dim(info);
}

static void mvm_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                        float *scratch, float *margin)
{
    lr_margins(batch, param[FACTORS_W], margin);
    view_margins_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V],
                                    param[FACTORS_T], scratch, margin);
}

static void mvm_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                         float *scratch, const float *residual, float *const *grad)
{
    factors_gradient(info, batch, residual, grad);
    view_gradients_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V],
                                      param[FACTORS_T], scratch, residual, grad[FACTORS_V], grad[FACTORS_T]);
}

const struct model_ops model_mvm = {
    .name = "mvm",
    .help = "a multi-view machine",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = sizeof settings / sizeof *settings,
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .shape = mvm_shape,
    .rows = fields_rows,
    .offset = mvm_offset,
    .scratch = fields_scratch,
    .mask = factors_mask,
    .margins = mvm_margins,
    .gradient = mvm_gradient,
};
