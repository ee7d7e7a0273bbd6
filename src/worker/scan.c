#include "worker/scan.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "worker/client.h"
#include "worker/client_impl.h"

enum { SCAN_ROWS = 4096, SCAN_BYTES = 1 << 20 }; /* handed on at once, where shards interleave; arbitrary */

/* One shard's rows. */
struct source {
    struct scan_batch batch;
    size_t at;      /* rows that were passed on */
    size_t vals_at; /* bytes of values before row `at` */
    uint64_t from;  /* all its rows from that key on */
    uint64_t ts;
    paramo_err status; /* of its last request */
    bool pending;
};

struct merge {
    struct client *client;
    const struct client_table *table;
    bool with_state, keys_only;
    bool var; /* rows have lengths of their own */
    uint32_t timeout_ms;
    uint32_t row_values;
    struct source *sources;
    uint32_t count;
    int (*fn)(void *arg, const struct scan_rows *rows);
    void *arg;
    bool any;
    uint64_t first; /* the first key that is wanted */
    uint64_t last;  /* the last key that was taken from a source, if any */
    /* rows of several sources, in order */
    uint64_t *keys;
    uint32_t *lens;
    uint8_t *vals;
    size_t n, vals_bytes, vals_capacity;
};

static paramo_err fetch(struct merge *m, struct source *s)
{
    struct scan_batch *b = &s->batch;
    paramo_request_options o = {.size = sizeof o, .timeout_ms = m->timeout_ms};
    struct client_call call = {
        .kind = REQUEST_SCAN, .table = m->table, .options = &o, .batch = b, .status = &s->status};
    assert(!s->pending && s->at == b->n); /* all its rows were passed on */
    assert(b->shard < m->count);
    b->cursor = b->n ? b->keys[b->n - 1] + 1 : s->from;
    s->at = s->vals_at = 0;
    b->n = 0;
    b->more = false;
    s->status = PARAMO_OK;
    paramo_err err = client_issue(m->client, &call, &s->ts);
    s->pending = !err;
    return err;
}

/* Waits for the sources that fetch. */
static paramo_err arrive(struct merge *m)
{
    paramo_err first = PARAMO_OK;
    for (uint32_t i = 0; i < m->count && !first; i++) {
        if (!m->sources[i].pending)
            continue;
        first = client_wait_status(m->client, m->sources[i].ts, &m->sources[i].status);
        int done = 0;
        m->sources[i].pending = client_test(m->client, m->sources[i].ts, &done) == PARAMO_OK && !done;
    }
    return first;
}

static paramo_err hand_on(struct merge *m, const struct scan_rows *rows)
{
    if (!rows->n)
        return PARAMO_OK;
    return m->fn(m->arg, rows) ? err_set(PARAMO_E_INTERRUPTED, "the iteration was stopped by its function")
                               : PARAMO_OK;
}

static paramo_err flush(struct merge *m)
{
    bool var = m->var;
    assert(m->n <= SCAN_ROWS && m->vals_bytes <= m->vals_capacity);
    struct scan_rows rows = {.keys = m->keys,
                             .n = m->n,
                             .vals = m->vals,
                             .vals_len = m->vals_bytes / m->table->value_bytes,
                             .lens = var ? m->lens : NULL,
                             .row_values = m->row_values};
    m->n = m->vals_bytes = 0;
    return hand_on(m, &rows);
}

/* Passes on rows [at, at + count) of a source: in place if they are many, else through the common buffer. */
static paramo_err merge_rows(struct merge *m, struct source *s, size_t count)
{
    struct scan_batch *b = &s->batch;
    size_t value = m->table->value_bytes, bytes = 0;
    assert(count > 0 && count <= b->n - s->at);
    assert(!s->pending && m->n <= SCAN_ROWS);
    bool var = m->var;
    if (var) {
        for (size_t i = 0; i < count; i++)
            bytes += b->lens[s->at + i] * value;
    } else {
        bytes = count * m->row_values * value;
    }
    paramo_err err = PARAMO_OK;
    if (count >= SCAN_ROWS / 4) {
        struct scan_rows rows = {.keys = b->keys + s->at,
                                 .n = count,
                                 .vals = b->vals + s->vals_at,
                                 .vals_len = bytes / value,
                                 .lens = var ? b->lens + s->at : NULL,
                                 .row_values = m->row_values};
        err = flush(m);
        if (!err)
            err = hand_on(m, &rows);
    } else {
        if (m->n + count > SCAN_ROWS || m->vals_bytes + bytes > SCAN_BYTES)
            err = flush(m);
        if (!err)
            err = scan_batch_grow(&m->vals, &m->vals_capacity, m->vals_bytes + bytes);
        if (err)
            return err;
        memcpy(m->keys + m->n, b->keys + s->at, count * sizeof *m->keys);
        if (var)
            memcpy(m->lens + m->n, b->lens + s->at, count * sizeof *m->lens);
        if (bytes)
            memcpy(m->vals + m->vals_bytes, b->vals + s->vals_at, bytes);
        m->n += count;
        m->vals_bytes += bytes;
    }
    m->any = true;
    m->last = b->keys[s->at + count - 1];
    s->at += count;
    s->vals_at += bytes;
    return err;
}

