#include "learn/darlin/weights.h"
#include "learn/train/leader.h"
#include "learn/train/summed.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PUT_ROWS (1u << 16) /* at once; arbitrary */

/* ---- the beginning ---- */

static paramo_err put_weights(struct customer *c, paramo_table *weights, const struct model_table *t)
{
    double *row = malloc(PUT_ROWS * 2 * sizeof *row);
    paramo_err err =
        row ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for %u weights", PUT_ROWS);
    for (uint64_t from = 0; err == PARAMO_OK && from < t->n; from += PUT_ROWS) {
        const size_t n = t->n - from < PUT_ROWS ? (size_t)(t->n - from) : PUT_ROWS;
        for (size_t i = 0; i < n; i++) {
            row[2 * i] = (double)t->values[from + i];
            row[2 * i + 1] = 0;
        }
        paramo_rows rows = {
            .size = sizeof rows, .keys = t->keys + from, .n = n, .vals = row, .row_values = 2};
        err = paramo_table_put(c->worker, weights, 0, &rows);
    }
    free(row);
    return err;
}

paramo_err weights_begin(struct customer *c, paramo_table *weights)
{
    struct model model;
    if (!c->job->o->model_in)
        return PARAMO_OK;
    paramo_err err = modelio_open(c->job->o->model_in, &model);
    if (err != PARAMO_OK)
        return err;
    err = put_weights(c, weights, &model.table[0]);
    modelio_close(&model);
    return err;
}

/* ---- blocks ---- */

struct key_list {
    size_t n, cap;
    uint64_t *key;
    double *count;
};

static int list_keys(void *arg, const paramo_rows *rows)
{
    struct key_list *l = arg;
    const double *row = rows->vals;
    if (l->n + rows->n > l->cap) {
        const size_t cap = 2 * (l->n + rows->n);
        uint64_t *key = realloc(l->key, cap * sizeof *key);
        l->key = key ? key : l->key;
        double *count = realloc(l->count, cap * sizeof *count);
        l->count = count ? count : l->count;
        if (!key || !count)
            return 1;
        l->cap = cap;
    }
    for (size_t i = 0; i < rows->n; i++, l->n++) {
        l->key[l->n] = rows->keys[i];
        l->count[l->n] = row[i * rows->row_values];
    }
    return 0;
}

/* A block ends before the key that would give it more than `most` entries. Writes the first key of each block to
 * first[0..max). Returns the number of blocks. */
static uint32_t cut(const struct key_list *l, size_t n, double most, uint32_t max, uint64_t *first)
{
    uint32_t blocks = 0;
    double entries = 0;
    for (size_t k = 0; k < n; k++) {
        if (k == 0 || (entries + l->count[k] > most && blocks < max)) {
            first[blocks++] = l->key[k];
            entries = 0;
        }
        entries += l->count[k];
    }
    return blocks;
}

paramo_err weights_cut(paramo_worker *worker, paramo_table *counts, const struct darlin_options *o,
                       double features, uint64_t **first, uint32_t *blocks, double *keys)
{
    struct key_list l = {0};
    paramo_err err = paramo_table_iterate(worker, counts, 0, list_keys, &l);
    const int bias = l.n > 0 && l.key[l.n - 1] == BATCH_BIAS_KEY;
    const size_t n = l.n - (size_t)bias;
    const double wanted = o->blocks > 0 ? o->blocks : ceil(DARLIN_BLOCKS * features);
    const uint32_t max = n < DARLIN_BLOCKS_MAX ? (uint32_t)n : DARLIN_BLOCKS_MAX;
    uint64_t *list = malloc((max + 1) * sizeof *list);
    double entries = 0;
    if (err == PARAMO_E_INTERRUPTED || !list)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu keys", l.n);
    if (err == PARAMO_OK && l.n == 0)
        err = paramo_error_set(PARAMO_E_FORMAT,
                               "the rows have no features, and --bias is none: there is nothing to learn");
    if (err == PARAMO_OK) {
        for (size_t k = 0; k < n; k++)
            entries += l.count[k];
        *blocks = cut(&l, n, entries / wanted, max, list);
        if (bias)
            list[(*blocks)++] = BATCH_BIAS_KEY;
        *keys = (double)l.n;
        *first = list;
    }
    free(l.key);
    free(l.count);
    if (err != PARAMO_OK)
        free(list);
    return err;
}

