#include "learn/explain/explain.h"
#include "learn/eval/score.h"
#include "learn/model/compute.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Evaluates one output of the model for one row. The row is a batch in which each feature has parameters of its own,
 * even if keys repeat. */
struct probe {
    struct model_info info; /* that of the model, but with an objective of one output */
    uint32_t outputs;       /* of the model */
    struct params fetched;  /* parameters of the row's keys, for all outputs */
    const struct batch *row;
    struct batch batch;
    uint32_t start[2];
    uint32_t *index; /* [n]: 0, 1, ... */
    float *value;    /* [n]: the values that are scored */
    float *scaled;   /* [n]: the row's values, scaled */
    struct params param, grad;
    struct workspace work;
};

static paramo_err no_memory(void)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory to explain a row");
}

/* Newton's method on the Legendre polynomial of degree n, by its recurrence. */
void explain_rule(size_t n, double *point, double *weight)
{
    const double pi = 3.14159265358979323846;
    for (size_t i = 0; i < n; i++) {
        double x = cos(pi * ((double)i + 0.75) / ((double)n + 0.5)), slope = 1;
        for (int step = 0; step < 100; step++) {
            double p = 1, before = 0;
            for (size_t k = 0; k < n; k++) {
                const double next = ((double)(2 * k + 1) * x * p - (double)k * before) / (double)(k + 1);
                before = p;
                p = next;
            }
            slope = (double)n * (x * p - before) / (x * x - 1);
            const double move = p / slope;
            x -= move;
            if (fabs(move) < 1e-15)
                break;
        }
        point[i] = (1 - x) / 2;
        weight[i] = 1 / ((1 - x * x) * slope * slope);
    }
}

static void probe_free(struct probe *p)
{
    free(p->index);
    free(p->value);
    free(p->scaled);
    params_free(&p->fetched);
    params_free(&p->param);
    params_free(&p->grad);
    workspace_free(&p->work);
}

/* Copies the parameters of one output, for each feature of the row. */
static void take_output(struct probe *p, uint32_t output)
{
    const struct batch *b = p->row;
    for (size_t t = 0; t < p->info.ops->tables; t++) {
        const size_t dim = model_shape(&p->info, t).dim, fixed = model_fixed_rows(&p->info, t);
        for (size_t i = 0; i < (fixed > 0 ? fixed : (size_t)p->start[1] + 1); i++) {
            const size_t from = fixed > 0 ? i : i < p->start[1] ? b->index[i] : b->unique - 1;
            float *to = p->param.table[t] + i * dim;
            if (fixed == 0 && from == b->unique - 1 && !p->info.ops->table[t].bias)
                memset(to, 0, dim * sizeof *to);
            else
                memcpy(to, p->fetched.table[t] + (from * p->outputs + output) * dim, dim * sizeof *to);
        }
    }
}

/* The row's values, scaled as the model scales them. */
static void scale_row(const struct model *model, const struct batch *b, float *rows, float *scaled, size_t n)
{
    if (rows) {
        scale_divide(model->info.scale, b, rows, scaled);
        return;
    }
    for (size_t i = 0; i < n; i++)
        scaled[i] = !b->value ? 1.0f : b->value[i];
}

/* b: the row alone, with the keys of its features. */
static paramo_err probe_open(struct probe *p, const struct model *model, const struct batch *b)
{
    const size_t n = b->start[1] - b->start[0];
    struct score_lookup lookup = {.model = model};
    float *rows = NULL;
    *p = (struct probe){
        .info = model->info, .outputs = model_outputs(&model->info), .row = b, .start = {0, (uint32_t)n}};
    p->info.objective = objective_of(objective_at(0));
    p->index = malloc((n + 1) * sizeof *p->index);
    p->value = malloc((n + 1) * sizeof *p->value);
    p->scaled = malloc((n + 1) * sizeof *p->scaled);
    if (model->scale.file)
        rows = malloc(b->unique * SCALE_MAX_DIM * sizeof *rows);
    paramo_err err =
        p->index && p->value && p->scaled && (rows || !model->scale.file) ? PARAMO_OK : no_memory();
    if (err == PARAMO_OK)
        err = params_fit(&p->fetched, &model->info, b->unique);
    if (err == PARAMO_OK)
        err = params_fit(&p->param, &p->info, n + 1);
    if (err == PARAMO_OK)
        err = params_fit(&p->grad, &p->info, n + 1);
    if (err == PARAMO_OK)
        err = workspace_fit(&p->work, &p->info, 1, n + 1);
    if (err == PARAMO_OK)
        err = score_fetch_model(&lookup, b, p->fetched.table, rows);
    if (err == PARAMO_OK) {
        scale_row(model, b, rows, p->scaled, n);
        for (size_t i = 0; i < n; i++)
            p->index[i] = (uint32_t)i;
        p->batch = (struct batch){.rows = 1,
                                  .unique = n + 1,
                                  .start = p->start,
                                  .index = p->index,
                                  .value = p->value,
                                  .field = b->field};
    }
    free(rows);
    return err;
}

