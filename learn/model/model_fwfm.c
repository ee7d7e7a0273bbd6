/*
 * Field-weighted factorization machine over one batch (J. Pan, J. Xu, A. L. Ruiz, W. Zhao, S. Pan, Y. Sun, Q. Lu,
 * "Field-weighted Factorization Machines for Click-Through Rate Prediction in Display Advertising", WWW 2018).
 *
 * Eq. (4), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_{i<j} r_{f_i,f_j} <v_i, v_j> x_i x_j
 * over the features i, j of a row, f_i the field of feature i. r_{f,g} = r_{g,f} is a weight of the pair of fields;
 * with all of them 1 this is an FM.
 *
 * Computed over fields: s_f = sum of v_i x_i over the features of field f. Pairs of different fields give
 * sum_{f<g} r_{f,g} <s_f, s_g>, and those within a field r_{f,f} / 2 (|s_f|^2 - sum_i |v_i x_i|^2).
 * Gradient, d the residual of the row: of v_i, d x_i (sum_{g != f_i} r_{f_i,g} s_g + r_{f_i,f_i} (s_{f_i} - v_i x_i));
 * of r_{f,g}, d <s_f, s_g>; of r_{f,f}, d / 2 (|s_f|^2 - sum_i |v_i x_i|^2). A field with one feature in the row has no
 * pair of its own: that is exactly 0.
 *
 * r has `fields` rows of `fields` values; the weight of fields f <= g is value g of row f, and values before the
 * diagonal are not used. A feature whose w is exactly 0 has no factors, as in an FM (factors_clear). A feature of a
 * field that is not counted has its weight and no pairs. It never knows of tables, servers or files. Tests:
 * test/learn/test_fwfm.c.
 */
#include "learn/model/factors.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* The fields of one row, in the order of their first features, and the sums over their features. */
struct row_fields {
    size_t n;
    uint16_t field[FIELDS_MAX];
    uint16_t features[FIELDS_MAX]; /* of field f, at f; 2 stands for all numbers above 1 */
    float *sum;                    /* s_f at f * dim */
};

/* The place of the weight of fields f and g. */
VECTOR_INLINE size_t pair_place(size_t f, size_t g, size_t fields)
{
    return f < g ? f * fields + g : g * fields + f;
}

/* All of features[] are 0 before: row_leave clears those that the previous row set. */
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

VECTOR_INLINE void margins(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
                           const float *weight, float *scratch, float *margin)
{
    struct row_fields row = {.sum = scratch};
    float *others = scratch + fields * dim; /* sum of r_{f,g} s_g over the fields g before f */
    for (size_t r = 0; r < b->rows; r++) {
        float lane[FACTOR_LANES] = {0};
        row_enter(b, r, wide, fields, dim, v, &row);
        for (size_t p = 0; p < row.n; p++) {
            const size_t f = row.field[p];
            memset(others, 0, dim * sizeof *others);
            for (size_t q = 0; q < p; q++)
                factors_add(wide, dim, weight[pair_place(f, row.field[q], fields)],
                            row.sum + row.field[q] * dim, others);
            factors_dot(wide, dim, 1.0f, row.sum + f * dim, others, lane);
            if (row.features[f] > 1)
                own_pairs(b, r, wide, dim, v, f, 0.5f * weight[f * fields + f], row.sum + f * dim, lane);
        }
        row_leave(&row);
        margin[r] += factors_fold(lane);
    }
}

/* Adds the gradient of the pair weights to gr. Writes to others, at f * dim, the sum of r_{f,g} s_g over the other
 * fields g. */