/* ---- the model ---- */

struct model_rows {
    size_t n, cap;
    uint64_t *key;
    float *value;
};

static int list_nonzero(void *arg, const paramo_rows *rows)
{
    struct model_rows *m = arg;
    const double *row = rows->vals;
    for (size_t i = 0; i < rows->n; i++, row += rows->row_values) {
        if ((float)row[0] == 0)
            continue;
        if (m->n == m->cap) {
            const size_t cap = m->cap > 0 ? 2 * m->cap : 4096;
            uint64_t *key = realloc(m->key, cap * sizeof *key);
            m->key = key ? key : m->key;
            float *value = realloc(m->value, cap * sizeof *value);
            m->value = value ? value : m->value;
            if (!key || !value)
                return 1;
            m->cap = cap;
        }
        m->key[m->n] = rows->keys[i];
        m->value[m->n++] = (float)row[0];
    }
    return 0;
}

paramo_err weights_finish(struct customer *c, paramo_table *weights)
{
    struct model_rows m = {0};
    paramo_err err = paramo_table_iterate(c->worker, weights, 0, list_nonzero, &m);
    if (err == PARAMO_E_INTERRUPTED)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu weights", m.n);
    if (err == PARAMO_OK)
        err = paramo_table_clear(c->worker, c->table[0]);
    for (size_t from = 0; err == PARAMO_OK && from < m.n; from += PUT_ROWS) {
        const size_t n = m.n - from < PUT_ROWS ? m.n - from : PUT_ROWS;
        paramo_rows rows = {
            .size = sizeof rows, .keys = m.key + from, .n = n, .vals = m.value + from, .row_values = 1};
        err = paramo_table_put(c->worker, c->table[0], 0, &rows);
    }
    free(m.key);
    free(m.value);
    return err;
}

/* ---- measuring ---- */

/* score_fetch_fn; arg is the customer. */
static paramo_err fetch(void *arg, const struct batch *batch, float *const *param, float *scale)
{
    struct customer *c = arg;
    paramo_request_options options;
    paramo_kv kv;
    uint64_t ts;
    (void)scale;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    paramo_kv_init(&kv);
    kv.keys = batch->key;
    kv.n = kv.vals_len = batch->unique;
    kv.vals = param[0];
    paramo_err err = paramo_pull(c->worker, c->table[0], &kv, &options, &ts);
    return err == PARAMO_OK ? paramo_wait(c->worker, ts, 0) : err;
}

struct measuring {
    const struct objective *objective;
    float guess;
    double sums[MSUMS];
    float *residual; /* scratch */
    size_t cap;
};

static paramo_err measure_rows(void *arg, const struct scored_rows *rows)
{
    struct measuring *m = arg;
    if (rows->n > m->cap) {
        float *residual = realloc(m->residual, rows->n * sizeof *residual);
        if (!residual)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu rows", rows->n);
        m->residual = residual;
        m->cap = rows->n;
    }
    return metric_sums_add(m->objective, m->sums, rows->margin, rows->stride, rows->label, rows->weight,
                           &m->guess, rows->n, m->residual);
}

static struct score_source source_of(struct customer *c)
{
    return (struct score_source){.model = &c->job->info, .fetch = fetch, .arg = c};
}

