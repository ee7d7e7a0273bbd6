#include "table/table_dense.h"

#include <assert.h>
#include <string.h>

void table_dense_init(struct table_dense *d, const struct rowspec *spec, struct tablemem *mem, uint64_t rows)
{
    *d = (struct table_dense){.spec = spec, .mem = mem, .limit = rows};
}

static void run_free(struct table_dense *d, const struct dense_run *r)
{
    size_t values = (size_t)r->count * d->spec->dim;
    tablemem_put(d->mem, r->w, values * d->spec->value_bytes);
    tablemem_put(d->mem, r->s0, values * sizeof(float));
    tablemem_put(d->mem, r->s1, values * sizeof(float));
    tablemem_put(d->mem, r->t, (size_t)r->count * sizeof(float));
}

void table_dense_fini(struct table_dense *d)
{
    assert(d->count <= d->room);
    for (size_t i = 0; i < d->count; i++)
        run_free(d, &d->runs[i]);
    tablemem_put(d->mem, d->runs, d->room * sizeof *d->runs);
    d->runs = NULL;
    d->count = d->room = 0;
}

static float *plane_at(float *plane, size_t value)
{
    return plane ? plane + value : NULL;
}

/* Resets n rows of the run, from index `from` on. */
static void run_reset(const struct table_dense *d, const struct dense_run *r, size_t from, size_t n)
{
    assert(from <= r->count);
    assert(n <= r->count - from);
    const struct rowspec *spec = d->spec;
    size_t value = from * spec->dim;
    char *w = r->w + from * spec->param_bytes;
    for (size_t i = 0; i < n; i++)
        rowinit_fill(&spec->init, r->first + from + i, 0, spec->dim, w + i * spec->param_bytes);
    optimizer_start(&spec->optimizer, w, plane_at(r->s0, value), plane_at(r->s1, value), n * spec->dim);
    if (r->t)
        memset(r->t + from, 0, n * sizeof *r->t);
}

static paramo_err run_new(struct table_dense *d, uint64_t first, uint64_t count, bool with_values,
                          struct dense_run *r)
{
    enum { ALIGN = 64 };
    const struct rowspec *spec = d->spec;
    size_t values = (size_t)count * spec->dim;
    *r = (struct dense_run){.first = first, .count = count};
    r->w = tablemem_get(d->mem, ALIGN, values * spec->value_bytes);
    if (r->w && spec->planes > 0)
        r->s0 = tablemem_get(d->mem, ALIGN, values * sizeof(float));
    if (r->w && spec->planes > 1)
        r->s1 = tablemem_get(d->mem, ALIGN, values * sizeof(float));
    if (r->w && spec->counts)
        r->t = tablemem_get(d->mem, ALIGN, (size_t)count * sizeof(float));
    if (!r->w || (spec->planes > 0 && !r->s0) || (spec->planes > 1 && !r->s1) || (spec->counts && !r->t)) {
        run_free(d, r);
        return err_memory(values * spec->value_bytes);
    }
    assert((r->s0 != NULL) == (spec->planes > 0));
    assert((r->s1 != NULL) == (spec->planes > 1));
    if (with_values)
        run_reset(d, r, 0, (size_t)count);
    return PARAMO_OK;
}

