#include "learn/eval/score.h"
#include "learn/model/compute.h"

#include <stdlib.h>
#include <string.h>

/* Rows: large, because no batch waits for what another learned, and small enough for the CPU's cache. */
#define SCORE_BATCH 4096

struct scorer {
    struct batcher *batcher;
    struct batch_list list;
    struct params params;
    struct workspace work;
    size_t scale_keys, values; /* room of the next two, in keys and in values */
    float *scale, *value;
};

paramo_err scorer_new(struct scorer **scorer)
{
    struct scorer *s = calloc(1, sizeof *s);
    if (!s)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for scoring");
    paramo_err err = batcher_new(&s->batcher);
    if (err != PARAMO_OK) {
        free(s);
        return err;
    }
    *scorer = s;
    return PARAMO_OK;
}

void scorer_free(struct scorer *s)
{
    if (!s)
        return;
    batcher_free(s->batcher);
    batch_list_free(&s->list);
    params_free(&s->params);
    workspace_free(&s->work);
    free(s->scale);
    free(s->value);
    free(s);
}

/* Makes room to divide a batch's values. */
static paramo_err fit_scaled(struct scorer *s, size_t keys, size_t values)
{
    if (keys > s->scale_keys) {
        free(s->scale);
        s->scale = malloc(keys * SCALE_MAX_DIM * sizeof *s->scale);
        s->scale_keys = !s->scale ? 0 : keys;
    }
    if (values > s->values) {
        free(s->value);
        s->value = malloc(values * sizeof *s->value);
        s->values = !s->value ? 0 : values;
    }
    return s->scale_keys < keys || s->values < values
               ? paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys)
               : PARAMO_OK;
}

paramo_err scorer_block(struct scorer *s, const struct score_source *source, const struct block *block,
                        score_rows_fn rows, void *arg)
{
    const struct batch_list *list = &s->list;
    paramo_err err = batcher_cut(s->batcher, block, SCORE_BATCH, &s->list);
    if (err == PARAMO_OK)
        err = params_fit(&s->params, source->model, list->most_unique);
    if (err == PARAMO_OK)
        err = workspace_fit(&s->work, source->model, list->most_rows, list->most_unique);
    for (size_t i = 0; err == PARAMO_OK && i < list->n; i++) {
        const struct batch *b = &list->batch[i];
        struct batch divided = *b;
        if (source->scaled)
            err = fit_scaled(s, b->unique, b->start[b->rows] - b->start[0]);
        if (err == PARAMO_OK)
            err = source->fetch(source->arg, b, s->params.table, source->scaled ? s->scale : NULL);
        if (err != PARAMO_OK)
            break;
        if (source->scaled) {
            scale_divide(source->model->scale, b, s->scale, s->value);
            divided.value = s->value;
            b = &divided;
        }
        compute_margins(source->model, b, s->params.table, &s->work);
        /* a calibrated model has one output */
        calibration_apply(&source->model->calibration, s->work.margin, b->rows);
        const struct scored_rows scored = {.n = b->rows,
                                           .stride = b->rows,
                                           .margin = s->work.margin,
                                           .label = b->label,
                                           .weight = b->weight};
        err = rows(arg, &scored);
    }
    return err;
}

paramo_err score_reader(const struct score_source *source, struct reader *reader, score_rows_fn rows,
                        void *arg)
{
    struct scorer *scorer = NULL;
    const struct block *block;
    paramo_err err = scorer_new(&scorer);
    if (err != PARAMO_OK)
        return err;
    while ((err = reader_next(reader, &block)) == PARAMO_OK && block) {
        err = scorer_block(scorer, source, block, rows, arg);
        reader_release(reader, block);
        if (err != PARAMO_OK)
            break;
    }
    scorer_free(scorer);
    return err;
}

paramo_err score_metrics(void *metrics, const struct scored_rows *r)
{
    return metrics_add(metrics, r->margin, r->stride, r->label, r->weight, r->n);
}

/* The first place in keys[from..n) that is not below key. It gallops: steps from `from` double, then a binary search
 * halves the last one. The batch's keys ascend, so the steps between them are short. */
static uint64_t lower_bound(const uint64_t *keys, uint64_t n, uint64_t from, uint64_t key)
{
    uint64_t step = 1, low = from, high = from;
    while (high < n && keys[high] < key) {
        low = high + 1;
        high = n - high > step ? high + step : n;
        step *= 2;
    }
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        if (keys[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Copies the rows of n keys; 0 for keys that the table lacks. Returns how many it has, without the bias. */
static size_t fetch_table(const struct model_table *t, const uint64_t *key, size_t n, float *out)
{
    uint64_t at = 0;
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        at = lower_bound(t->keys, t->n, at, key[i]);
        if (at < t->n && t->keys[at] == key[i]) {
            memcpy(out + i * t->dim, t->values + at * t->dim, t->dim * sizeof *out);
            known += key[i] != BATCH_BIAS_KEY;
        } else {
            memset(out + i * t->dim, 0, t->dim * sizeof *out);
        }
    }
    return known;
}

paramo_err score_fetch_model(void *lookup, const struct batch *batch, float *const *param, float *scale)
{
    struct score_lookup *l = lookup;
    const uint64_t *key;
    l->asked += batch->unique - 1;
    for (size_t t = 0; t < l->model->n; t++) {
        size_t n = model_keys(&l->model->info, t, batch, &key);
        size_t known = fetch_table(&l->model->table[t], key, n, param[t]);
        l->known += t == 0 ? known : 0;
    }
    if (scale)
        (void)fetch_table(&l->model->scale, batch->key, batch->unique, scale);
    return PARAMO_OK;
}

struct score_source score_model(struct score_lookup *lookup)
{
    return (struct score_source){.model = &lookup->model->info,
                                 .fetch = score_fetch_model,
                                 .arg = lookup,
                                 .scaled = lookup->model->scale.file != NULL};
}