/* The source with the least key, and the least key of the others. NULL: all are at their end. */
static struct source *least(struct merge *m, uint64_t *bound, bool *bounded)
{
    struct source *best = NULL;
    *bounded = false;
    for (uint32_t i = 0; i < m->count; i++) {
        struct source *s = &m->sources[i];
        if (s->at == s->batch.n)
            continue;
        uint64_t key = s->batch.keys[s->at];
        if (!best) {
            best = s;
            continue;
        }
        uint64_t best_key = best->batch.keys[best->at];
        uint64_t later = key < best_key ? best_key : key;
        if (key < best_key)
            best = s;
        if (!*bounded || later < *bound)
            *bound = later;
        *bounded = true;
    }
    return best;
}

static paramo_err merge_run(struct merge *m)
{
    for (;;) {
        uint64_t bound = 0;
        bool bounded;
        struct source *s = least(m, &bound, &bounded);
        if (!s)
            return flush(m);
        size_t count = 1, left = s->batch.n - s->at;
        while (count < left && (!bounded || s->batch.keys[s->at + count] < bound))
            count++;
        paramo_err err = merge_rows(m, s, count);
        if (!err && s->at == s->batch.n && s->batch.more) {
            err = fetch(m, s);
            if (!err)
                err = arrive(m);
        }
        if (err)
            return err;
    }
}

static void sources_drop(struct merge *m, paramo_err *err)
{
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    for (uint32_t i = 0; m->sources && i < m->count; i++) {
        struct source *s = &m->sources[i];
        if (s->pending && client_cancel(m->client, s->ts) == PARAMO_OK && !*err) {
            *err = err_set(PARAMO_E_INTERNAL, "a batch of the scan has no end (a defect of Paramo)");
            err_text_copy(text);
        }
        free(s->batch.keys);
        free(s->batch.lens);
        free(s->batch.vals);
    }
    free(m->sources);
    m->sources = NULL;
    if (*err)
        (void)err_set(*err, "%s", text); /* cancelling sets a message of its own */
}

/* Asks each shard of the present view for its rows after the last that was taken. */
static paramo_err sources_open(struct merge *m)
{
    assert(!m->sources);
    m->count = atomic_load(&m->client->shared->shards);
    m->sources = calloc(m->count + 1, sizeof *m->sources);
    if (!m->sources)
        return err_memory(m->count * sizeof *m->sources);
    uint32_t id = client_scan_id(m->client);
    paramo_err err = PARAMO_OK;
    for (uint32_t i = 0; i < m->count && !err; i++) {
        struct source *s = &m->sources[i];
        s->batch =
            (struct scan_batch){.shard = i, .id = id, .with_state = m->with_state, .keys_only = m->keys_only};
        s->from = m->any ? m->last + 1 : m->first;
        err = fetch(m, s);
    }
    if (!err)
        err = arrive(m);
    for (uint32_t i = 1; i < m->count && !err; i++)
        if (m->sources[i].batch.partitions_view != m->sources[0].batch.partitions_view)
            err = err_set(PARAMO_E_MOVED, "partitions changed owners during the scan; begin it again");
    /* A view with more shards came before the requests were sliced by it: the new ones were not asked. */
    if (!err && atomic_load(&m->client->shared->shards) != m->count)
        err = err_set(PARAMO_E_MOVED, "servers joined during the scan; begin it again");
    return err;
}

static paramo_err run(struct merge *merge)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot iterate over a table");
    const struct client_table *table = merge->table;
    struct merge m = *merge;
    m.var = !table->row_values && !m.keys_only;
    if (table->row_values && !m.keys_only)
        m.row_values = table->row_values + (m.with_state ? table->state_values : 0);
    m.keys = malloc(SCAN_ROWS * sizeof *m.keys);
    m.lens = malloc(SCAN_ROWS * sizeof *m.lens);
    paramo_err err = m.keys && m.lens ? PARAMO_OK : err_memory(SCAN_ROWS * sizeof *m.keys);
    bool again = !err;
    while (again) { /* after a change of owners, ask the present ones */
        err = sources_open(&m);
        if (!err)
            err = merge_run(&m);
        again = err == PARAMO_E_MOVED && !(m.any && m.last == UINT64_MAX);
        sources_drop(&m, &err);
    }
    assert(!m.sources);
    if (err == PARAMO_E_MOVED) /* there can be no more rows */
        err = flush(&m);
    free(m.keys);
    free(m.lens);
    free(m.vals);
    return err;
}

paramo_err scan_run(struct client *client, const struct client_table *table, bool with_state,
                    uint32_t timeout_ms, int (*fn)(void *arg, const struct scan_rows *rows), void *arg)
{
    struct merge m = {.client = client,
                      .table = table,
                      .with_state = with_state,
                      .timeout_ms = timeout_ms,
                      .fn = fn,
                      .arg = arg};
    return run(&m);
}

paramo_err scan_keys_run(struct client *client, const struct client_table *table, uint64_t first,
                         uint32_t timeout_ms, int (*fn)(void *arg, const struct scan_rows *rows), void *arg)
{
    struct merge m = {.client = client,
                      .table = table,
                      .keys_only = true,
                      .first = first,
                      .timeout_ms = timeout_ms,
                      .fn = fn,
                      .arg = arg};
    return run(&m);
}
