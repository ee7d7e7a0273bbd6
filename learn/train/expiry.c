#include "learn/train/expiry.h"
#include "learn/train/feature_rows.h"

#include <math.h>
#include <stdlib.h>

#define CLOCK        "train/parts" /* parts begun */
#define SWEPT        "train/swept" /* e->turn at the last sweep */
#define DELETED_ROWS (1u << 16)    /* at once; arbitrary */

paramo_err expiry_open(struct expiry *e)
{
    if (e->after == 0 || e->table)
        return PARAMO_OK;
    return feature_rows_open(e->worker, EXPIRY_TABLE, PARAMO_OPT_MAX, &e->table);
}

paramo_err expiry_put(struct expiry *e, const uint64_t *key, size_t n)
{
    const size_t features = n > 0 && key[n - 1] == BATCH_BIAS_KEY ? n - 1 : n;
    return e->table ? feature_rows_put(e->worker, e->table, key, features, 0) : PARAMO_OK;
}

/* ---- sweeps ---- */

struct keys {
    uint64_t *key;
    size_t n, cap;
};

struct found {
    double time, after;
    struct keys idle, gone; /* idle for more than N parts, and for more than 2 N */
    int no_memory;
};

static int add_key(struct keys *k, uint64_t key)
{
    if (k->n == k->cap) {
        const size_t cap = k->cap > 0 ? 2 * k->cap : 1024;
        uint64_t *grown = realloc(k->key, cap * sizeof *grown);
        if (!grown)
            return 0;
        k->key = grown;
        k->cap = cap;
    }
    k->key[k->n++] = key;
    return 1;
}

static int find_idle(void *arg, const paramo_rows *rows)
{
    struct found *f = arg;
    const float *last = rows->vals;
    for (size_t i = 0; i < rows->n; i++) {
        const double age = f->time - (double)last[i];
        if (age > f->after && !add_key(age > 2 * f->after ? &f->gone : &f->idle, rows->keys[i]))
            f->no_memory = 1;
    }
    return f->no_memory;
}

static paramo_err delete_rows(struct expiry *e, paramo_table *table, const struct keys *k)
{
    paramo_err err = PARAMO_OK;
    for (size_t at = 0; table && err == PARAMO_OK && at < k->n; at += DELETED_ROWS)
        err = paramo_table_delete(e->worker, table, k->key + at,
                                  k->n - at < DELETED_ROWS ? k->n - at : DELETED_ROWS);
    return err;
}

/* Deletes the features' rows in all tables but e->table. */
static paramo_err forget(struct expiry *e, const struct keys *k)
{
    paramo_err err = PARAMO_OK;
    for (size_t t = 0; err == PARAMO_OK && t < e->model->ops->tables; t++)
        if (model_fixed_rows(e->model, t) == 0)
            err = delete_rows(e, e->tables[t], k);
    if (err == PARAMO_OK)
        err = delete_rows(e, e->scaling->table, k);
    return err == PARAMO_OK ? delete_rows(e, e->sightings->table, k) : err;
}

static paramo_err sweep(struct expiry *e)
{
    struct found f = {.time = e->time, .after = e->after};
    paramo_err err = paramo_table_iterate(e->worker, e->table, 0, find_idle, &f);
    if (f.no_memory)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory for the features that expire");
    if (err == PARAMO_OK)
        err = forget(e, &f.idle);
    if (err == PARAMO_OK)
        err = delete_rows(e, e->table, &f.gone);
    if (err == PARAMO_OK)
        err = forget(e, &f.gone);
    free(f.idle.key);
    free(f.gone.key);
    return err;
}

/* Adds to a number at the scheduler, and reads the sum. */
static paramo_err add_to(paramo_node *node, const char *key, double more, double *now)
{
    size_t len;
    paramo_err err = paramo_kv_add(node, key, &more, 1);
    return err == PARAMO_OK ? paramo_kv_get(node, key, now, sizeof *now, &len, 0) : err;
}

paramo_err expiry_begin_part(struct expiry *e)
{
    const double period = e->after < 4 ? 1 : e->after / 4;
    double done;
    if (!e->table)
        return PARAMO_OK;
    paramo_err err = add_to(e->node, CLOCK, 1, &e->time);
    const double turn = floor(e->time / period);
    if (err != PARAMO_OK || turn == e->turn)
        return err;
    e->turn = turn;
    err = add_to(e->node, SWEPT, 0, &done);
    if (err != PARAMO_OK || done >= turn)
        return err;
    err = paramo_kv_put(e->node, SWEPT, &turn, sizeof turn);
    return err == PARAMO_OK ? sweep(e) : err;
}

/* ---- one batch ---- */

void dated_free(struct dated *d)
{
    free(d->time);
    *d = (struct dated){0};
}

paramo_err dated_push(struct expiry *e, const uint64_t *key, size_t n, double time, struct dated *d)
{
    d->push = 0;
    if (!e->table || n == 0)
        return PARAMO_OK;
    if (n > d->cap) {
        dated_free(d);
        d->time = malloc((n + n / 4) * sizeof *d->time);
        if (!d->time)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu keys", n);
        d->cap = n + n / 4;
    }
    for (size_t i = 0; i < n; i++)
        d->time[i] = (float)time;
    paramo_request_options options;
    paramo_kv kv;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    paramo_kv_init(&kv);
    kv.keys = key;
    kv.n = kv.vals_len = n;
    kv.vals = d->time;
    return paramo_push(e->worker, e->table, &kv, &options, &d->push);
}

paramo_err dated_wait(struct expiry *e, struct dated *d)
{
    return d->push > 0 ? paramo_wait(e->worker, d->push, 0) : PARAMO_OK;
}

void dated_cancel(struct expiry *e, struct dated *d)
{
    paramo_err ended = d->push == 0 ? PARAMO_OK : paramo_cancel(e->worker, d->push);
    (void)ended; /* NOT_FOUND: it has completed */
}
