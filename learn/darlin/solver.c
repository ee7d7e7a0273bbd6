#include "learn/darlin/solver.h"
#include "learn/darlin/coordinate.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define POLL_MS   500        /* how soon a wait sees that the job is to end; arbitrary */
#define SLOW_MS   10000      /* a line of progress after each such wait; arbitrary */
#define WAIT_MS   600000     /* how long a living worker may make no progress; arbitrary */
#define PULL_KEYS (1u << 18) /* at once; arbitrary */
#define ROW       2          /* doubles: weight and reach, gradient and bound */

struct part {
    paramo_work_unit unit;
    struct design design;
    struct window window;
    uint32_t *at; /* [design.keys]: place of the column's key among the worker's */
    int fresh;    /* its margins are not set */
};

/* The keys of the blocks that this worker owns, block by block; weight and reach of each. */
struct owned {
    size_t n, cap;
    uint64_t *key;
    double *weight, *reach, *before;
    size_t *begin; /* [blocks + 1] */
};

struct solver {
    struct solver_options o;
    struct batcher *batcher;
    paramo_table *weights, *sums;
    struct part *part;
    size_t parts, parts_cap;
    size_t keys; /* of its parts */
    uint64_t *key;
    double *weight, *reach; /* [keys]: weights as the margins contain them */
    double *before;         /* weights when the pass began */
    uint32_t blocks;
    uint64_t *first; /* [blocks]: the least key of each block */
    size_t *begin;   /* [blocks + 1]: places of its keys, by block */
    uint32_t *order; /* [blocks]: of this pass */
    struct owned owned;
    /* scratch for the keys of one block: those of its parts, or those that it owns */
    size_t most;
    uint64_t *asked;
    size_t *place;
    double *values, *change, *slope, *bound;
    uint64_t clock; /* where the pass began */
    /* of the last pass */
    double violation, most_violated;
    uint64_t violated, visited, sent, received;
    uint32_t delayed;
};

static paramo_err no_memory(const char *what, size_t n)
{
    return paramo_error_set(PARAMO_E_MEMORY, "out of memory for %zu %s", n, what);
}

static paramo_err open_table(struct solver *s, const char *name, paramo_optimizer optimizer,
                             paramo_table **table)
{
    paramo_table_options t;
    paramo_table_options_init(&t);
    t.kind = PARAMO_TABLE_SPARSE;
    t.dtype = PARAMO_F64;
    t.dim = ROW;
    t.optimizer = optimizer;
    return paramo_table_open(s->o.worker, name, &t, table);
}

paramo_err solver_new(const struct solver_options *options, struct solver **solver)
{
    struct solver *s = calloc(1, sizeof *s);
    if (!s)
        return no_memory("solver", 1);
    s->o = *options;
    assert(s->o.place < PLAN_MEMBERS);
    paramo_err err = batcher_new(&s->batcher);
    if (err == PARAMO_OK)
        err = open_table(s, SOLVER_WEIGHTS, PARAMO_OPT_ASSIGN, &s->weights);
    if (err == PARAMO_OK)
        err = open_table(s, SOLVER_SUMS, PARAMO_OPT_ADD, &s->sums);
    if (err != PARAMO_OK) {
        solver_free(s);
        return err;
    }
    *solver = s;
    return PARAMO_OK;
}

static void part_free(struct part *p)
{
    design_free(&p->design);
    window_free(&p->window);
    free(p->at);
}

void solver_free(struct solver *s)
{
    if (!s)
        return;
    for (size_t i = 0; i < s->parts; i++)
        part_free(&s->part[i]);
    free(s->part);
    batcher_free(s->batcher);
    free(s->key);
    free(s->weight);
    free(s->reach);
    free(s->before);
    free(s->first);
    free(s->begin);
    free(s->order);
    free(s->owned.key);
    free(s->owned.weight);
    free(s->owned.reach);
    free(s->owned.before);
    free(s->owned.begin);
    free(s->asked);
    free(s->place);
    free(s->values);
    free(s->change);
    free(s->slope);
    free(s->bound);
    free(s);
}

