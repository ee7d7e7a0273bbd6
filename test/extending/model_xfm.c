/*
 * An FM whose pairs are those of different fields, as an example for docs/EXTENDING.md:
 * margin = bias + sum_i w_i x_i + sum of <v_i, v_j> x_i x_j over the pairs i < j of features of different fields. A
 * feature of a field that is not counted has no pairs.
 */
#include "learn/model/factors.h"
#include "learn/model/model.h"
#include "learn/model/model_lr.h"

#include <string.h>

enum { DIM, FIELDS, SETTINGS };
enum { W, V, TABLES };

/* Settings that other models have, too: the same options of `paramo train`. */
static const struct model_setting settings[SETTINGS] = {[DIM] = FACTOR_SETTING(8), [FIELDS] = FIELDS_SETTING};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.02,
           .beta = 1},
};

static struct model_shape xfm_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    return (struct model_shape){.dim = (uint32_t)info->setting[DIM], .init = 0.05};
}

/* The bias has no factors. */
static void xfm_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    size_t dim = xfm_shape(info, V).dim;
    memset(param[V] + (batch->unique - 1) * dim, 0, dim * sizeof **param);
}

/* Two features of a row: where their factors begin, and the product of their values. */
struct pair {
    size_t a, b;
    float x;
};

/* The pair of features i and j of the batch; 0 if there is none. */
static int pair_of(const struct model_info *info, const struct batch *batch, size_t i, size_t j,
                   struct pair *pair)
{
    size_t dim = (size_t)info->setting[DIM], fields = (size_t)info->setting[FIELDS];
    if (batch->field[i] >= fields || batch->field[j] >= fields || batch->field[i] == batch->field[j])
        return 0;
    pair->a = batch->index[i] * dim;
    pair->b = batch->index[j] * dim;
    pair->x = batch->value == NULL ? 1.0f : batch->value[i] * batch->value[j];
    return 1;
}

static void xfm_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                        float *scratch, float *margin)
{
    (void)scratch;
    const float *v = param[V];
    size_t dim = (size_t)info->setting[DIM];
    struct pair p;
    lr_margins(batch, param[W], margin);
    for (size_t r = 0; r < batch->rows; r++)
        for (size_t i = row_from(batch, r); i < row_to(batch, r); i++)
            for (size_t j = row_from(batch, r); j < i; j++) {
                float dot = 0;
                if (!pair_of(info, batch, i, j, &p))
                    continue;
                for (size_t k = 0; k < dim; k++)
                    dot += v[p.a + k] * v[p.b + k];
                margin[r] += dot * p.x;
            }
}

static void xfm_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                         float *scratch, const float *residual, float *const *grad)
{
    (void)scratch;
    const float *v = param[V];
    float *gv = grad[V];
    size_t dim = (size_t)info->setting[DIM];
    struct pair p;
    lr_gradient(batch, residual, grad[W]);
    memset(gv, 0, batch->unique * dim * sizeof *gv);
    for (size_t r = 0; r < batch->rows; r++)
        for (size_t i = row_from(batch, r); i < row_to(batch, r); i++)
            for (size_t j = row_from(batch, r); j < i; j++) {
                if (!pair_of(info, batch, i, j, &p))
                    continue;
                for (size_t k = 0; k < dim; k++) {
                    gv[p.a + k] += residual[r] * p.x * v[p.b + k];
                    gv[p.b + k] += residual[r] * p.x * v[p.a + k];
                }
            }
}

const struct model_ops model_xfm = {
    .name = "xfm",
    .help = "an FM across fields",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .order = 2,
    .shape = xfm_shape,
    .mask = xfm_mask,
    .margins = xfm_margins,
    .gradient = xfm_gradient,
};
