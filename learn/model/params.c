#include "learn/model/params.h"

#include <stdlib.h>

paramo_err params_fit(struct params *p, const struct model_info *info, size_t keys)
{
    if (keys <= p->cap)
        return PARAMO_OK;
    size_t cap = keys + keys / 4;
    params_free(p);
    for (size_t t = 0; t < info->ops->tables; t++) {
        p->table[t] = malloc(cap * info->ops->shape(info, t).dim * sizeof *p->table[t]);
        if (!p->table[t]) {
            params_free(p);
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys);
        }
    }
    p->cap = cap;
    return PARAMO_OK;
}

void params_free(struct params *p)
{
    for (size_t t = 0; t < MODEL_MAX_TABLES; t++)
        free(p->table[t]);
    *p = (struct params){0};
}

paramo_err row_scratch_fit(struct row_scratch *s, const struct model_info *info, size_t rows)
{
    if (rows <= s->cap)
        return PARAMO_OK;
    size_t floats = !info->ops->scratch ? 0 : info->ops->scratch(info, rows);
    row_scratch_free(s);
    s->margin = malloc(rows * sizeof *s->margin);
    s->residual = malloc(rows * sizeof *s->residual);
    s->model = malloc((floats + 1) * sizeof *s->model); /* never of size 0 */
    if (!s->margin || !s->residual || !s->model) {
        row_scratch_free(s);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu rows", rows);
    }
    s->cap = rows;
    return PARAMO_OK;
}

void row_scratch_free(struct row_scratch *s)
{
    free(s->margin);
    free(s->residual);
    free(s->model);
    *s = (struct row_scratch){0};
}