paramo_err weights_measure(struct customer *c, const struct solver *solver, double guess, const char *key)
{
    struct job *job = c->job;
    struct measuring m = {.objective = &job->info.objective, .guess = (float)guess};
    const struct score_source source = source_of(c);
    struct scorer *scorer = NULL;
    paramo_work_unit unit;
    if (job->hold_out == 0)
        return PARAMO_OK;
    paramo_err err = scorer_new(&scorer);
    for (size_t i = 0; err == PARAMO_OK && solver_part(solver, i, &unit); i++) {
        const struct block *block = NULL;
        int ended;
        err = reader_held_out(job->reader, unit.stream, unit.index, &block, &ended);
        if (err == PARAMO_OK && block && block->rows > 0)
            err = scorer_block(scorer, &source, block, measure_rows, &m);
        reader_release(job->reader, block);
    }
    scorer_free(scorer);
    free(m.residual);
    return err == PARAMO_OK ? paramo_kv_add(job->node, key, m.sums, MSUMS) : err;
}

static paramo_err measure(struct customer *c, double guess, const char *key, struct train_epoch *e)
{
    struct job *job = c->job;
    const struct objective *o = &job->info.objective;
    double sums[MSUMS];
    const double began = progress_now();
    const float base = (float)guess;
    paramo_err err = PARAMO_OK;
    if (job->valid) {
        const struct score_source source = source_of(c);
        metrics_reset(job->metrics, o, &base);
        err = reader_rewind(job->valid);
        if (err == PARAMO_OK)
            err = score_reader(&source, job->valid, score_metrics, job->metrics);
        if (err == PARAMO_OK)
            err = metrics_finish(job->metrics, &e->valid);
        e->has_valid = err == PARAMO_OK;
    } else if (job->hold_out > 0) {
        err = summed_get(job->node, key, sums, MSUMS);
        e->has_valid = err == PARAMO_OK && metric_sums_measure(o, sums);
        if (e->has_valid)
            metric_sums_finish(o, sums, &e->valid);
    }
    e->valid_seconds = progress_now() - began;
    return err;
}

/* Is the model better than the same guess for each row? */
static void judge(struct job *job, const struct train_epoch *e)
{
    struct train_result *r = job->result;
    r->best_epoch = r->epochs;
    r->best_loss = e->valid.loss;
    r->base_loss = e->valid.base;
    r->measured = e->valid.rows;
    const struct watch_verdict verdict = {.first = e->valid.loss,
                                          .best = e->valid.loss,
                                          .base = e->valid.base,
                                          .epochs = 1,
                                          .best_epoch = 1,
                                          .rows = e->valid.rows};
    watch_judge(r->warning, sizeof r->warning, &job->info.objective, &verdict,
                job->valid ? "on the validation data" : "on the held-out rows");
    if (r->warning[0] != '\0')
        progress_warn(&job->progress, "%s", r->warning);
}

static void show(struct job *job, const struct train_epoch *e)
{
    char auc[32] = "";
    if (job->valid && isfinite(e->valid.value[METRIC_AUC]))
        (void)snprintf(auc, sizeof auc, "  AUC %.5f", e->valid.value[METRIC_AUC]);
    progress_line(&job->progress, "%s log-loss %.5f%s", job->valid ? "valid" : "held-out", e->valid.loss,
                  auc);
}

paramo_err weights_measured(struct customer *c, double guess, const char *key)
{
    struct job *job = c->job;
    struct train_result *r = job->result;
    struct train_epoch none = {0}, *e = r->epochs > r->first_epoch ? &r->epoch[r->epochs - 1] : &none;
    paramo_err err = measure(c, guess, key, e);
    if (err == PARAMO_OK && e->has_valid) {
        show(job, e);
        judge(job, e);
    }
    if (err == PARAMO_OK && !r->converged && job->o->epochs == 0)
        progress_warn(&job->progress,
                      "the objective has not converged after %zu passes: --epochs allows more", r->epochs);
    r->seconds = progress_now() - job->started;
    return err == PARAMO_OK ? leader_save(c) : err;
}