VECTOR_INLINE void row_pairs(const struct batch *b, size_t r, int wide, size_t fields, size_t dim,
                             const float *v, const float *weight, const struct row_fields *row, float d,
                             float *others, float *gr)
{
    for (size_t p = 0; p < row->n; p++) {
        const size_t f = row->field[p];
        const float *s = row->sum + f * dim;
        memset(others + f * dim, 0, dim * sizeof *others);
        for (size_t q = 0; q < p; q++) {
            const size_t g = row->field[q], at = pair_place(f, g, fields);
            float lane[FACTOR_LANES] = {0};
            factors_dot(wide, dim, 1.0f, s, row->sum + g * dim, lane);
            gr[at] += d * factors_fold(lane);
            factors_add(wide, dim, weight[at], row->sum + g * dim, others + f * dim);
            factors_add(wide, dim, weight[at], s, others + g * dim);
        }
        if (row->features[f] > 1) {
            float lane[FACTOR_LANES] = {0};
            own_pairs(b, r, wide, dim, v, f, 0.5f, s, lane);
            gr[f * fields + f] += d * factors_fold(lane);
        }
    }
}

VECTOR_INLINE void gradients(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
                             const float *weight, float *scratch, const float *residual, float *gv, float *gr)
{
    struct row_fields row = {.sum = scratch};
    float *others = scratch + fields * dim;
    for (size_t r = 0; r < b->rows; r++) {
        row_enter(b, r, wide, fields, dim, v, &row);
        row_pairs(b, r, wide, fields, dim, v, weight, &row, residual[r], others, gr);
        for (size_t i = row_from(b, r); i < row_to(b, r); i++) {
            const size_t f = b->field[i], at = (size_t)b->index[i] * dim;
            if (f >= fields)
                continue;
            const float x = value_of(b, i), dx = residual[r] * x;
            factors_add(wide, dim, dx, others + f * dim, gv + at);
            if (row.features[f] > 1) {
                const float own = dx * weight[f * fields + f];
                factors_add(wide, dim, own, row.sum + f * dim, gv + at);
                factors_add(wide, dim, -own * x, v + at, gv + at);
            }
        }
        row_leave(&row);
    }
}

VECTOR_LOOP(void, pair_margins,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *weight,
             float *scratch, float *margin),
            FACTORS_USUAL(8, margins, dim, b, VECTOR_FLOATS, fields, v, weight, scratch, margin));
VECTOR_LOOP(void, pair_gradients,
            (const struct batch *b, size_t fields, size_t dim, const float *v, const float *weight,
             float *scratch, const float *residual, float *gv, float *gr),
            FACTORS_USUAL(8, gradients, dim, b, VECTOR_FLOATS, fields, v, weight, scratch, residual, gv, gr));

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
                   .alpha = 0.1,
                   .beta = 10,
                   .long_rows = 4},
    [FACTORS_T] = {.name = "r",
                   .prefix = "pair-",
                   .what = "the weights of pairs of fields",
                   .optimizer = "adagrad",
                   .alpha = 0.1,
                   .beta = 10},
};

/* The pair weights begin at 1, so the model begins as an FM. */
static struct model_shape fwfm_shape(const struct model_info *info, size_t table)
{
    return table == FACTORS_T ? (struct model_shape){.dim = model_fields(info), .mean = 1}
                              : factors_shape(info, table);
}

static void fwfm_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                         float *scratch, float *margin)
{
    lr_margins(batch, param[FACTORS_W], margin);
    pair_margins_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V],
                                    param[FACTORS_T], scratch, margin);
}

static void fwfm_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                          float *scratch, const float *residual, float *const *grad)
{
    factors_gradient(info, batch, residual, grad);
    pair_gradients_at[vector_level()](batch, model_fields(info), factors_dim(info), param[FACTORS_V],
                                      param[FACTORS_T], scratch, residual, grad[FACTORS_V], grad[FACTORS_T]);
}

const struct model_ops model_fwfm = {
    .name = "fwfm",
    .help = "a field-weighted FM",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = sizeof settings / sizeof *settings,
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .order = 2,
    .shape = fwfm_shape,
    .rows = fields_rows,
    .scratch = fields_scratch,
    .mask = factors_mask,
    .margins = fwfm_margins,
    .gradient = fwfm_gradient,
};
