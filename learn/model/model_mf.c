/*
 * Matrix factorization with biases over one batch (Y. Koren, R. Bell, C. Volinsky, "Matrix Factorization Techniques for
 * Recommender Systems", IEEE Computer 42(8), 2009): for ratings with --objective squared, or with any other objective.
 *
 * Eq. (4), with the features of two fields as user and item:
 *   margin = bias + sum_i w_i x_i + <p, q>
 *   p = sum over the features i of the user's field of v_i x_i, q of the item's
 * The bias is the mean rating mu, and the weights of user and item are b_u and b_i. If the user's field has one
 * feature, p = v_user. It may have more: with the ids of the n items that the user rated, each with the value
 * 1 / sqrt(n), p is that of SVD++ (Koren, KDD 2008). Features of other fields have their weights only.
 *
 * Gradient, d the residual of the row: of v_i, d x_i q in the user's field and d x_i p in the item's.
 *
 * A feature whose w is exactly 0 has no factors, as in an FM (factors_clear): so a new user or item has its mean.
 * It never knows of tables, servers or files. Tests: test/learn/test_mf.c.
 */
#include "learn/model/factors.h"
#include "learn/model/model_lr.h"

#include <string.h>

/* Which fields are user and item. */
struct mf_fields {
    uint32_t user, item;
};

/* p at both, q at both + dim. */
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

/* ---- the model ---- */

enum { USER = FACTORS_INIT + 1, ITEM, SETTINGS };

static const struct model_setting settings[SETTINGS] = {
    [FACTORS_DIM] = FACTOR_SETTING(32),
    [FACTORS_INIT] = FACTOR_INIT_SETTING(0.1),
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

static const struct model_table_def tables[] = {
    [FACTORS_W] = WEIGHTS_TABLE,
    [FACTORS_V] = {.name = "v",
                   .prefix = "factor-",
                   .what = "the factors",
                   .optimizer = "adagrad",
                   .alpha = 0.1,
                   .beta = 1,
                   .l2 = 0.1},
};

static struct mf_fields fields_of(const struct model_info *info)
{
    return (struct mf_fields){.user = (uint32_t)info->setting[USER], .item = (uint32_t)info->setting[ITEM]};
}

static size_t mf_scratch(const struct model_info *info, size_t rows)
{
    (void)rows;
    return (size_t)2 * factors_dim(info);
}

static void mf_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                       float *scratch, float *margin)
{
    const struct mf_fields fields = fields_of(info);
    lr_margins(batch, param[FACTORS_W], margin);
    rating_margins_at[vector_level()](batch, &fields, factors_dim(info), param[FACTORS_V], scratch, margin);
}

static void mf_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                        float *scratch, const float *residual, float *const *grad)
{
    const struct mf_fields fields = fields_of(info);
    factors_gradient(info, batch, residual, grad);
    rating_gradients_at[vector_level()](batch, &fields, factors_dim(info), param[FACTORS_V], scratch,
                                        residual, grad[FACTORS_V]);
}

const struct model_ops model_mf = {
    .name = "mf",
    .help = "matrix factorization with biases",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = sizeof tables / sizeof *tables,
    .order = 2,
    .shape = factors_shape,
    .scratch = mf_scratch,
    .mask = factors_mask,
    .margins = mf_margins,
    .gradient = mf_gradient,
};