paramo_table *solver_weights(const struct solver *s)
{
    return s->weights;
}

paramo_table *solver_sums(const struct solver *s)
{
    return s->sums;
}

int solver_part(const struct solver *s, size_t i, paramo_work_unit *unit)
{
    if (i >= s->parts)
        return 0;
    *unit = s->part[i].unit;
    return 1;
}

static paramo_err interrupted(const struct solver *s)
{
    return atomic_load_explicit(s->o.stop, memory_order_relaxed)
               ? paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the pass has not ended")
               : PARAMO_OK;
}

/* ---- waiting ---- */

/* Copies the error of a wait, which names the workers that are behind, without the time of that wait. */
static void copy_reason(char *why, size_t size)
{
    (void)snprintf(why, size, "%s", paramo_last_error());
    char *time = strstr(why, "; waited ");
    if (time)
        *time = '\0';
}

paramo_err solver_wait(struct solver *s, uint64_t clock)
{
    char why[PARAMO_ERROR_MAX] = "";
    paramo_err err;
    unsigned waited = 0;
    while ((err = paramo_clock_wait(s->o.worker, clock, POLL_MS)) == PARAMO_E_TIMEOUT) {
        waited += POLL_MS;
        copy_reason(why, sizeof why);
        err = interrupted(s);
        if (err != PARAMO_OK)
            return err;
        if (waited >= WAIT_MS)
            return paramo_error_set(PARAMO_E_TIMEOUT, "no progress for %d s: %s", WAIT_MS / 1000, why);
        if (waited % SLOW_MS == 0 && s->o.slow)
            s->o.slow(s->o.arg, waited / 1000, why);
    }
    return err;
}

/* ---- the data ---- */

static paramo_err add_part(struct solver *s, const paramo_work_unit *unit, const struct block *block)
{
    if (s->parts == s->parts_cap) {
        const size_t cap = s->parts_cap > 0 ? 2 * s->parts_cap : 16;
        struct part *part = realloc(s->part, cap * sizeof *part);
        if (!part)
            return no_memory("parts of the data", cap);
        s->part = part;
        s->parts_cap = cap;
    }
    struct part *p = &s->part[s->parts];
    *p = (struct part){.unit = *unit, .fresh = 1};
    paramo_err err = design_new(s->batcher, block, s->o.darlin.bias != DARLIN_BIAS_NONE, &p->design);
    if (err == PARAMO_OK)
        err = window_new(p->design.rows, s->o.darlin.delay, &p->window);
    if (err == PARAMO_OK) {
        p->at = malloc((p->design.keys + 1) * sizeof *p->at);
        err = p->at ? PARAMO_OK : no_memory("keys", p->design.keys);
    }
    if (err == PARAMO_OK)
        s->parts++;
    else
        part_free(p);
    return err;
}

static paramo_err load(struct solver *s, const paramo_work_unit *unit)
{
    const struct block *block = NULL;
    int ended = 0;
    paramo_err err = reader_part(s->o.reader, unit->stream, unit->index, &block, &ended);
    if (err == PARAMO_OK && ended)
        return paramo_pool_end(s->o.node, SOLVER_POOL, unit);
    if (err == PARAMO_OK)
        err = add_part(s, unit, block);
    reader_release(s->o.reader, block);
    return err;
}

/* The worker keeps a part, and its lease, to the end of the job. */
paramo_err solver_take(struct solver *s, uint32_t wait_ms)
{
    for (;;) {
        paramo_work_unit unit;
        int state;
        paramo_err err = interrupted(s);
        if (err == PARAMO_OK)
            err = paramo_pool_next(s->o.node, SOLVER_POOL, s->o.customer, 0, wait_ms, &unit, &state);
        if (err == PARAMO_OK && state == 0)
            err = load(s, &unit);
        if (err != PARAMO_OK || state != 0)
            return err;
        wait_ms = 0;
    }
}

/* ---- keys ---- */