/* The margin of the row with its values times t. */
static float probe_margin(struct probe *p, float t)
{
    for (size_t i = 0; i < p->start[1]; i++)
        p->value[i] = t * p->scaled[i];
    compute_margins(&p->info, &p->batch, p->param.table, &p->work);
    return p->work.margin[0];
}

/* Adds factor times the sum of p dM/dp over the parameters of each feature, at the values of the last margin. */
static void add_slopes(struct probe *p, double factor, struct explain_term *term)
{
    p->work.residual[0] = 1;
    compute_gradient(&p->info, &p->batch, p->param.table, &p->work, p->grad.table);
    for (size_t t = 0; t < p->info.ops->tables; t++) {
        const size_t dim = model_shape(&p->info, t).dim;
        for (size_t i = 0; model_fixed_rows(&p->info, t) == 0 && i < p->start[1]; i++) {
            double sum = 0;
            for (size_t k = i * dim; k < (i + 1) * dim; k++)
                sum += (double)p->param.table[t][k] * (double)p->grad.table[t][k];
            term[i].share += factor * sum;
        }
    }
}

/* The most features in one product of the margin. */
static size_t order_of(const struct model_info *info, size_t n)
{
    const size_t fields = model_fields(info);
    size_t most = info->ops->order > 0 ? info->ops->order : fields > 0 ? fields : n;
    return most < n ? most : n;
}

/* Computes 1. each output's margin M at t = 1; 2. M at t = 0, and the weight of each feature; 3. the integral. */
static paramo_err explain(struct probe *p, int output, struct explanation *e)
{
    const size_t points = (order_of(&p->info, e->n) + 1) / 2;
    double *point = malloc((2 * points + 1) * sizeof *point), *weight = point + points;
    if (!point)
        return no_memory();
    e->output = output == EXPLAIN_BEST ? 0 : (uint32_t)output;
    for (uint32_t c = 0; c < e->outputs; c++) {
        take_output(p, c);
        e->margin[c] = probe_margin(p, 1);
        if (output == EXPLAIN_BEST && e->margin[c] > e->margin[e->output])
            e->output = c;
    }
    take_output(p, e->output);
    e->base = (double)probe_margin(p, 0);
    for (size_t i = 0; i < e->n; i++) {
        e->term[i].scaled = p->scaled[i];
        e->term[i].weight = (double)p->param.table[0][i] * (double)p->scaled[i];
    }
    explain_rule(points, point, weight);
    for (size_t q = 0; q < points; q++) {
        const float t = (float)point[q];
        (void)probe_margin(p, t);
        add_slopes(p, weight[q] / (double)t, e->term);
    }
    free(point);
    return isfinite(e->margin[e->output])
               ? PARAMO_OK
               : paramo_error_set(PARAMO_E_NUMERIC, "the model's score of the row is not a finite number: "
                                                    "the model has diverged; train it again "
                                                    "with a lower --alpha");
}

static paramo_err terms_of(const struct model *model, const struct block *b, struct explanation *e)
{
    e->outputs = model_outputs(&model->info);
    e->n = b->features;
    e->term = calloc(e->n + 1, sizeof *e->term);
    e->margin = calloc(e->outputs, sizeof *e->margin);
    if (!e->term || !e->margin)
        return no_memory();
    for (size_t i = 0; i < e->n; i++) {
        e->term[i] = (struct explain_term){.key = b->key[i],
                                           .field = !b->field ? 0 : b->field[i],
                                           .known = modelio_row(&model->table[0], b->key[i]) != NULL,
                                           .value = !b->value ? 1.0f : b->value[i]};
    }
    return PARAMO_OK;
}

paramo_err explain_row(const struct model *model, const struct block *block, size_t row, int output,
                       struct explanation *explanation)
{
    const size_t first = block->offset[row];
    uint32_t offset[2] = {0, (uint32_t)(block->offset[row + 1] - first)};
    struct block one = {.rows = 1,
                        .features = offset[1],
                        .label = block->label + row,
                        .offset = offset,
                        .key = block->key + first,
                        .value = !block->value ? NULL : block->value + first,
                        .field = !block->field ? NULL : block->field + first};
    struct explanation e = {0};
    struct probe probe = {0};
    struct batcher *batcher = NULL;
    struct batch_list list = {0};
    paramo_err err = terms_of(model, &one, &e);
    if (err == PARAMO_OK)
        err = batcher_new(&batcher);
    if (err == PARAMO_OK)
        err = batcher_cut(batcher, &one, 1, &list);
    if (err == PARAMO_OK)
        err = probe_open(&probe, model, &list.batch[0]);
    if (err == PARAMO_OK)
        err = explain(&probe, output, &e);
    probe_free(&probe);
    batch_list_free(&list);
    batcher_free(batcher);
    if (err == PARAMO_OK)
        *explanation = e;
    else
        explain_free(&e);
    return err;
}

void explain_free(struct explanation *e)
{
    free(e->term);
    free(e->margin);
    *e = (struct explanation){0};
}