/* The first run that ends after key, or d->count. */
static size_t run_at(const struct table_dense *d, uint64_t key)
{
    size_t low = 0;
    size_t high = d->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct dense_run *r = &d->runs[middle];
        if (r->first + r->count <= key)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

paramo_err table_dense_add_run(struct table_dense *d, uint64_t first, uint64_t count, bool values)
{
    if (count == 0 || first >= d->limit || count > d->limit - first) {
        return err_set(PARAMO_E_KEY_RANGE, "first row %llu and %llu rows from it do not fit a table of %llu",
                       (unsigned long long)first, (unsigned long long)count, (unsigned long long)d->limit);
    }
    size_t at = run_at(d, first);
    if (at < d->count && d->runs[at].first < first + count) {
        return err_set(PARAMO_E_INVALID,
                       "first row %llu and %llu rows from it: the shard already holds some of them",
                       (unsigned long long)first, (unsigned long long)count);
    }
    if (d->count == d->room) {
        size_t room = d->room ? 2 * d->room : 8;
        struct dense_run *runs = tablemem_get(d->mem, _Alignof(struct dense_run), room * sizeof *runs);
        if (!runs)
            return err_memory(room * sizeof *runs);
        if (d->count)
            memcpy(runs, d->runs, d->count * sizeof *runs);
        tablemem_put(d->mem, d->runs, d->room * sizeof *runs);
        d->runs = runs;
        d->room = room;
    }
    struct dense_run added;
    paramo_err err = run_new(d, first, count, values, &added);
    if (err)
        return err;
    memmove(&d->runs[at + 1], &d->runs[at], (d->count - at) * sizeof *d->runs);
    d->runs[at] = added;
    d->count++;
    assert(at == 0 ||
           d->runs[at - 1].first + d->runs[at - 1].count <= first); /* runs ascend, and share no row */
    assert(at + 1 == d->count || first + count <= d->runs[at + 1].first);
    return PARAMO_OK;
}

bool table_dense_next(const struct table_dense *d, uint64_t from, uint64_t *first, uint64_t *end)
{
    size_t at = run_at(d, from);
    if (at == d->count)
        return false;
    const struct dense_run *r = &d->runs[at];
    *first = r->first > from ? r->first : from;
    *end = r->first + r->count;
    return true;
}

/* Consecutive keys of one run: keys[0 .. n), rows at offset of run. */
struct piece {
    const struct dense_run *run;
    size_t offset, n;
};

static paramo_err refuse_key(const struct table_dense *d, uint64_t key)
{
    if (key >= d->limit) {
        return err_set(PARAMO_E_KEY_RANGE, "key %llu: the table has rows 0 .. %llu", (unsigned long long)key,
                       (unsigned long long)(d->limit - 1));
    }
    return err_set(PARAMO_E_MOVED, "key %llu is held by another shard", (unsigned long long)key);
}

/* How many of keys[0 .. most) are consecutive. Keys ascend, so checking the last key of a stretch is
 * enough. */
static size_t consecutive(const uint64_t *keys, size_t most)
{
    if (keys[most - 1] - keys[0] == most - 1)
        return most;
    size_t good = 1; /* a length that is consecutive */
    size_t bad = 2;  /* gallop to a length that is not */
    while (bad < most && keys[bad - 1] - keys[0] == bad - 1) {
        good = bad;
        bad *= 2;
    }
    bad = bad < most ? bad : most;
    while (good + 1 < bad) {
        size_t middle = good + (bad - good) / 2;
        if (keys[middle - 1] - keys[0] == middle - 1)
            good = middle;
        else
            bad = middle;
    }
    return good;
}

/* The piece at the beginning of keys[0 .. n), n > 0. *hint: the run to try first; updated. */
static paramo_err next_piece(const struct table_dense *d, const uint64_t *keys, size_t n, size_t *hint,
                             struct piece *p)
{
    uint64_t key = keys[0];
    size_t at = *hint;
    if (at >= d->count || key - d->runs[at].first >= d->runs[at].count) {
        at = run_at(d, key);
        if (at == d->count || key < d->runs[at].first)
            return refuse_key(d, key);
        *hint = at;
    }
    const struct dense_run *r = &d->runs[at];
    p->run = r;
    p->offset = (size_t)(key - r->first);
    size_t left = (size_t)r->count - p->offset;
    p->n = consecutive(keys, n < left ? n : left);
    return PARAMO_OK;
}

paramo_err table_dense_check(const struct table_dense *d, const uint64_t *keys, size_t n)
{
    size_t hint = 0;
    struct piece p = {0};
    for (size_t done = 0; done < n; done += p.n) {
        paramo_err err = next_piece(d, keys + done, n - done, &hint, &p);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

static void *piece_params(const struct table_dense *d, const struct piece *p)
{
    return p->run->w + p->offset * d->spec->param_bytes;
}

/* Rows of a piece with the same count of steps share a loop. Without counts all rows share one. */
static void push_piece(const struct table_dense *d, const struct piece *p, const char *vals)
{
    const struct rowspec *spec = d->spec;
    const struct optimizer *o = &spec->optimizer;
    const struct dense_run *r = p->run;
    assert(p->n > 0);
    assert(p->offset + p->n <= r->count);
    for (size_t i = 0, same; i < p->n; i += same) {
        size_t row = p->offset + i;
        size_t value = row * spec->dim;
        float t = 0;
        same = p->n;
        if (r->t) {
            float before = r->t[row];
            t = optimizer_next_step(before);
            for (same = 0; i + same < p->n && r->t[row + same] == before; same++)
                r->t[row + same] = t;
        }
        o->span(o, r->w + row * spec->param_bytes, plane_at(r->s0, value), plane_at(r->s1, value), t,
                vals + i * spec->param_bytes, same * spec->dim);
    }
}

paramo_err table_dense_push(struct table_dense *d, const uint64_t *keys, size_t n, const void *vals)
{
    const struct rowspec *spec = d->spec;
    paramo_err err = optimizer_check(&spec->optimizer, vals, n * spec->dim);
    if (err || (err = table_dense_check(d, keys, n)) != PARAMO_OK)
        return err;
    size_t hint = 0;
    struct piece p;
    for (size_t done = 0; done < n; done += p.n) {
        err = next_piece(d, keys + done, n - done, &hint, &p);
        if (err)
            return err; /* never: checked above */
        push_piece(d, &p, (const char *)vals + done * spec->param_bytes);
    }
    return PARAMO_OK;
}

const void *table_dense_span(const struct table_dense *d, const uint64_t *keys, size_t n)
{
    size_t at = run_at(d, keys[0]);
    if (at == d->count || keys[0] - d->runs[at].first >= d->runs[at].count)
        return NULL;
    const struct dense_run *r = &d->runs[at];
    uint64_t offset = keys[0] - r->first;
    if (n > r->count - offset || consecutive(keys, n) < n)
        return NULL;
    return r->w + offset * d->spec->param_bytes;
}

paramo_err table_dense_pull(const struct table_dense *d, const uint64_t *keys, size_t n, void *vals)
{
    size_t bytes = d->spec->param_bytes;
    size_t hint = 0;
    struct piece p;
    for (size_t done = 0; done < n; done += p.n) {
        paramo_err err = next_piece(d, keys + done, n - done, &hint, &p);
        if (err)
            return err;
        memcpy((char *)vals + done * bytes, piece_params(d, &p), p.n * bytes);
    }
    return PARAMO_OK;
}

paramo_err table_dense_push_columns(struct table_dense *d, const uint64_t *keys, size_t n, uint32_t col,
                                    uint32_t ncols, const void *vals)
{
    const struct rowspec *spec = d->spec;
    const char *from = vals;
    struct piece p;
    size_t hint = 0;
    paramo_err err = optimizer_check(&spec->optimizer, vals, n * ncols);
    if (err || (err = table_dense_check(d, keys, n)) != PARAMO_OK)
        return err;
    for (size_t i = 0; i < n; i++, from += ncols * spec->value_bytes) {
        err = next_piece(d, keys + i, 1, &hint, &p);
        if (err)
            return err; /* never: checked above */
        size_t value = p.offset * spec->dim + col;
        spec->optimizer.span(&spec->optimizer, p.run->w + value * spec->value_bytes,
                             plane_at(p.run->s0, value), plane_at(p.run->s1, value), 0, from, ncols);
    }
    return PARAMO_OK;
}

paramo_err table_dense_pull_columns(const struct table_dense *d, const uint64_t *keys, size_t n, uint32_t col,
                                    uint32_t ncols, void *vals)
{
    size_t value = d->spec->value_bytes, bytes = ncols * value, hint = 0;
    char *out = vals;
    for (size_t i = 0; i < n; i++, out += bytes) {
        struct piece p = {0};
        paramo_err err = next_piece(d, keys + i, 1, &hint, &p);
        if (err)
            return err;
        memcpy(out, (const char *)piece_params(d, &p) + col * value, bytes);
    }
    return PARAMO_OK;
}

/* Walks the rows one by one. out and in are rows of parameters and state, one after the other. */
paramo_err table_dense_get(const struct table_dense *d, const uint64_t *keys, size_t n, bool with_state,
                           void *out)
{
    const struct rowspec *spec = d->spec;
    if (!with_state || spec->state_values == 0)
        return table_dense_pull(d, keys, n, out);
    size_t hint = 0;
    size_t dim = spec->dim;
    float *to = out;
    for (size_t i = 0; i < n; i++) {
        struct piece p;
        paramo_err err = next_piece(d, keys + i, 1, &hint, &p);
        if (err)
            return err;
        size_t value = p.offset * dim;
        memcpy(to, piece_params(d, &p), dim * sizeof *to);
        memcpy(to + dim, p.run->s0 + value, dim * sizeof *to);
        if (p.run->s1)
            memcpy(to + 2 * dim, p.run->s1 + value, dim * sizeof *to);
        if (p.run->t)
            to[3 * dim] = p.run->t[p.offset];
        to += dim + spec->state_values;
    }
    return PARAMO_OK;
}

static paramo_err check_rows(const struct table_dense *d, const uint64_t *keys, size_t n, bool state,
                             const void *in)
{
    const struct rowspec *spec = d->spec;
    size_t bytes = spec->param_bytes + (state ? spec->state_values * sizeof(float) : 0);
    for (size_t i = 0; i < n; i++) {
        const float *w = (const float *)(const void *)((const char *)in + i * bytes);
        paramo_err err = optimizer_check_state(
            &spec->optimizer, w, state ? w + spec->dim : NULL, state ? w + 2 * (size_t)spec->dim : NULL,
            state && spec->counts ? w[3 * (size_t)spec->dim] : 0, spec->dim);
        if (err)
            return err_prefix(err, "key %llu", (unsigned long long)keys[i]);
    }
    return table_dense_check(d, keys, n);
}

paramo_err table_dense_put(struct table_dense *d, const uint64_t *keys, size_t n, bool with_state,
                           const void *in)
{
    const struct rowspec *spec = d->spec;
    bool state = with_state && spec->state_values > 0;
    paramo_err err = check_rows(d, keys, n, state, in);
    if (err)
        return err;
    size_t hint = 0;
    size_t dim = spec->dim;
    const char *from = in;
    for (size_t i = 0; i < n; i++) {
        struct piece p;
        err = next_piece(d, keys + i, 1, &hint, &p);
        if (err)
            return err; /* never: checked above */
        size_t value = p.offset * dim;
        memcpy(piece_params(d, &p), from, spec->param_bytes);
        from += spec->param_bytes;
        float *s0 = plane_at(p.run->s0, value);
        float *s1 = plane_at(p.run->s1, value);
        if (!state) {
            optimizer_start(&spec->optimizer, piece_params(d, &p), s0, s1, dim);
            if (p.run->t)
                p.run->t[p.offset] = 0;
            continue;
        }
        const float *values = (const float *)(const void *)from;
        memcpy(s0, values, dim * sizeof *values);
        if (s1)
            memcpy(s1, values + dim, dim * sizeof *values);
        if (p.run->t)
            p.run->t[p.offset] = values[2 * dim];
        from += spec->state_values * sizeof(float);
    }
    return PARAMO_OK;
}

void table_dense_reset(struct table_dense *d)
{
    for (size_t i = 0; i < d->count; i++)
        run_reset(d, &d->runs[i], 0, (size_t)d->runs[i].count);
}

paramo_err table_dense_reset_rows(struct table_dense *d, const uint64_t *keys, size_t n)
{
    paramo_err err = table_dense_check(d, keys, n);
    size_t hint = 0;
    struct piece p = {0};
    for (size_t done = 0; done < n && !err; done += p.n) {
        err = next_piece(d, keys + done, n - done, &hint, &p);
        if (!err) /* always: checked above */
            run_reset(d, p.run, p.offset, p.n);
    }
    return err;
}

uint64_t table_dense_rows(const struct table_dense *d)
{
    uint64_t rows = 0;
    for (size_t i = 0; i < d->count; i++)
        rows += d->runs[i].count;
    return rows;
}

void table_dense_keys(const struct table_dense *d, uint64_t *keys)
{
    for (size_t i = 0; i < d->count; i++)
        for (uint64_t k = 0; k < d->runs[i].count; k++)
            *keys++ = d->runs[i].first + k;
}

const char *table_dense_at(const struct table_dense *d, uint64_t first, uint64_t count)
{
    const struct dense_run *r = &d->runs[run_at(d, first)];
    assert(count > 0 && first >= r->first && first - r->first + count <= r->count);
    return r->w + (size_t)(first - r->first) * d->spec->param_bytes;
}

uint64_t table_dense_nonzero(const struct table_dense *d, uint64_t first, uint64_t count)
{
    return count
               ? rowspec_count_nonzero(d->spec, table_dense_at(d, first, count), (size_t)count * d->spec->dim)
               : 0;
}
