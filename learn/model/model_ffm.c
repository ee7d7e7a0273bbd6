/*
 * Field-aware factorization machine over one batch (Y. Juan, Y. Zhuang, W.-S. Chin, C.-J. Lin, "Field-aware
 * Factorization Machines for CTR Prediction", RecSys 2016).
 *
 * Eq. (4), with weights and a bias:
 *   margin = bias + sum_i w_i x_i + sum_{i<j} <v_{i,f_j}, v_{j,f_i}> x_i x_j
 * over the features i, j of a row, f_i the field of feature i. A feature has `dim` factors for each of the fields
 * 0 .. fields - 1: v holds fields * dim values a key, those for field g from g * dim on. Two features of one field are
 * a pair, too, as are two features with the same key.
 *
 * Gradient, d the residual of the row: of w_i, d x_i; of v_{i,g}, d x_i times the sum of v_{j,f_i} x_j over the other
 * features j of field g.
 *
 * A feature whose w is exactly 0 has no factors, as in an FM (factors_clear). A feature of a field that is not
 * counted has its weight and no pairs. All pairs are computed: time grows with the square of the features of a row.
 * It never knows of tables, servers or files. Tests: test/learn/test_ffm.c.
 */
#include "learn/model/factors.h"
#include "learn/model/model_lr.h"

#include <string.h>

/*
 * A row's features are worked on in tiles of TILE, whose places are computed once: the pairs within each tile, and
 * those of it with each tile before it. The pairs of a feature go into several sums in turn, so that an addition need
 * not wait for the one before it: LANES lanes in all, SUMS of them of 4 floats, or half as many of 8. Each width of
 * vectors adds the same lanes in the same order.
 */
enum { TILE = 64, SUMS = 4, LANES = 4 * SUMS };

/* A feature in a tile. Its factors begin at `at`. The factors that another feature has for its field are `group` after
 * that one's `at`. */
struct spot {
    size_t at, group;
    float x;
};

/* The features from .. to - 1 whose fields are counted; returns how many. */
VECTOR_INLINE size_t tile_fill(const struct batch *b, size_t from, size_t to, size_t fields, size_t dim,
                               struct spot *spot)
{
    size_t n = 0;
    for (size_t i = from; i < to; i++)
        if (b->field[i] < fields)
            spot[n++] = (struct spot){
                .at = b->index[i] * fields * dim, .group = b->field[i] * dim, .x = value_of(b, i)};
    return n;
}

/* The pairs of feature i with features 0 .. n - 1 of a tile. */
VECTOR_INLINE void pairs_sum4(struct spot i, const struct spot *tile, size_t n, const float *v,
                              float lane[LANES])
{
    factor_wide4 sum[SUMS];
    size_t j = 0;
    memcpy(sum, lane, sizeof sum);
    for (; j + SUMS <= n; j += SUMS)
        for (size_t s = 0; s < SUMS; s++)
            sum[s] += i.x * tile[j + s].x *
                      (*(const factor_wide4 *)(v + i.at + tile[j + s].group) *
                       *(const factor_wide4 *)(v + tile[j + s].at + i.group));
    memcpy(lane, sum, sizeof sum);
    for (size_t s = 0; j < n; j++, s++)
        *(factor_wide4 *)(lane + 4 * s) += i.x * tile[j].x *
                                           (*(const factor_wide4 *)(v + i.at + tile[j].group) *
                                            *(const factor_wide4 *)(v + tile[j].at + i.group));
}

VECTOR_INLINE void pairs_sum(struct spot i, const struct spot *tile, size_t n, int wide, size_t dim,
                             const float *v, float lane[LANES])
{
    for (size_t j = 0; j < n; j++)
        factors_dot(wide, dim, i.x * tile[j].x, v + i.at + tile[j].group, v + tile[j].at + i.group,
                    lane + j % 2 * FACTOR_LANES);
}

/* Both groups of a pair may be the same one: the second addition follows the first. */
VECTOR_INLINE void pairs_gradient(struct spot i, const struct spot *tile, size_t n, int wide, size_t dim,
                                  const float *v, float residual, float *gv)
{
    const float dx = residual * i.x;
    for (size_t j = 0; j < n; j++) {
        const size_t p = i.at + tile[j].group, q = tile[j].at + i.group;
        const float x = dx * tile[j].x;
        factors_add(wide, dim, x, v + q, gv + p);
        factors_add(wide, dim, x, v + p, gv + q);
    }
}

/* For all pairs of row r: the gradient, added to gv, or the sums in lane if gv is NULL. */
VECTOR_INLINE void row_pairs(const struct batch *b, size_t r, int wide, size_t fields, size_t dim,
                             const float *v, float lane[LANES], float residual, float *gv)
{
    struct spot tile[TILE], before[TILE];
    const size_t from = row_from(b, r), to = row_to(b, r);
    for (size_t first = from; first < to; first += TILE) {
        const size_t n = tile_fill(b, first, first + TILE < to ? first + TILE : to, fields, dim, tile);
        for (size_t other = from; other <= first; other += TILE) {
            const struct spot *with = other < first ? before : tile;
            const size_t m = other < first ? tile_fill(b, other, other + TILE, fields, dim, before) : 0;
            for (size_t i = 0; i < n; i++) {
                const size_t pairs = other < first ? m : i;
                if (gv)
                    pairs_gradient(tile[i], with, pairs, wide, dim, v, residual, gv);
                else if (dim == 4)
                    pairs_sum4(tile[i], with, pairs, v, lane);
                else
                    pairs_sum(tile[i], with, pairs, wide, dim, v, lane);
            }
        }
    }
}

VECTOR_INLINE void margins(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
                           float *margin)
{
    for (size_t r = 0; r < b->rows; r++) {
        float lane[LANES] = {0};
        row_pairs(b, r, wide, fields, dim, v, lane, 0, NULL);
        for (size_t k = 0; k < FACTOR_LANES; k++)
            lane[k] += lane[k + FACTOR_LANES];
        margin[r] += factors_fold(lane);
    }
}

VECTOR_INLINE void gradients(size_t dim, const struct batch *b, int wide, size_t fields, const float *v,
                             const float *residual, float *gv)
{
    for (size_t r = 0; r < b->rows; r++)
        row_pairs(b, r, wide, fields, dim, v, NULL, residual[r], gv);
}

/* dim is a constant if it is 4 or 8. */
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
                   .l2 = 0.05,
                   .long_rows = 4},
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
