#include "table/table_var.h"

#include <assert.h>
#include <string.h>

enum { BATCH = 64 }; /* rows whose cache misses overlap */

struct var_row {
    void *values; /* NULL: no values */
    uint32_t len;
};

/* One key of a push that is being prepared. */
struct change {
    uint32_t row; /* KEYINDEX_NONE: there was no row */
    bool created; /* added to the index by this push */
    void *values; /* new memory, or NULL: the row's own is used (or the length is 0) */
};

void table_var_init(struct table_var *v, const struct rowspec *spec, struct tablemem *mem, uint64_t hash_seed)
{
    v->spec = spec;
    v->mem = mem;
    keyindex_init(&v->index, mem, hash_seed, sizeof(uint32_t));
    rowslab_init(&v->slab, mem, sizeof(struct var_row), 8);
}

static struct var_row *row_at(const struct table_var *v, uint32_t row)
{
    return rowslab_row(&v->slab, row);
}

static void row_free_values(struct table_var *v, struct var_row *r)
{
    tablemem_put(v->mem, r->values, r->len * v->spec->value_bytes);
}

static void free_values(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    struct table_var *v = ctx;
    uint32_t row;
    (void)key;
    (void)hash;
    memcpy(&row, payload, sizeof row);
    row_free_values(v, row_at(v, row));
}

bool table_var_free_step(struct table_var *v, uint64_t *cursor, uint64_t rows)
{
    return !keyindex_sweep(&v->index, cursor, rows, free_values, v);
}

void table_var_clear(struct table_var *v)
{
    uint64_t cursor = 0;
    while (!table_var_free_step(v, &cursor, UINT64_MAX)) {
    }
    keyindex_clear(&v->index);
    rowslab_clear(&v->slab);
}

static paramo_err check_push(const struct table_var *v, const uint64_t *keys, size_t n, const void *vals,
                             const uint32_t *lens, bool assign)
{
    size_t total = 0;
    for (size_t i = 0; i < n; i++) {
        total += lens[i];
        if (i > 0 && keys[i] <= keys[i - 1]) {
            return err_set(keys[i] == keys[i - 1] ? PARAMO_E_KEYS_REPEATED : PARAMO_E_KEYS_UNSORTED,
                           "key %llu follows key %llu: keys must ascend", (unsigned long long)keys[i],
                           (unsigned long long)keys[i - 1]);
        }
    }
    return assign ? PARAMO_OK : optimizer_check(&v->spec->optimizer, vals, total);
}

/* Prepares row and memory for one key. *c has what was taken, for undo, even after an error. */
static paramo_err prepare(struct table_var *v, uint64_t key, uint32_t len, bool assign, struct change *c)
{
    paramo_err err;
    assert(!c->values && !c->created);
    if (c->row != KEYINDEX_NONE) {
        uint32_t before = row_at(v, c->row)->len;
        if (len == before)
            return PARAMO_OK;
        if (!assign) {
            return err_set(PARAMO_E_SIZE_MISMATCH, "key %llu: %u values are added to a row of %u",
                           (unsigned long long)key, len, before);
        }
    } else {
        uint32_t row;
        void *number;
        if ((err = rowslab_alloc(&v->slab, &row)) != PARAMO_OK)
            return err;
        *row_at(v, row) = (struct var_row){0};
        if ((err = keyindex_insert(&v->index, key, &number, &c->created)) != PARAMO_OK) {
            rowslab_free(&v->slab, row);
            return err;
        }
        assert(c->created); /* keys ascend: this one had no row */
        memcpy(number, &row, sizeof row);
        c->row = row;
    }
    if (len > 0) {
        c->values = tablemem_get(v->mem, 8, len * v->spec->value_bytes);
        if (!c->values)
            return err_memory(len * v->spec->value_bytes);
    }
    return PARAMO_OK;
}

static void undo(struct table_var *v, uint64_t key, uint32_t len, struct change *c)
{
    tablemem_put(v->mem, c->values, len * v->spec->value_bytes);
    if (c->created && keyindex_remove(&v->index, key, NULL))
        rowslab_free(&v->slab, c->row);
}