/* The union of two ascending lists. Returns its length. */
static size_t merge(const uint64_t *a, size_t an, const uint64_t *b, size_t bn, uint64_t *out)
{
    size_t n = 0, i = 0, k = 0;
    while (i < an && k < bn) {
        const uint64_t key = a[i] < b[k] ? a[i] : b[k];
        i += a[i] == key;
        k += b[k] == key;
        out[n++] = key;
    }
    memcpy(out + n, a + i, (an - i) * sizeof *out);
    n += an - i;
    memcpy(out + n, b + k, (bn - k) * sizeof *out);
    return n + (bn - k);
}

/* The union of the keys of parts first .. end - 1; both arrays have room for all of them. */
static size_t unite(const struct solver *s, size_t first, size_t end, uint64_t *out, uint64_t *scratch)
{
    if (end - first == 1) {
        const struct design *d = &s->part[first].design;
        memcpy(out, d->key, d->keys * sizeof *out);
        return d->keys;
    }
    const size_t middle = first + (end - first) / 2;
    size_t room = 0;
    for (size_t i = first; i < middle; i++)
        room += s->part[i].design.keys;
    const size_t a = unite(s, first, middle, scratch, out);
    const size_t b = unite(s, middle, end, scratch + room, out + room);
    return merge(scratch, a, scratch + room, b, out);
}

