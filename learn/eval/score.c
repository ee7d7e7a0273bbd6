#include "learn/eval/score.h"
#include "learn/model/model_fm.h"
#include "learn/model/model_lr.h"

#include <stdlib.h>
#include <string.h>

#define SCORE_BATCH                                                                                          \
    4096 /* rows: large, since nothing is learned between them, and small enough for the cache */

struct scratch {
    size_t unique_cap, rows_cap;
    float *w, *v, *margin, *sum;
};

static void scratch_free(struct scratch *s)
{
    free(s->w);
    free(s->v);
    free(s->margin);
    free(s->sum);
    *s = (struct scratch){0};
}

static paramo_err scratch_fit(struct scratch *s, const struct batch_list *list, size_t dim)
{
    if (list->most_unique <= s->unique_cap && list->most_rows <= s->rows_cap)
        return PARAMO_OK;
    size_t unique = list->most_unique + list->most_unique / 4 + 1, rows = list->most_rows + 1;
    scratch_free(s);
    s->w = malloc(unique * sizeof *s->w);
    s->v = malloc((unique * dim + 1) * sizeof *s->v);
    s->margin = malloc(rows * sizeof *s->margin);
    s->sum = malloc((rows * dim + 1) * sizeof *s->sum);
    if (s->w == NULL || s->v == NULL || s->margin == NULL || s->sum == NULL) {
        scratch_free(s);
        return lerr(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", unique);
    }
    s->unique_cap = unique;
    s->rows_cap = rows;
    return PARAMO_OK;
}

static paramo_err score_block(const struct score_source *source, const struct batch_list *list,
                              struct scratch *s, score_rows_fn rows, void *arg)
{
    paramo_err err = scratch_fit(s, list, source->dim);
    for (size_t i = 0; err == PARAMO_OK && i < list->n; i++) {
        const struct batch *b = &list->batch[i];
        err = source->fetch(source->arg, b, s->w, s->v);
        if (err != PARAMO_OK)
            break;
        if (source->dim == 0) {
            lr_margins(b, s->w, s->margin);
        } else {
            fm_mask(b, source->dim, s->w, s->v);
            fm_margins(b, source->dim, s->w, s->v, s->sum, s->margin);
        }
        err = rows(arg, s->margin, b->label, b->rows);
    }
    return err;
}

paramo_err score_reader(const struct score_source *source, struct reader *reader, score_rows_fn rows,
                        void *arg)
{
    struct batcher *batcher;
    struct batch_list list = {0};
    struct scratch scratch = {0};
    const struct block *block;
    paramo_err err = batcher_new(&batcher);
    if (err != PARAMO_OK)
        return err;
    while ((err = reader_next(reader, &block)) == PARAMO_OK && block != NULL) {
        err = batcher_cut(batcher, block, SCORE_BATCH, &list);
        if (err == PARAMO_OK)
            err = score_block(source, &list, &scratch, rows, arg);
        reader_release(reader, block);
        if (err != PARAMO_OK)
            break;
    }
    scratch_free(&scratch);
    batch_list_free(&list);
    batcher_free(batcher);
    return err;
}

paramo_err score_metrics(void *metrics, const float *margin, const float *label, size_t n)
{
    return metrics_add(metrics, margin, label, n);
}

/* The first place in keys[from..n) that is not below key: steps doubled from `from`, then halved. The batch's
 * keys ascend, so a whole batch costs little more than one walk over what lies between them. */
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

/* Returns how many of the keys it has. */
static size_t fetch_table(const struct model_table *t, const struct batch *batch, float *out)
{
    uint64_t at = 0;
    size_t known = 0;
    for (size_t i = 0; i < batch->unique; i++) {
        at = lower_bound(t->keys, t->n, at, batch->key[i]);
        if (at < t->n && t->keys[at] == batch->key[i]) {
            memcpy(out + i * t->dim, t->values + at * t->dim, t->dim * sizeof *out);
            known += batch->key[i] != BATCH_BIAS_KEY;
        } else {
            memset(out + i * t->dim, 0, t->dim * sizeof *out);
        }
    }
    return known;
}

paramo_err score_fetch_model(void *lookup, const struct batch *batch, float *w, float *v)
{
    struct score_lookup *l = lookup;
    l->asked += batch->unique - 1;
    l->known += fetch_table(&l->model->table[0], batch, w);
    if (l->model->info.kind == MODEL_FM)
        (void)fetch_table(&l->model->table[1], batch, v);
    return PARAMO_OK;
}

struct score_source score_model(struct score_lookup *lookup)
{
    return (struct score_source){.dim = lookup->model->info.dim, .fetch = score_fetch_model, .arg = lookup};
}
