#include "table/table_cut.h"

#include <stdlib.h>
#include <string.h>

#include "table/table_impl.h"

enum {
    TOUCH = 64 /* keys */,
    PARTS = 256,
    PART_SHIFT = 56,
    BLOCK_BYTES = 16 << 10 /* of a dense table. Arbitrary */
};

/* A set of hashes. */
struct part {
    uint64_t *slot; /* open addressing; 0: free */
    size_t count, room;
    bool zero; /* the hash 0 is in it */
};

struct table_cut {
    struct table *table;
    table_cut_row row;
    void *arg;
    bool done, broken;
    uint64_t cursor; /* a hash; DENSE: a block */
    struct part ahead[PARTS];
    uint64_t block_rows, blocks; /* DENSE */
    uint64_t *given;             /* a bit for each block */
    char *buffer;                /* a block of rows, and their keys */
    uint64_t *keys;
};

/* ---- what was given out ahead -------------------------------------------------------------------------- */

static size_t home_of(const struct part *p, uint64_t hash)
{
    return (size_t)(hash * UINT64_C(0x9e3779b97f4a7c15) >> 32) & (p->room - 1);
}

static size_t slot_of(const struct part *p, uint64_t hash)
{
    size_t at = home_of(p, hash);
    while (p->slot[at] && p->slot[at] != hash)
        at = (at + 1) & (p->room - 1);
    return at;
}

static bool part_has(const struct part *p, uint64_t hash)
{
    if (!hash)
        return p->zero;
    return p->room && p->slot[slot_of(p, hash)];
}

static bool part_grow(struct part *p)
{
    struct part more = {.room = p->room ? 2 * p->room : 64, .count = p->count, .zero = p->zero};
    more.slot = calloc(more.room, sizeof *more.slot);
    if (!more.slot)
        return false;
    for (size_t i = 0; i < p->room; i++)
        if (p->slot[i])
            more.slot[slot_of(&more, p->slot[i])] = p->slot[i];
    free(p->slot);
    *p = more;
    return true;
}

/* *added: it was not there. */
static bool part_add(struct part *p, uint64_t hash, bool *added)
{
    if (!hash) {
        *added = !p->zero;
        p->zero = true;
        return true;
    }
    if (3 * p->count >= 2 * p->room && !part_grow(p))
        return false;
    size_t at = slot_of(p, hash);
    *added = !p->slot[at];
    p->slot[at] = hash;
    p->count += *added;
    return true;
}

static void part_free(struct part *p)
{
    free(p->slot);
    *p = (struct part){0};
}

/* ---- any keys ------------------------------------------------------------------------------------------ */

static void give(struct table_cut *cut, uint64_t key, const void *payload)
{
    const struct table *t = cut->table;
    uint32_t number, values = (uint32_t)(t->spec.dim + t->spec.state_values);
    const void *row = payload;
    if (!is_small(t)) {
        memcpy(&number, payload, sizeof number);
        row = is_var(t) ? table_var_row(&t->var, number, &values) : rowslab_row(&t->sparse.slab, number);
    }
    cut->row(cut->arg, key, row, values);
}

/* Up to TOUCH keys: what one of them reads is fetched while the others are looked at. */
static void touch_keys(struct table_cut *cut, const uint64_t *keys, size_t n)
{
    const struct keyindex *x = index_of(cut->table);
    uint64_t hash[TOUCH], added[TOUCH];
    size_t ahead = 0, count = 0;
    for (size_t i = 0; i < n; i++) {
        hash[ahead] = keyindex_hash(x, keys[i]);
        const struct part *p = &cut->ahead[hash[ahead] >> PART_SHIFT];
        if (hash[ahead] < cut->cursor)
            continue;
        if (p->room)
            __builtin_prefetch(&p->slot[home_of(p, hash[ahead])], 1);
        added[ahead++] = keys[i];
    }
    for (size_t i = 0; i < ahead && !cut->broken; i++) {
        bool is_new = false;
        cut->broken = !part_add(&cut->ahead[hash[i] >> PART_SHIFT], hash[i], &is_new);
        if (is_new) {
            added[count++] = added[i];
            keyindex_prefetch(x, added[i]);
        }
    }
    for (size_t i = 0; i < count && !cut->broken; i++) {
        const void *payload = keyindex_payload(x, added[i]);
        if (payload)
            give(cut, added[i], payload);
    }
}

struct sweep {
    struct table_cut *cut;
    uint64_t rows;
};

static void sweep_key(void *arg, uint64_t key, uint64_t hash, void *payload)
{
    struct sweep *sweep = arg;
    sweep->rows++;
    if (!part_has(&sweep->cut->ahead[hash >> PART_SHIFT], hash))
        give(sweep->cut, key, payload);
}

static void sweep_step(struct table_cut *cut, uint64_t rows)
{
    struct sweep sweep = {.cut = cut};
    uint64_t part = cut->cursor >> PART_SHIFT;
    while (!cut->done && sweep.rows < rows)
        cut->done = !keyindex_sweep(index_of(cut->table), &cut->cursor, rows, sweep_key, &sweep);
    for (; part < (cut->done ? PARTS : cut->cursor >> PART_SHIFT); part++)
        part_free(&cut->ahead[part]);
}

/* ---- dense --------------------------------------------------------------------------------------------- */

static size_t row_bytes(const struct table *t)
{
    return t->spec.param_bytes + t->spec.state_values * sizeof(float);
}