/* The first place from `from` on whose key is at least `key`. */
static size_t find(const uint64_t *list, size_t n, size_t from, uint64_t key)
{
    size_t step = 1, low = from, high;
    while (low + step < n && list[low + step] < key) {
        low += step;
        step *= 2;
    }
    high = low + step < n ? low + step : n;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (list[middle] < key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Makes room for requests of up to n keys. */
static paramo_err reserve(struct solver *s, size_t n)
{
    if (n <= s->most)
        return PARAMO_OK;
    free(s->asked);
    free(s->place);
    free(s->values);
    free(s->change);
    free(s->slope);
    free(s->bound);
    s->asked = malloc(n * sizeof *s->asked);
    s->place = malloc(n * sizeof *s->place);
    s->values = malloc(n * ROW * sizeof *s->values);
    s->change = malloc(n * sizeof *s->change);
    s->slope = malloc(n * sizeof *s->slope);
    s->bound = malloc(n * sizeof *s->bound);
    s->most = s->asked && s->place && s->values && s->change && s->slope && s->bound ? n : 0;
    return s->most > 0 ? PARAMO_OK : no_memory("keys of a block", n);
}

/* Makes key[] the union of all parts' keys. Weights of earlier keys stay. */
static paramo_err gather_keys(struct solver *s)
{
    size_t room = 1, n;
    for (size_t i = 0; i < s->parts; i++)
        room += s->part[i].design.keys;
    uint64_t *key = malloc(room * sizeof *key), *scratch = malloc(room * sizeof *scratch);
    n = key && scratch && s->parts > 0 ? unite(s, 0, s->parts, key, scratch) : 0;
    double *weight = calloc(n + 1, sizeof *weight), *reach = calloc(n + 1, sizeof *reach),
           *before = calloc(n + 1, sizeof *before);
    free(scratch);
    if (!key || !scratch || !weight || !reach || !before) {
        free(before);
        free(key);
        free(weight);
        free(reach);
        return no_memory("keys", room);
    }
    for (size_t i = 0, at = 0; i < s->keys; i++) {
        at = find(key, n, at, s->key[i]);
        weight[at] = s->weight[i];
        reach[at] = s->reach[i];
    }
    free(s->key);
    free(s->weight);
    free(s->reach);
    free(s->before);
    s->before = before;
    s->key = key;
    s->weight = weight;
    s->reach = reach;
    s->keys = n;
    for (size_t i = 0; i < s->parts; i++) {
        struct part *p = &s->part[i];
        for (size_t c = 0, at = 0; c < p->design.keys; c++) {
            at = find(key, n, at, p->design.key[c]);
            p->at[c] = (uint32_t)at;
        }
    }
    return n < UINT32_MAX
               ? PARAMO_OK
               : paramo_error_set(PARAMO_E_TOO_LARGE,
                                  "the rows of a worker have %zu keys, which is too many: start more workers",
                                  n);
}

typedef paramo_err request_fn(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                              const paramo_request_options *options, uint64_t *ts);

/* Pulls or pushes the rows of all keys of the worker, PULL_KEYS at a time. values: [keys * ROW]. */
static paramo_err request_all(struct solver *s, request_fn *fn, paramo_table *table, uint32_t flags,
                              double *values)
{
    paramo_request_options options;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED | flags;
    paramo_err err = PARAMO_OK;
    for (size_t from = 0; err == PARAMO_OK && from < s->keys; from += PULL_KEYS) {
        paramo_kv kv;
        uint64_t ts;
        paramo_kv_init(&kv);
        kv.n = s->keys - from < PULL_KEYS ? s->keys - from : PULL_KEYS;
        kv.keys = s->key + from;
        kv.vals = values + from * ROW;
        kv.vals_len = kv.n * ROW;
        err = fn(s->o.worker, table, &kv, &options, &ts);
        if (err == PARAMO_OK)
            err = paramo_wait(s->o.worker, ts, 0);
    }
    return err;
}

/* Pulls the weights and reaches of all keys of the worker. New keys get rows. */
static paramo_err pull_all(struct solver *s, double *values)
{
    return request_all(s, paramo_pull, s->weights, PARAMO_CREATE, values);
}

/* Sets the margins of all parts to those of the pulled weights. column: [keys] of scratch. */
static void set_margins(struct solver *s, const double *values, double *column)
{
    for (size_t i = 0; i < s->parts; i++) {
        struct part *p = &s->part[i];
        for (size_t c = 0; c < p->design.keys; c++) {
            const double weight = values[p->at[c] * ROW];
            column[c] = p->fresh ? weight : weight - s->weight[p->at[c]];
        }
        if (p->fresh)
            design_set(&p->design, column);
        else
            design_add(&p->design, 0, p->design.keys, column);
        p->fresh = 0;
    }
    for (size_t k = 0; k < s->keys; k++) {
        s->weight[k] = values[k * ROW];
        s->reach[k] = values[k * ROW + 1];
    }
}

/* Pushes the number of rows that each key has in new parts to the sums, for the cut into blocks. */
static paramo_err push_counts(struct solver *s, double *values)
{
    memset(values, 0, s->keys * ROW * sizeof *values);
    for (size_t i = 0; i < s->parts; i++) {
        const struct part *p = &s->part[i];
        for (size_t c = 0; p->fresh && c < p->design.keys; c++)
            values[p->at[c] * ROW] += (double)(p->design.start[c + 1] - p->design.start[c]);
    }
    return request_all(s, paramo_push, s->sums, 0, values);
}

paramo_err solver_refresh(struct solver *s, int counts)
{
    paramo_err err = gather_keys(s);
    if (err != PARAMO_OK)
        return err;
    double *values = malloc((s->keys + 1) * ROW * sizeof *values),
           *column = malloc((s->keys + 1) * sizeof *column);
    err = values && column ? PARAMO_OK : no_memory("keys", s->keys);
    if (err == PARAMO_OK && counts)
        err = push_counts(s, values);
    if (err == PARAMO_OK)
        err = pull_all(s, values);
    if (err == PARAMO_OK)
        set_margins(s, values, column);
    free(values);
    free(column);
    return err;
}

/* ---- blocks ---- */

static int owns(const struct solver *s, const struct plan *plan, uint32_t block)
{
    return plan->owners > 0 && plan->owner[block % plan->owners] == s->o.place;
}

static int add_owned(struct solver *s, uint64_t key, const double *row)
{
    struct owned *o = &s->owned;
    if (o->n == o->cap) {
        const size_t cap = o->cap > 0 ? 2 * o->cap : 1024;
        uint64_t *keys = realloc(o->key, cap * sizeof *keys);
        o->key = keys ? keys : o->key;
        double *weight = realloc(o->weight, cap * sizeof *weight);
        o->weight = weight ? weight : o->weight;
        double *reach = realloc(o->reach, cap * sizeof *reach);
        o->reach = reach ? reach : o->reach;
        double *before = realloc(o->before, cap * sizeof *before);
        o->before = before ? before : o->before;
        if (!keys || !weight || !reach || !before)
            return 0;
        o->cap = cap;
    }
    o->key[o->n] = key;
    o->weight[o->n] = row[0];
    o->reach[o->n] = row[1];
    o->n++;
    return 1;
}

/* The argument of take_rows. */
struct owning {
    struct solver *s;
    const struct plan *plan;
    uint32_t block; /* the last one that has begun */
};

static int take_rows(void *arg, const paramo_rows *rows)
{
    struct owning *w = arg;
    const double *row = rows->vals;
    for (size_t i = 0; i < rows->n; i++, row += rows->row_values) {
        while (w->block + 1 < w->plan->blocks && rows->keys[i] >= w->s->first[w->block + 1])
            w->s->owned.begin[++w->block] = w->s->owned.n;
        if (owns(w->s, w->plan, w->block) && !add_owned(w->s, rows->keys[i], row))
            return 1;
    }
    return 0;
}

paramo_err solver_own(struct solver *s, const struct plan *plan, const uint64_t *first)
{
    const uint32_t blocks = plan->blocks;
    assert(blocks > 0);
    free(s->first);
    free(s->begin);
    free(s->order);
    free(s->owned.begin);
    s->blocks = blocks;
    s->first = malloc(blocks * sizeof *s->first);
    s->begin = calloc(blocks + 1, sizeof *s->begin);
    s->order = malloc(blocks * sizeof *s->order);
    s->owned.begin = calloc(blocks + 1, sizeof *s->owned.begin);
    s->owned.n = 0;
    if (!s->first || !s->begin || !s->order || !s->owned.begin)
        return no_memory("blocks", blocks);
    memcpy(s->first, first, blocks * sizeof *first);
    size_t most = 1;
    for (uint32_t b = 1; b <= blocks; b++) {
        s->begin[b] = b < blocks ? find(s->key, s->keys, s->begin[b - 1], first[b]) : s->keys;
        most = s->begin[b] - s->begin[b - 1] > most ? s->begin[b] - s->begin[b - 1] : most;
    }
    struct owning w = {.s = s, .plan = plan};
    paramo_err err = paramo_table_iterate(s->o.worker, s->weights, 0, take_rows, &w);
    if (err == PARAMO_E_INTERRUPTED)
        return no_memory("keys", s->owned.n);
    while (w.block < blocks)
        s->owned.begin[++w.block] = s->owned.n;
    for (uint32_t b = 0; b < blocks; b++) {
        const size_t n = s->owned.begin[b + 1] - s->owned.begin[b];
        most = n > most ? n : most;
    }
    return err == PARAMO_OK ? reserve(s, most) : err;
}

/* ---- requests for the keys asked[0..n) ---- */

static paramo_err pull(struct solver *s, paramo_table *table, size_t n)
{
    paramo_request_options options;
    paramo_kv kv;
    uint64_t ts;
    if (n == 0)
        return PARAMO_OK;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED;
    paramo_kv_init(&kv);
    kv.keys = s->asked;
    kv.n = n;
    kv.vals = s->values;
    kv.vals_len = n * ROW;
    paramo_err err = paramo_pull(s->o.worker, table, &kv, &options, &ts);
    return err == PARAMO_OK ? paramo_wait(s->o.worker, ts, 0) : err;
}

/* Does not wait: the next clock is reached when the push is applied. wait_pushes sees its error. */
static paramo_err push(struct solver *s, paramo_table *table, size_t n)
{
    paramo_request_options options;
    paramo_kv kv;
    uint64_t ts;
    if (n == 0)
        return PARAMO_OK;
    paramo_request_options_init(&options);
    options.flags = PARAMO_TRUSTED | PARAMO_COPY;
    paramo_kv_init(&kv);
    kv.keys = s->asked;
    kv.n = n;
    kv.vals = s->values;
    kv.vals_len = n * ROW;
    return paramo_push(s->o.worker, table, &kv, &options, &ts);
}

/* ---- a pass ---- */

/* The first column whose key has place k, or a later one, among the worker's. */
static size_t part_find(const struct part *p, size_t k)
{
    size_t low = 0, high = p->design.keys;
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        if (p->at[middle] < k)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Step 1 of solver.h: pulls the weights of a block after its step, and changes the margins. */
static paramo_err follow(struct solver *s, uint32_t block)
{
    const size_t from = s->begin[block], end = s->begin[block + 1];
    size_t n = 0;
    for (size_t k = from; k < end; k++) {
        s->change[k - from] = 0;
        if (signbit(s->reach[k]))
            continue;
        s->asked[n] = s->key[k];
        s->place[n++] = k;
    }
    paramo_err err = pull(s, s->weights, n);
    if (err != PARAMO_OK)
        return err;
    for (size_t i = 0; i < n; i++) {
        const size_t k = s->place[i];
        s->change[k - from] = s->values[i * ROW] - s->weight[k];
        s->weight[k] = s->values[i * ROW];
        s->reach[k] = s->values[i * ROW + 1];
    }
    for (size_t p = 0; n > 0 && p < s->parts; p++) {
        struct design *d = &s->part[p].design;
        const uint32_t *at = s->part[p].at;
        const size_t low = part_find(&s->part[p], from), high = part_find(&s->part[p], end);
        for (size_t c = low; c < high; c++)
            s->slope[c - low] = s->change[at[c] - from];
        design_add(d, low, high, s->slope);
    }
    return PARAMO_OK;
}

/* Step 2 of solver.h. */
static paramo_err push_gradient(struct solver *s, size_t slot, uint32_t block)
{
    const size_t from = s->begin[block], end = s->begin[block + 1];
    size_t n = 0;
    for (size_t k = from; k < end; k++) {
        if (signbit(s->reach[k]))
            continue;
        s->asked[n] = s->key[k];
        s->place[k - from] = n;
        s->values[n * ROW] = s->values[n * ROW + 1] = 0;
        n++;
    }
    for (size_t p = 0; p < s->parts; p++) {
        const uint32_t *at = s->part[p].at;
        const size_t low = part_find(&s->part[p], from), high = part_find(&s->part[p], end);
        for (size_t c = low; c < high; c++) {
            s->change[c - low] = s->reach[at[c]];
            s->slope[c - low] = s->bound[c - low] = 0;
        }
        window_gradient(&s->part[p].window, &s->part[p].design, slot, low, high, s->change, s->slope,
                        s->bound);
        for (size_t c = low; c < high; c++) {
            if (signbit(s->reach[at[c]]))
                continue;
            double *sum = s->values + s->place[at[c] - from] * ROW;
            sum[0] += s->slope[c - low];
            sum[1] += s->bound[c - low];
        }
    }
    return push(s, s->sums, n);
}

static double penalty_of(const struct solver *s, uint64_t key)
{
    return key == BATCH_BIAS_KEY && s->o.darlin.bias == DARLIN_BIAS_FREE ? 0 : s->o.l1;
}

/* The step of one owned key with its sums. */
static void step_key(struct solver *s, const struct plan *plan, size_t k, const double *sum)
{
    struct owned *o = &s->owned;
    const double g = sum[0], u = sum[1] * plan->damping, l1 = penalty_of(s, o->key[k]),
                 violation = coordinate_violation(o->weight[k], g, l1);
    s->violation += violation;
    s->violated += violation > 0;
    s->most_violated = violation > s->most_violated ? violation : s->most_violated;
    s->visited++;
    if (!(u > 0)) /* no row has the key with a value other than 0, or its curvature is 0 */
        return;
    const double next = coordinate_step(o->weight[k], g, u, l1, o->reach[k]);
    o->reach[k] = coordinate_reach(o->reach[k], next - o->weight[k], u, l1);
    o->weight[k] = next;
    if (!s->o.darlin.unfiltered && next == 0 && fabs(g) < l1 - plan->margin)
        o->reach[k] = -o->reach[k];
}

/* Step 3 of solver.h. */
static paramo_err step_block(struct solver *s, const struct plan *plan, uint32_t block)
{
    struct owned *o = &s->owned;
    size_t n = 0;
    for (size_t k = o->begin[block]; k < o->begin[block + 1]; k++) {
        if (signbit(o->reach[k]))
            continue;
        s->asked[n] = o->key[k];
        s->place[n++] = k;
    }
    paramo_err err = pull(s, s->sums, n);
    for (size_t i = 0; err == PARAMO_OK && i < n; i++) {
        step_key(s, plan, s->place[i], s->values + i * ROW);
        s->values[i * ROW] = -s->values[i * ROW];
        s->values[i * ROW + 1] = -s->values[i * ROW + 1];
    }
    if (err == PARAMO_OK)
        err = push(s, s->sums, n);
    for (size_t i = 0; err == PARAMO_OK && i < n; i++) {
        s->values[i * ROW] = o->weight[s->place[i]];
        s->values[i * ROW + 1] = o->reach[s->place[i]];
    }
    return err == PARAMO_OK ? push(s, s->weights, n) : err;
}

static void begin_pass(struct solver *s, const struct plan *plan)
{
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(s->o.worker, &now);
    s->sent = now.bytes_sent;
    s->received = now.bytes_received;
    s->violation = s->most_violated = 0;
    s->violated = s->visited = 0;
    for (size_t i = 0; i < s->parts; i++) {
        window_clear(&s->part[i].window);
        design_mark(&s->part[i].design);
    }
    memcpy(s->before, s->weight, s->keys * sizeof *s->before);
    if (s->owned.n > 0)
        memcpy(s->owned.before, s->owned.weight, s->owned.n * sizeof *s->owned.before);
    for (size_t k = 0; plan->full && k < s->keys; k++)
        s->reach[k] = fabs(s->reach[k]);
    for (size_t k = 0; plan->full && k < s->owned.n; k++)
        s->owned.reach[k] = fabs(s->owned.reach[k]);
    plan_order(plan, &s->o.darlin, s->o.seed, s->order);
    s->clock = plan->clock;
}

uint64_t solver_ticks(const struct plan *plan, const struct darlin_options *o)
{
    return 2 * ((uint64_t)plan->blocks + o->delay + 1);
}

/* Waits for all pushes. A failed push ends the job. */
static paramo_err wait_pushes(struct solver *s)
{
    return paramo_wait_all(s->o.worker, 0);
}

/* The clock at which all workers have pushed the gradient of a slot, and that at which its step is pushed. */
static uint64_t pushed_clock(const struct solver *s, size_t slot)
{
    return s->clock + 2 * slot + 1;
}

static uint64_t stepped_clock(const struct solver *s, size_t slot)
{
    return s->clock + 2 * (slot + s->o.darlin.delay / 2) + 2;
}

/* Slot `slot` of a pass (solver.h). *followed: the number of steps that the margins contain. */
static paramo_err run_slot(struct solver *s, const struct plan *plan, size_t slot, size_t *followed)
{
    const size_t delay = s->o.darlin.delay, lag = delay / 2;
    paramo_err err = interrupted(s);
    if (err == PARAMO_OK && slot > delay) {
        err = solver_wait(s, stepped_clock(s, slot - delay - 1));
        if (err == PARAMO_OK)
            err = follow(s, s->order[slot - delay - 1]);
        ++*followed;
    }
    if (err == PARAMO_OK && slot < plan->blocks) {
        const size_t lacks = slot - *followed;
        assert(lacks <= delay);
        s->delayed = lacks > s->delayed ? (uint32_t)lacks : s->delayed;
        err = push_gradient(s, slot, s->order[slot]);
    }
    if (err == PARAMO_OK)
        err = paramo_clock(s->o.worker, NULL);
    if (err == PARAMO_OK && slot >= lag && slot - lag < plan->blocks && owns(s, plan, s->order[slot - lag])) {
        err = solver_wait(s, pushed_clock(s, slot - lag));
        if (err == PARAMO_OK)
            err = step_block(s, plan, s->order[slot - lag]);
    }
    return err == PARAMO_OK ? paramo_clock(s->o.worker, NULL) : err;
}

/* Moves the weights further in the direction of the last pass. Before and after that pass, a key has the same weight
 * here and at its owner, so both compute the same weight without a message. The next step of the key writes its row on
 * the servers. */
static void extrapolate(struct solver *s, double way)
{
    for (size_t i = 0; i < s->parts; i++)
        design_go(&s->part[i].design, way);
    for (size_t k = 0; k < s->keys; k++)
        s->weight[k] += way * (s->weight[k] - s->before[k]);
    for (size_t k = 0; k < s->owned.n; k++)
        s->owned.weight[k] += way * (s->owned.weight[k] - s->owned.before[k]);
}

paramo_err solver_pass(struct solver *s, const struct plan *plan)
{
    paramo_err err = PARAMO_OK;
    size_t followed = 0;
    assert(plan->blocks == s->blocks);
    if (plan->way > 0)
        extrapolate(s, plan->way);
    begin_pass(s, plan);
    for (size_t slot = 0; err == PARAMO_OK && slot <= plan->blocks + s->o.darlin.delay; slot++)
        err = run_slot(s, plan, slot, &followed);
    assert(err != PARAMO_OK || followed == plan->blocks);
    return err == PARAMO_OK ? wait_pushes(s) : err;
}

/* ---- sums ---- */

static void sum_owned(const struct solver *s, double *sums)
{
    const struct owned *o = &s->owned;
    for (size_t k = 0; k < o->n; k++) {
        for (int i = 0; i < PLAN_WAYS; i++)
            sums[PLAN_PENALTY + i] +=
                penalty_of(s, o->key[k]) * fabs(o->weight[k] + plan_way(i) * (o->weight[k] - o->before[k]));
        sums[PLAN_NONZERO] += o->weight[k] != 0;
    }
    sums[PLAN_KEYS] += (double)o->n;
}

void solver_sum(struct solver *s, double sums[PLAN_SUMS])
{
    paramo_counters now = {.size = sizeof now};
    paramo_worker_counters(s->o.worker, &now);
    memset(sums, 0, PLAN_SUMS * sizeof *sums);
    for (size_t i = 0; i < s->parts; i++) {
        const struct design *d = &s->part[i].design;
        sums[PLAN_ROWS] += (double)d->rows;
        sums[PLAN_ENTRIES] += (double)d->entries;
        for (int k = 0; k < PLAN_WAYS; k++)
            sums[PLAN_LOSS + k] += design_loss(d, plan_way(k));
        for (size_t r = 0; r < d->rows; r++) {
            sums[PLAN_WEIGHT] += d->weight ? (double)d->weight[r] : 1.0;
            sums[PLAN_POSITIVES] += d->label[r] > 0.5F;
            sums[PLAN_TALLY] += (d->weight ? (double)d->weight[r] : 1.0) * (double)d->label[r];
        }
    }
    sum_owned(s, sums);
    sums[PLAN_ACTIVE] = (double)s->visited;
    sums[PLAN_VIOLATION] = s->violation;
    sums[PLAN_VIOLATED] = (double)s->violated;
    sums[PLAN_SENT] = (double)(now.bytes_sent - s->sent);
    sums[PLAN_RECEIVED] = (double)(now.bytes_received - s->received);
    sums[PLAN_MOST + s->o.place % PLAN_MAXIMA] = s->most_violated;
    sums[PLAN_DELAY + s->o.place % PLAN_MAXIMA] = s->delayed;
    sums[PLAN_MEMBER + s->o.place] = 1;
}
