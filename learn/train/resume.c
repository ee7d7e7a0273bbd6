#include "learn/train/resume.h"
#include "paramo/paramo.h"

#include <stdlib.h>
#include <string.h>

#define PUT_FLOATS (1u << 20) /* at once; arbitrary */

static struct optimizer_rates rates(const struct model_optimizer *o)
{
    return (struct optimizer_rates){.alpha = o->alpha, .beta = o->beta, .l1 = o->l1, .l2 = o->l2};
}

/* Puts the rows of a table with a state that fits the rates `now`. */
static paramo_err put_retuned(struct customer *c, size_t number, const struct model_table *t,
                              const struct optimizer_choice *choice, const struct optimizer_rates *old,
                              const struct optimizer_rates *now)
{
    const size_t width = t->dim + t->state, most = PUT_FLOATS / width > 0 ? PUT_FLOATS / width : 1;
    float *rows = malloc(most * width * sizeof *rows);
    if (!rows)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu rows of the model to continue from",
                                most);
    paramo_err err = PARAMO_OK;
    for (uint64_t first = 0; err == PARAMO_OK && first < t->n; first += most) {
        const size_t n = t->n - first < most ? (size_t)(t->n - first) : most;
        for (size_t i = 0; i < n; i++) {
            float *row = rows + i * width;
            memcpy(row, t->values + (first + i) * t->dim, t->dim * sizeof *row);
            memcpy(row + t->dim, t->states + (first + i) * t->state, t->state * sizeof *row);
            choice->retune(old, now, row, row + t->dim, t->dim);
        }
        paramo_rows put = {
            .size = sizeof put, .keys = t->keys + first, .n = n, .vals = rows, .row_values = (uint32_t)width};
        err = paramo_table_put(c->worker, c->table[number], 1, &put);
    }
    free(rows);
    return err;
}

static paramo_err load_table(struct customer *c, const struct model *model, size_t number)
{
    const struct model_table *t = &model->table[number];
    const struct optimizer_choice *choice = optimizers_find(model->info.optimizer[number].name);
    const struct optimizer_rates old = rates(&model->info.optimizer[number]),
                                 now = rates(&c->job->info.optimizer[number]);
    if (t->state > 0 && choice->retune && (old.alpha != now.alpha || old.beta != now.beta))
        return put_retuned(c, number, t, choice, &old, &now);
    return paramo_table_load(c->worker, c->table[number], t->path);
}

paramo_err resume_model(struct customer *c)
{
    struct model model;
    paramo_err err = modelio_open(c->job->o->model_in, &model);
    if (err != PARAMO_OK)
        return err;
    for (size_t t = 0; err == PARAMO_OK && t < model.n; t++)
        err = load_table(c, &model, t);
    if (err == PARAMO_OK && model.scale.file)
        err = scaling_turn_on(&c->scaling);
    if (err == PARAMO_OK && model.scale.file)
        err = paramo_table_load(c->worker, c->scaling.table, model.scale.path);
    for (size_t t = 1; err == PARAMO_OK && t < model.n; t++)
        if (model_fixed_rows(&model.info, t) == 0)
            err = sightings_put(&c->sightings, model.table[t].keys, model.table[t].n);
    if (err == PARAMO_OK)
        err = expiry_put(&c->expiry, model.table[0].keys, model.table[0].n);
    modelio_close(&model);
    return err;
}
