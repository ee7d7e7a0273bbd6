#include "learn/model/compute.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

static size_t rows_of(const struct model_info *info, size_t table, size_t keys)
{
    const size_t fixed = model_fixed_rows(info, table);
    return fixed > 0 ? fixed : keys;
}

/* As params_fit, for rows of `outputs` outputs. */
static paramo_err fit(struct params *p, const struct model_info *info, size_t keys, uint32_t outputs)
{
    if (keys <= p->cap)
        return PARAMO_OK;
    size_t cap = keys + keys / 4;
    params_free(p);
    for (size_t t = 0; t < info->ops->tables; t++) {
        const size_t values = (size_t)model_shape(info, t).dim * outputs;
        p->table[t] = malloc(rows_of(info, t, cap) * values * sizeof *p->table[t]);
        if (!p->table[t]) {
            params_free(p);
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys);
        }
    }
    p->cap = cap;
    return PARAMO_OK;
}

paramo_err params_fit(struct params *p, const struct model_info *info, size_t keys)
{
    return fit(p, info, keys, model_outputs(info));
}

void params_free(struct params *p)
{
    for (size_t t = 0; t < MODEL_MAX_TABLES; t++)
        free(p->table[t]);
    *p = (struct params){0};
}

static size_t scratch_of(const struct model_info *info, size_t rows)
{
    return !info->ops->scratch ? 0 : info->ops->scratch(info, rows);
}

static paramo_err fit_rows(struct workspace *s, const struct model_info *info, size_t rows)
{
    const uint32_t outputs = model_outputs(info);
    if (rows <= s->rows)
        return PARAMO_OK;
    free(s->margin);
    free(s->residual);
    free(s->model);
    s->margin = malloc(rows * outputs * sizeof *s->margin);
    s->residual = malloc(rows * outputs * sizeof *s->residual);
    s->model = malloc((scratch_of(info, rows) * outputs + 1) * sizeof *s->model); /* never of size 0 */
    s->rows = rows;
    return s->margin && s->residual && s->model
               ? PARAMO_OK
               : paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu rows", rows);
}

paramo_err workspace_fit(struct workspace *s, const struct model_info *info, size_t rows, size_t keys)
{
    paramo_err err = fit_rows(s, info, rows);
    if (err == PARAMO_OK && model_outputs(info) > 1 && keys > s->keys) {
        err = fit(&s->plane, info, keys, 1);
        if (err == PARAMO_OK)
            err = fit(&s->spread, info, keys, 1);
        s->keys = s->plane.cap;
    }
    if (err != PARAMO_OK)
        workspace_free(s);
    return err;
}

void workspace_free(struct workspace *s)
{
    free(s->margin);
    free(s->residual);
    free(s->model);
    params_free(&s->plane);
    params_free(&s->spread);
    *s = (struct workspace){0};
}

/* ---- outputs ---- */

/* Copies dim values of each of n rows; rows are `from` values apart in source, and `to` values apart in out. */
static void copy_rows(const float *source, size_t from, float *out, size_t to, size_t dim, size_t n)
{
    for (size_t i = 0; i < n; i++)
        memcpy(out + i * to, source + i * from, dim * sizeof *out);
}

/* The rows of all outputs to those of one in plane; and back. */
static void gather(const struct model_info *info, const struct batch *batch, float *const *param,
                   uint32_t output, struct params *plane)
{
    for (size_t t = 0; t < info->ops->tables; t++) {
        const size_t dim = model_shape(info, t).dim, wide = model_row_values(info, t);
        copy_rows(param[t] + output * dim, wide, plane->table[t], dim, dim, rows_of(info, t, batch->unique));
    }
}

static void scatter(const struct model_info *info, const struct batch *batch, const struct params *plane,
                    uint32_t output, float *const *grad)
{
    for (size_t t = 0; t < info->ops->tables; t++) {
        const size_t dim = model_shape(info, t).dim, wide = model_row_values(info, t);
        copy_rows(plane->table[t], dim, grad[t] + output * dim, wide, dim, rows_of(info, t, batch->unique));
    }
}

/* The model's scratch for one output. */
static float *scratch_at(const struct model_info *info, const struct batch *batch, const struct workspace *s,
                         uint32_t output)
{
    return s->model + output * scratch_of(info, batch->rows);
}

static void mask(const struct model_info *info, const struct batch *batch, float *const *param)
{
    if (info->ops->mask)
        info->ops->mask(info, batch, param);
}

void compute_margins(const struct model_info *info, const struct batch *batch, float *const *param,
                     struct workspace *s)
{
    const uint32_t outputs = model_outputs(info);
    assert(batch->rows <= s->rows);
    if (outputs == 1) {
        mask(info, batch, param);
        info->ops->margins(info, batch, param, s->model, s->margin);
        return;
    }
    for (uint32_t c = 0; c < outputs; c++) {
        gather(info, batch, param, c, &s->plane);
        mask(info, batch, s->plane.table);
        info->ops->margins(info, batch, s->plane.table, scratch_at(info, batch, s, c),
                           s->margin + c * batch->rows);
    }
}

void compute_gradient(const struct model_info *info, const struct batch *batch, float *const *param,
                      struct workspace *s, float *const *grad)
{
    const uint32_t outputs = model_outputs(info);
    if (outputs == 1) {
        info->ops->gradient(info, batch, param, s->model, s->residual, grad);
        return;
    }
    for (uint32_t c = 0; c < outputs; c++) {
        gather(info, batch, param, c, &s->plane);
        mask(info, batch, s->plane.table);
        info->ops->gradient(info, batch, s->plane.table, scratch_at(info, batch, s, c),
                            s->residual + c * batch->rows, s->spread.table);
        scatter(info, batch, &s->spread, c, grad);
    }
}
