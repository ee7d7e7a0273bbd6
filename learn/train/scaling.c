#include "learn/train/scaling.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LOOK_PERIOD 1.0 /* seconds; arbitrary */
#define FLAG        "train/scale"

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static paramo_err open_table(struct scaling *s)
{
    paramo_table_options o;
    paramo_table_options_init(&o);
    o.dim = scale_dim(s->kind);
    o.optimizer = scale_optimizer(s->kind);
    return paramo_table_open(s->worker, SCALE_TABLE, &o, &s->table);
}

paramo_err scaling_turn_on(struct scaling *s)
{
    const double one = 1;
    if (s->table)
        return PARAMO_OK;
    paramo_err err = open_table(s);
    return err == PARAMO_OK ? paramo_kv_add(s->node, FLAG, &one, 1) : err;
}

paramo_err scaling_look(struct scaling *s)
{
    double on = 0;
    size_t len;
    if (s->kind == SCALE_NONE || s->table)
        return PARAMO_OK;
    if (s->kind != SCALE_AUTO)
        return scaling_turn_on(s);
    s->looked = now();
    paramo_err err = paramo_kv_add(s->node, FLAG, &on, 1); /* creates it, so the next line does not wait */
    if (err == PARAMO_OK)
        err = paramo_kv_get(s->node, FLAG, &on, sizeof on, &len, 0);
    return err == PARAMO_OK && on > 0 ? open_table(s) : err;
}

paramo_err scaling_glance(struct scaling *s)
{
    if (s->kind == SCALE_NONE || s->table || now() - s->looked < LOOK_PERIOD)
        return PARAMO_OK;
    return scaling_look(s);
}

/* ---- one batch ---- */

void scaled_free(struct scaled *b)
{
    free(b->known);
    free(b->own);
    free(b->value);
    free(b->key);
    free(b->changed);
    *b = (struct scaled){0};
}

static paramo_err fit(struct scaled *b, uint32_t dim, const struct batch *batch)
{
    const size_t keys = batch->unique, features = batch->start[batch->rows] - batch->start[0];
    if (keys <= b->keys && features <= b->features)
        return PARAMO_OK;
    scaled_free(b);
    const size_t most_keys = keys + keys / 4, most_features = features + features / 4 + 1;
    b->known = malloc(most_keys * dim * sizeof *b->known);
    b->own = malloc(most_keys * dim * sizeof *b->own);
    b->key = malloc(most_keys * sizeof *b->key);
    b->changed = malloc(most_keys * sizeof *b->changed);
    b->value = malloc(most_features * sizeof *b->value);
    if (!b->known || !b->own || !b->key || !b->changed || !b->value) {
        scaled_free(b);
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", keys);
    }
    b->keys = most_keys;
    b->features = most_features;
    return PARAMO_OK;
}

static paramo_err pull(struct scaling *s, const struct batch *batch, float *known, uint64_t *ts)
{
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = batch->key;
    kv.n = batch->unique - 1; /* the bias has no scale */
    kv.vals = known;
    kv.vals_len = kv.n * scale_dim(s->kind);
    return kv.n > 0 ? paramo_pull(s->worker, s->table, &kv, &options, ts) : PARAMO_OK;
}

paramo_err scaled_pull(struct scaling *s, const struct batch *batch, int learn, struct scaled *b)
{
    paramo_err err = PARAMO_OK;
    b->on = 0;
    b->pull = b->push = 0;
    if (learn && !s->table && s->kind == SCALE_AUTO && scale_wanted(batch))
        err = scaling_turn_on(s);
    if (err == PARAMO_OK && s->table)
        err = fit(b, scale_dim(s->kind), batch);
    if (err != PARAMO_OK || !s->table)
        return err;
    b->on = 1;
    b->learn = learn;
    return pull(s, batch, b->known, &b->pull);
}

/* Moves the n changed rows to the front of own, and pushes them. */
static paramo_err push(struct scaling *s, const struct batch *batch, struct scaled *b, size_t n)
{
    const uint32_t dim = scale_dim(s->kind);
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    for (size_t i = 0; i < n; i++) { /* changed[i] >= i */
        b->key[i] = batch->key[b->changed[i]];
        memmove(b->own + i * dim, b->own + (size_t)b->changed[i] * dim, dim * sizeof *b->own);
    }
    paramo_kv kv;
    paramo_kv_init(&kv);
    kv.keys = b->key;
    kv.n = n;
    kv.vals = b->own;
    kv.vals_len = n * dim;
    return n > 0 ? paramo_push(s->worker, s->table, &kv, &options, &b->push) : PARAMO_OK;
}

paramo_err scaled_batch(struct scaling *s, const struct batch *batch, const uint8_t *in, struct scaled *b,
                        const struct batch **out)
{
    *out = batch;
    if (!b->on)
        return PARAMO_OK;
    assert(batch->unique <= b->keys);
    paramo_err err = b->pull > 0 ? paramo_wait(s->worker, b->pull, 0) : PARAMO_OK;
    if (err != PARAMO_OK)
        return err;
    size_t changed = 0;
    if (b->learn) {
        scale_measure(s->kind, batch, b->known, b->own);
        changed = scale_join(s->kind, batch->unique - 1, b->own, b->known, b->changed);
        size_t kept = 0;
        for (size_t i = 0; in && i < changed; i++)
            if (in[b->changed[i]])
                b->changed[kept++] = b->changed[i];
        changed = in ? kept : changed;
    }
    scale_divide(s->kind, batch, b->known, b->value);
    b->batch = *batch;
    b->batch.value = b->value;
    *out = &b->batch;
    return push(s, batch, b, changed);
}

paramo_err scaled_wait(struct scaling *s, struct scaled *b)
{
    return b->push > 0 ? paramo_wait(s->worker, b->push, 0) : PARAMO_OK;
}

static void cancel(struct scaling *s, uint64_t ts)
{
    paramo_err ended = ts == 0 ? PARAMO_OK : paramo_cancel(s->worker, ts);
    (void)ended; /* NOT_FOUND: it has completed */
}

void scaled_cancel(struct scaling *s, struct scaled *b)
{
    cancel(s, b->pull);
    cancel(s, b->push);
}

paramo_err scaling_fetch(struct scaling *s, const struct batch *batch, float *known)
{
    uint64_t ts = 0;
    paramo_err err = pull(s, batch, known, &ts);
    if (err == PARAMO_OK && ts > 0)
        err = paramo_wait(s->worker, ts, 0);
    if (err != PARAMO_OK) { /* known belongs to the caller again */
        char why[PARAMO_ERROR_MAX];
        (void)strncpy(why, paramo_last_error(), sizeof why - 1);
        why[sizeof why - 1] = '\0';
        cancel(s, ts);
        (void)paramo_error_set(err, "%s", why);
    }
    return err;
}