static void commit(struct table_var *v, uint32_t len, bool assign, const struct change *c, const void *from)
{
    struct var_row *r = row_at(v, c->row);
    bool kept = len == r->len; /* a new row has length 0 */
    assert(kept || !len || c->values);
    if (!kept) {
        row_free_values(v, r);
        *r = (struct var_row){.values = c->values, .len = len};
    }
    if (len == 0)
        return;
    if (kept && !assign) {
        const struct optimizer *o = &v->spec->optimizer;
        o->span(o, r->values, NULL, NULL, 0, from, len);
    } else {
        memcpy(r->values, from, len * v->spec->value_bytes);
    }
}

paramo_err table_var_store(struct table_var *v, const uint64_t *keys, size_t n, const void *vals,
                           const uint32_t *lens, bool assign)
{
    paramo_err err = check_push(v, keys, n, vals, lens, assign);
    if (err || n == 0)
        return err;
    struct change *changes = tablemem_get(v->mem, _Alignof(struct change), n * sizeof *changes);
    uint32_t *rows = tablemem_get(v->mem, sizeof *rows, n * sizeof *rows);
    if (!changes || !rows) {
        err = err_memory(n * sizeof *changes);
        goto err_scratch;
    }
    keyindex_find(&v->index, keys, n, rows);
    if (v->slab.marks)
        rowmarks_change_all(v->slab.marks, keys, rows, n);
    size_t done = 0;
    for (; done < n && err == PARAMO_OK; done++) {
        changes[done] = (struct change){.row = rows[done]};
        err = prepare(v, keys[done], lens[done], assign, &changes[done]);
    }
    if (err) {
        while (done-- > 0)
            undo(v, keys[done], lens[done], &changes[done]);
        goto err_scratch;
    }
    const char *from = vals;
    for (size_t i = 0; i < n; i++) {
        commit(v, lens[i], assign, &changes[i], from);
        from = lens[i] ? from + lens[i] * v->spec->value_bytes : from; /* NULL if all rows are empty */
    }
err_scratch:
    tablemem_put(v->mem, rows, n * sizeof *rows);
    tablemem_put(v->mem, changes, n * sizeof *changes);
    return err;
}

void table_var_read_lens(const struct table_var *v, const uint64_t *keys, size_t n, uint32_t *lens,
                         size_t *total)
{
    keyindex_find(&v->index, keys, n, lens); /* row numbers, replaced one by one */
    *total = 0;
    for (size_t i = 0; i < n; i++) {
        lens[i] = lens[i] == KEYINDEX_NONE ? 0 : row_at(v, lens[i])->len;
        *total += lens[i];
    }
}

void table_var_read(const struct table_var *v, const uint64_t *keys, size_t n, void *vals)
{
    char *to = vals;
    for (size_t done = 0, m; done < n; done += m) {
        uint32_t rows[BATCH];
        m = n - done < BATCH ? n - done : BATCH;
        keyindex_find(&v->index, keys + done, m, rows);
        for (size_t i = 0; i < m; i++)
            if (rows[i] != KEYINDEX_NONE)
                __builtin_prefetch(row_at(v, rows[i]));
        for (size_t i = 0; i < m; i++)
            if (rows[i] != KEYINDEX_NONE)
                __builtin_prefetch(row_at(v, rows[i])->values);
        for (size_t i = 0; i < m; i++) {
            const struct var_row *r = rows[i] == KEYINDEX_NONE ? NULL : row_at(v, rows[i]);
            if (r && r->len > 0) {
                size_t bytes = r->len * v->spec->value_bytes;
                memcpy(to, r->values, bytes);
                to += bytes;
            }
        }
    }
}

const void *table_var_row(const struct table_var *v, uint32_t row, uint32_t *len)
{
    const struct var_row *r = row_at(v, row);
    *len = r->len;
    return r->values;
}

size_t table_var_delete(struct table_var *v, const uint64_t *keys, size_t n)
{
    size_t removed = 0;
    for (size_t i = 0; i < n; i++) {
        uint32_t row;
        if (keyindex_remove(&v->index, keys[i], &row)) {
            struct var_row *r = row_at(v, row);
            row_free_values(v, r);
            *r = (struct var_row){0};
            rowslab_free(&v->slab, row);
            removed++;
        }
    }
    return removed;
}
