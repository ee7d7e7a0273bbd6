/*
 * A field-aware factorization machine (Juan, Zhuang, Chin and Lin, RecSys 2016), as an example for docs/EXTENDING.md:
 * margin = bias + sum_i w_i x_i + sum_{i<j} <v_{i, f_j}, v_{j, f_i}> x_i x_j, with f_i the field of feature i. A row
 * of table v has `dim` factors for each field. Features of fields that --fields does not count have no pairs.
 */
#include "learn/model/model.h"
#include "learn/model/model_lr.h"

#include <string.h>

enum { DIM, FIELDS, SETTINGS };
enum { W, V, TABLES };

static const struct model_setting settings[SETTINGS] = {
    [DIM] = {.option = "dim",
             .manifest = "dim",
             .meta = "K",
             .help = "factors per feature (8)",
             .whole = 1,
             .min = 1,
             .max = 512,
             .initial = 8,
             .fixed = 1},
    [FIELDS] = {.option = "fields",
                .manifest = "fields",
                .meta = "N",
                .help = "fields of the data: 0 .. N-1 (39)",
                .whole = 1,
                .min = 1,
                .max = 1024,
                .initial = 39,
                .fixed = 1},
};

static const struct model_table_def tables[TABLES] = {
    [W] = {.name = "w", .prefix = "", .what = "the weights", .bias = 1, .optimizer = "ftrl"},
    [V] = {.name = "v",
           .prefix = "factor-",
           .what = "the factors",
           .optimizer = "adagrad",
           .alpha = 0.02,
           .beta = 1},
};

static struct model_shape ffm_shape(const struct model_info *info, size_t table)
{
    if (table == W)
        return (struct model_shape){.dim = 1};
    return (struct model_shape){.dim = (uint32_t)(info->setting[DIM] * info->setting[FIELDS]), .init = 0.05};
}

/* The bias has no factors. */
static void ffm_mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    size_t dim = ffm_shape(info, V).dim;
    memset(param[V] + (batch->unique - 1) * dim, 0, dim * sizeof **param);
}

/* Two features of a row: where the factors begin that meet each other, and the product of their values. */
struct pair {
    size_t a, b;
    float x;
};

/* The pair of features i and j of the batch; 0 if a field is not counted. */
static int pair_of(const struct model_info *info, const struct batch *batch, size_t i, size_t j,
                   struct pair *pair)
{
    size_t dim = (size_t)info->setting[DIM], fields = (size_t)info->setting[FIELDS];
    if (batch->field[i] >= fields || batch->field[j] >= fields)
        return 0;
    pair->a = (batch->index[i] * fields + batch->field[j]) * dim;
    pair->b = (batch->index[j] * fields + batch->field[i]) * dim;
    pair->x = batch->value == NULL ? 1.0f : batch->value[i] * batch->value[j];
    return 1;
}

static void ffm_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                        float *scratch, float *margin)
{
    (void)scratch;
    const float *v = param[V];
    size_t dim = (size_t)info->setting[DIM];
    struct pair p;
    lr_margins(batch, param[W], margin);
    for (size_t r = 0; r < batch->rows; r++)
        for (size_t i = batch->start[r] - batch->start[0]; i < batch->start[r + 1] - batch->start[0]; i++)
            for (size_t j = batch->start[r] - batch->start[0]; j < i; j++) {
                float dot = 0;
                if (!pair_of(info, batch, i, j, &p))
                    continue;
                for (size_t k = 0; k < dim; k++)
                    dot += v[p.a + k] * v[p.b + k];
                margin[r] += dot * p.x;
            }
}

static void ffm_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                         const float *scratch, const float *residual, float *const *grad)
{
    (void)scratch;
    const float *v = param[V];
    float *gv = grad[V];
    size_t dim = (size_t)info->setting[DIM];
    struct pair p;
    lr_gradient(batch, residual, grad[W]);
    memset(gv, 0, batch->unique * ffm_shape(info, V).dim * sizeof *gv);
    for (size_t r = 0; r < batch->rows; r++)
        for (size_t i = batch->start[r] - batch->start[0]; i < batch->start[r + 1] - batch->start[0]; i++)
            for (size_t j = batch->start[r] - batch->start[0]; j < i; j++) {
                if (!pair_of(info, batch, i, j, &p))
                    continue;
                for (size_t k = 0; k < dim; k++) {
                    gv[p.a + k] += residual[r] * p.x * v[p.b + k];
                    gv[p.b + k] += residual[r] * p.x * v[p.a + k];
                }
            }
}

const struct model_ops model_ffm = {
    .name = "ffm",
    .help = "a field-aware factorization machine",
    .fields = MODEL_NEEDS_FIELDS,
    .setting = settings,
    .settings = SETTINGS,
    .table = tables,
    .tables = TABLES,
    .shape = ffm_shape,
    .mask = ffm_mask,
    .margins = ffm_margins,
    .gradient = ffm_gradient,
};
