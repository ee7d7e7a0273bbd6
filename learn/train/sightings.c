#include "learn/train/sightings.h"
#include "learn/train/feature_rows.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

paramo_err sightings_open(struct sightings *s)
{
    if (s->model->factor_after == 0 || s->table)
        return PARAMO_OK;
    return feature_rows_open(s->worker, SIGHTINGS_TABLE, PARAMO_OPT_ADD, &s->table);
}

paramo_err sightings_put(struct sightings *s, const uint64_t *key, size_t n)
{
    return s->table ? feature_rows_put(s->worker, s->table, key, n, SIGHTINGS_FACTORS) : PARAMO_OK;
}

/* ---- one batch ---- */

void sighted_free(struct sighted *b)
{
    free(b->known);
    free(b->add);
    free(b->key);
    free(b->has);
    *b = (struct sighted){0};
}

static paramo_err fit(struct sighted *b, size_t keys)
{
    if (keys <= b->keys)
        return PARAMO_OK;
    const size_t most = keys + keys / 4;
    sighted_free(b);
    b->known = malloc(most * sizeof *b->known);
    b->add = malloc(most * sizeof *b->add);
    b->key = malloc(most * sizeof *b->key);
    b->has = malloc(most * sizeof *b->has);
    if (!b->known || !b->add || !b->key || !b->has) {
        sighted_free(b);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys);
    }
    b->keys = most;
    return PARAMO_OK;
}

static paramo_err request(struct sightings *s, int push, const uint64_t *key, float *value, size_t n,
                          uint64_t *ts)
{
    paramo_request_options options;
    paramo_kv kv;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    paramo_kv_init(&kv);
    kv.keys = key;
    kv.n = kv.vals_len = n;
    kv.vals = value;
    if (n == 0)
        return PARAMO_OK;
    return (push ? paramo_push : paramo_pull)(s->worker, s->table, &kv, &options, ts);
}

paramo_err sighted_pull(struct sightings *s, const struct batch *batch, struct sighted *b)
{
    b->pull = b->push = 0;
    b->added = 0;
    if (!s->table)
        return PARAMO_OK;
    paramo_err err = fit(b, batch->unique);
    return err == PARAMO_OK ? request(s, 0, batch->key, b->known, batch->unique - 1, &b->pull) : err;
}

/* Sets the factors of features that have none to 0. */
static void clear(const struct model_info *model, size_t features, const uint8_t *has, float *const *param)
{
    for (size_t t = 1; t < model->ops->tables; t++) {
        const size_t width = model_row_values(model, t);
        if (model_fixed_rows(model, t) > 0)
            continue;
        for (size_t i = 0; i < features; i++)
            if (!has[i])
                memset(param[t] + i * width, 0, width * sizeof **param);
    }
}

/* Decides which features have factors with this batch, and what it adds to the rows. */
static void count_batch(const struct batch *batch, int count, const uint8_t *in, float after,
                        struct sighted *b)
{
    const size_t features = batch->unique - 1;
    memset(b->add, 0, batch->unique * sizeof *b->add);
    for (size_t i = 0, n = count ? batch->start[batch->rows] - batch->start[0] : 0; i < n; i++)
        b->add[batch->index[i]] += 1;
    b->added = 0;
    for (size_t i = 0; i < features; i++) {
        b->has[i] = b->known[i] + b->add[i] >= after && (!in || in[i]);
        if (b->known[i] >= SIGHTINGS_FACTORS || (b->add[i] == 0 && !b->has[i]) || (in && !in[i]))
            continue;
        b->key[b->added] = batch->key[i];
        b->add[b->added++] = b->add[i] + (b->has[i] ? SIGHTINGS_FACTORS : 0);
    }
}

paramo_err sighted_batch(struct sightings *s, const struct batch *batch, int learn, int count,
                         const uint8_t *in, float *const *param, struct sighted *b)
{
    if (!s->table)
        return PARAMO_OK;
    const size_t features = batch->unique - 1;
    assert(batch->unique <= b->keys);
    paramo_err err = b->pull > 0 ? paramo_wait(s->worker, b->pull, 0) : PARAMO_OK;
    if (err != PARAMO_OK)
        return err;
    if (learn)
        count_batch(batch, count, in, (float)s->model->factor_after, b);
    else
        for (size_t i = 0; i < features; i++)
            b->has[i] = b->known[i] >= SIGHTINGS_FACTORS;
    clear(s->model, features, b->has, param);
    return PARAMO_OK;
}

paramo_err sighted_push(struct sightings *s, struct sighted *b)
{
    return request(s, 1, b->key, b->add, b->added, &b->push);
}

paramo_err sighted_wait(struct sightings *s, struct sighted *b)
{
    return b->push > 0 ? paramo_wait(s->worker, b->push, 0) : PARAMO_OK;
}

static void cancel(struct sightings *s, uint64_t ts)
{
    paramo_err ended = ts == 0 ? PARAMO_OK : paramo_cancel(s->worker, ts);
    (void)ended; /* NOT_FOUND: it has completed */
}

void sighted_cancel(struct sightings *s, struct sighted *b)
{
    cancel(s, b->pull);
    cancel(s, b->push);
}