static void give_block(struct table_cut *cut, uint64_t block)
{
    const struct table *t = cut->table;
    uint64_t bit = UINT64_C(1) << (block % 64), at = block * cut->block_rows, first, end;
    if (cut->given[block / 64] & bit)
        return;
    cut->given[block / 64] |= bit;
    for (uint64_t last = at + cut->block_rows;
         at < last && table_dense_next(&t->dense, at, &first, &end) && first < last; at = end) {
        end = end < last ? end : last;
        size_t n = (size_t)(end - first);
        for (size_t i = 0; i < n; i++)
            cut->keys[i] = first + i;
        if (table_dense_get(&t->dense, cut->keys, n, true, cut->buffer)) /* they are held: it cannot fail */
            cut->broken = true;
        for (size_t i = 0; i < n; i++)
            cut->row(cut->arg, first + i, cut->buffer + i * row_bytes(t),
                     (uint32_t)(t->spec.dim + t->spec.state_values));
    }
}

static paramo_err dense_open(struct table_cut *cut)
{
    const struct table *t = cut->table;
    cut->block_rows = row_bytes(t) < BLOCK_BYTES ? BLOCK_BYTES / row_bytes(t) : 1;
    cut->blocks = (t->options.rows + cut->block_rows - 1) / cut->block_rows;
    cut->given = calloc(cut->blocks / 64 + 1, sizeof *cut->given);
    cut->buffer = malloc(cut->block_rows * row_bytes(t));
    cut->keys = malloc(cut->block_rows * sizeof *cut->keys);
    return cut->given && cut->buffer && cut->keys ? PARAMO_OK : err_memory(cut->blocks / 8);
}

/* ---- both ---------------------------------------------------------------------------------------------- */

bool table_changes_known(const struct table *t)
{
    (void)t; /* a table does not note them yet */
    return false;
}

const uint64_t *table_cut_erased(const struct table_cut *cut, size_t *n)
{
    (void)cut;
    *n = 0;
    return NULL;
}

paramo_err table_cut_open(struct table *t, enum table_cut_kind kind, bool track, table_cut_row row, void *arg,
                          struct table_cut **out)
{
    (void)track;
    if (t->cut)
        return err_set(PARAMO_E_INVALID, "a cut of the table is open");
    if (kind == TABLE_CUT_CHANGES && !table_changes_known(t))
        return err_set(PARAMO_E_INVALID, "the changes of the table are not known");
    struct table_cut *cut = calloc(1, sizeof *cut);
    if (!cut)
        return err_memory(sizeof *cut);
    cut->table = t;
    cut->row = row;
    cut->arg = arg;
    paramo_err err = is_dense(t) ? dense_open(cut) : PARAMO_OK;
    if (err) {
        table_cut_close(cut);
        return err;
    }
    t->cut = cut;
    *out = cut;
    return PARAMO_OK;
}

void table_cut_touch(struct table_cut *cut, const uint64_t *keys, size_t n)
{
    if (cut->done || cut->broken)
        return;
    for (size_t i = 0; i < n && !is_dense(cut->table); i += TOUCH)
        touch_keys(cut, keys + i, n - i < TOUCH ? n - i : TOUCH);
    for (size_t i = 0; i < n && is_dense(cut->table); i++)
        if (keys[i] < cut->table->options.rows) /* else the change is refused */
            give_block(cut, keys[i] / cut->block_rows);
}

void table_cut_touch_all(struct table_cut *cut)
{
    bool done = cut->done || cut->broken;
    while (!done)
        done = table_cut_step(cut, SIZE_MAX, &done) != PARAMO_OK || done;
}

paramo_err table_cut_step(struct table_cut *cut, size_t bytes, bool *done)
{
    const struct table *t = cut->table;
    uint64_t rows = table_rows(t);
    size_t row = rows ? t->mem.bytes / rows + 1 : 1;
    if (!is_dense(t) && !cut->done && !cut->broken)
        sweep_step(cut, bytes / row + 1);
    for (size_t given = 0; is_dense(t) && cut->cursor < cut->blocks && given < bytes;
         given += cut->block_rows * row_bytes(t))
        give_block(cut, cut->cursor++);
    if (is_dense(t))
        cut->done = cut->cursor == cut->blocks;
    *done = cut->done;
    return cut->broken ? err_set(PARAMO_E_MEMORY, "no memory to note a change of the table") : PARAMO_OK;
}

bool table_cut_holds(const struct table_cut *cut, const uint64_t *keys, size_t n)
{
    const struct table *t = cut->table;
    if (cut->done || cut->broken)
        return false;
    for (size_t i = 0; keys && i < n; i++) {
        uint64_t hash = is_dense(t) ? 0 : keyindex_hash(index_of(t), keys[i]);
        uint64_t block = is_dense(t) ? keys[i] / cut->block_rows : 0;
        if (is_dense(t) ? keys[i] < t->options.rows && !(cut->given[block / 64] >> (block % 64) & 1)
                        : hash >= cut->cursor && !part_has(&cut->ahead[hash >> PART_SHIFT], hash))
            return true;
    }
    return !keys;
}

void table_cut_close(struct table_cut *cut)
{
    if (!cut)
        return;
    if (cut->table->cut == cut)
        cut->table->cut = NULL;
    for (size_t i = 0; i < PARTS; i++)
        part_free(&cut->ahead[i]);
    free(cut->given);
    free(cut->buffer);
    free(cut->keys);
    free(cut);
}
