#include "table/table_cut.h"

#include <stdlib.h>
#include <string.h>

#include "table/keysort.h"
#include "table/table_impl.h"

enum {
    BLOCK_BYTES = 16 << 10, /* of a dense table. Arbitrary */
    LOOK_BYTES = 64,        /* what a block that is not given out costs of a step ... */
    GIVE_LOOKS = 4,         /* ... and a row that is, beside one that is not */
    ERASED_FIRST = 256
};

struct table_cut {
    struct table *table;
    enum table_cut_kind kind;
    table_cut_row row;
    void *arg;
    bool done;
    uint64_t cursor; /* a hash; DENSE: a block */
    uint64_t *erased;
    size_t erased_count, erased_room;
    char *buffer; /* DENSE: a block of rows, and their keys */
    uint64_t *keys;
};

/* ---- marks --------------------------------------------------------------------------------------------- */

/* The store has them, or no longer. */
static void marks_lend(struct table *t, bool marking)
{
    struct rowmarks *marks = marking ? &t->changes.marks : NULL;
    t->changes.marking = marking;
    if (is_var(t))
        t->var.slab.marks = marks;
    else if (is_small(t))
        t->small.index.mark = marking ? marks->now : 0;
    else if (!is_dense(t))
        t->sparse.slab.marks = marks;
}

static void erased_free(struct table *t)
{
    struct table_changes *c = &t->changes;
    tablemem_put(&t->mem, c->erased, c->erased_room * sizeof *c->erased);
    c->erased = NULL;
    c->erased_count = c->erased_room = 0;
}

void table_changes_lose(struct table *t)
{
    t->changes.tracking = t->changes.known = false;
    erased_free(t);
    if (!t->cut || t->cut->done) {
        marks_lend(t, false);
        rowmarks_clear(&t->changes.marks);
    }
}

bool table_changes_known(const struct table *t)
{
    return t->changes.known && !t->changes.marks.failed;
}

/* Would the walk give out a row of this mark? */
static bool wants(const struct table_cut *cut, unsigned mark)
{
    return mark != cut->table->changes.marks.now && (cut->kind == TABLE_CUT_ALL || mark);
}

static bool is_open(const struct table_cut *cut)
{
    return !cut->done && !cut->table->changes.marks.failed;
}

static void erased_note(struct table *t, uint64_t key)
{
    struct table_changes *c = &t->changes;
    if (c->erased_count == c->erased_room) {
        size_t room = c->erased_room ? 2 * c->erased_room : ERASED_FIRST;
        uint64_t *erased =
            room <= TABLE_CUT_ERASED ? tablemem_get(&t->mem, sizeof *erased, room * sizeof *erased) : NULL;
        if (!erased) {
            table_changes_lose(t);
            return;
        }
        if (c->erased_count)
            memcpy(erased, c->erased, c->erased_count * sizeof *erased);
        tablemem_put(&t->mem, c->erased, c->erased_room * sizeof *erased);
        c->erased = erased;
        c->erased_room = room;
    }
    c->erased[c->erased_count++] = key;
}

/* Sorted, each once, and none that has a row. */
static paramo_err erased_settle(struct table *t)
{
    struct table_changes *c = &t->changes;
    size_t n = c->erased_count, kept = 0;
    if (!n)
        return PARAMO_OK;
    uint64_t *scratch = tablemem_get(&t->mem, sizeof *scratch, n * sizeof *scratch);
    if (!scratch)
        return err_memory(n * sizeof *scratch);
    keysort(c->erased, scratch, n);
    tablemem_put(&t->mem, scratch, n * sizeof *scratch);
    for (size_t i = 0; i < n; i++)
        if ((!i || c->erased[i] != c->erased[i - 1]) && !keyindex_payload(index_of(t), c->erased[i]))
            c->erased[kept++] = c->erased[i];
    c->erased_count = kept;
    return PARAMO_OK;
}

/* ---- any keys ------------------------------------------------------------------------------------------ */

/* In the slab. */
static uint32_t number_of(const void *payload)
{
    uint32_t number;
    memcpy(&number, payload, sizeof number);
    return number;
}

static unsigned mark_of(const struct table *t, const void *payload)
{
    return is_small(t) ? keyindex_mark(&t->small.index, payload)
                       : rowmarks_get(&t->changes.marks, number_of(payload));
}

static void give_small(struct table_cut *cut, uint64_t key, const void *row)
{
    const struct rowspec *spec = &cut->table->spec;
    cut->row(cut->arg, key, row, (uint32_t)(spec->dim + spec->state_values));
}

static void give(struct table_cut *cut, uint64_t key, uint32_t number)
{
    const struct table *t = cut->table;
    uint32_t values = (uint32_t)(t->spec.dim + t->spec.state_values);
    const void *row =
        is_var(t) ? table_var_row(&t->var, number, &values) : rowslab_row(&t->sparse.slab, number);
    cut->row(cut->arg, key, row, values);
}

struct sweep {
    struct table_cut *cut;
    uint64_t looks;
};

static void sweep_key(void *arg, uint64_t key, uint64_t hash, void *payload)
{
    struct sweep *sweep = arg;
    struct table_cut *cut = sweep->cut;
    struct rowmarks *marks = &cut->table->changes.marks;
    bool small = is_small(cut->table);
    unsigned mark = mark_of(cut->table, payload);
    (void)hash;
    sweep->looks++;
    if (wants(cut, mark)) {
        sweep->looks += GIVE_LOOKS - 1;
        if (small)
            give_small(cut, key, payload);
        else
            give(cut, key, number_of(payload));
    }
    if (!mark || mark == marks->now)
        return;
    if (small)
        keyindex_set_mark(&cut->table->small.index, payload, 0);
    else
        rowmarks_set(marks, number_of(payload), 0);
}

static void sweep_step(struct table_cut *cut, uint64_t rows)
{
    struct sweep sweep = {.cut = cut};
    uint64_t looks = GIVE_LOOKS * rows;
    while (!cut->done && sweep.looks < looks)
        cut->done = !keyindex_sweep(index_of(cut->table), &cut->cursor, looks / 2, sweep_key, &sweep);
}

void table_cut_remove(struct table *t, const uint64_t *keys, size_t n)
{
    struct keyindex_scan scan;
    void **payload;
    keyindex_scan_start(&scan, index_of(t), keys, n);
    for (size_t m; t->changes.marking && (m = keyindex_scan_next(&scan, &payload)) > 0; keys += m) {
        for (size_t i = 0; i < m; i++) {
            if (!payload[i])
                continue;
            if (is_small(t))
                keyindex_change(&t->small.index, keys + i, payload + i, 1);
            else
                rowmarks_change(&t->changes.marks, keys[i], number_of(payload[i]));
            if (t->changes.tracking)
                erased_note(t, keys[i]);
        }
    }
}

/* ---- dense --------------------------------------------------------------------------------------------- */

static size_t row_bytes(const struct table *t)
{
    return t->spec.param_bytes + t->spec.state_values * sizeof(float);
}

static uint64_t block_rows(const struct table *t)
{
    return row_bytes(t) < BLOCK_BYTES ? BLOCK_BYTES / row_bytes(t) : 1;
}

static void give_block(struct table_cut *cut, uint64_t block)
{
    struct table *t = cut->table;
    uint64_t at = block * block_rows(t), first, end;
    for (uint64_t last = at + block_rows(t);
         at < last && table_dense_next(&t->dense, at, &first, &end) && first < last; at = end) {
        end = end < last ? end : last;
        size_t n = (size_t)(end - first);
        for (size_t i = 0; i < n; i++)
            cut->keys[i] = first + i;
        if (table_dense_get(&t->dense, cut->keys, n, true, cut->buffer)) /* they are held: it cannot fail */
            t->changes.marks.failed = true;
        for (size_t i = 0; i < n; i++)
            cut->row(cut->arg, first + i, cut->buffer + i * row_bytes(t),
                     (uint32_t)(t->spec.dim + t->spec.state_values));
    }
}

static void dense_step(struct table_cut *cut, size_t bytes)
{
    struct table *t = cut->table;
    struct rowmarks *marks = &t->changes.marks;
    uint64_t rows = block_rows(t), first, end;
    for (size_t given = 0; given < bytes;) {
        cut->done = !table_dense_next(&t->dense, cut->cursor * rows, &first, &end);
        if (cut->done)
            return;
        uint64_t block = first / rows;
        unsigned mark = rowmarks_get(marks, block);
        if (wants(cut, mark))
            give_block(cut, block);
        given += wants(cut, mark) ? rows * row_bytes(t) : LOOK_BYTES;
        if (mark && mark != marks->now)
            rowmarks_set(marks, block, 0);
        cut->cursor = block + 1;
    }
}

static paramo_err dense_open(struct table_cut *cut)
{
    size_t rows = (size_t)block_rows(cut->table);
    cut->buffer = malloc(rows * row_bytes(cut->table));
    cut->keys = malloc(rows * sizeof *cut->keys);
    return cut->buffer && cut->keys ? PARAMO_OK : err_memory(rows * row_bytes(cut->table));
}

/* The first of keys[from .. n) in a later block, where keys[from] is in one that ends before `end`. */
static size_t block_end(const uint64_t *keys, size_t from, size_t n, uint64_t end)
{
    size_t low = from, high = n - from > end - keys[from] ? from + (size_t)(end - keys[from]) : n;
    while (low + 1 < high) {
        size_t middle = low + (high - low) / 2;
        if (keys[middle] < end)
            low = middle;
        else
            high = middle;
    }
    return high;
}

void table_cut_touch(struct table *t, const uint64_t *keys, size_t n)
{
    uint64_t rows = block_rows(t);
    for (size_t i = 0; i < n && keys[i] < t->options.rows;) { /* beyond: the change is refused */
        uint64_t block = keys[i] / rows;
        rowmarks_change(&t->changes.marks, keys[i], block);
        i = block_end(keys, i, n, (block + 1) * rows);
    }
}

void table_cut_touch_range(struct table *t, uint64_t first, uint64_t count)
{
    uint64_t rows = block_rows(t);
    if (count == 0 || first >= t->options.rows || count > t->options.rows - first) /* it will be refused */
        return;
    for (uint64_t block = first / rows; block <= (first + count - 1) / rows; block++)
        rowmarks_change(&t->changes.marks, first, block);
}

/* ---- both ---------------------------------------------------------------------------------------------- */

/* The marks': a row is about to change for the first time since the opening. */
static void change_first(void *arg, uint64_t key, uint64_t number, unsigned was)
{
    struct table_cut *cut = arg;
    const struct table *t = cut->table;
    if (!is_open(cut) || !wants(cut, was))
        return;
    if (is_dense(t)) {
        if (number >= cut->cursor)
            give_block(cut, number);
    } else if (keyindex_hash(index_of(t), key) >= cut->cursor)
        give(cut, key, (uint32_t)number);
}

/* The same of a small row. */
static void change_first_small(void *arg, uint64_t key, const void *row, unsigned was)
{
    struct table_cut *cut = arg;
    if (is_open(cut) && wants(cut, was) && keyindex_hash(index_of(cut->table), key) >= cut->cursor)
        give_small(cut, key, row);
}

/* A walk leaves marks of this epoch and 0s behind it; one that is given up would leave others, which would be
 * this epoch's some openings later. The marks of other stores are thrown away (table_changes_lose). */
static void marks_settle(struct table *t)
{
    if (is_small(t))
        keyindex_clear_marks(&t->small.index);
}

static void cut_free(struct table_cut *cut)
{
    tablemem_put(&cut->table->mem, cut->erased, cut->erased_room * sizeof *cut->erased);
    free(cut->buffer);
    free(cut->keys);
    free(cut);
}

/* What was noted is the cut's from here on. */
static void epoch_begin(struct table *t, struct table_cut *cut, bool track)
{
    struct table_changes *c = &t->changes;
    if (!table_changes_known(t))
        table_changes_lose(t);
    if (cut->kind == TABLE_CUT_CHANGES) {
        cut->erased = c->erased;
        cut->erased_count = c->erased_count;
        cut->erased_room = c->erased_room;
        c->erased = NULL;
        c->erased_count = c->erased_room = 0;
    }
    erased_free(t);
    c->epoch++;
    c->marks.now = (unsigned)(c->epoch % 3) + 1;
    c->marks.first = change_first;
    c->marks.arg = cut;
    if (is_small(t)) {
        t->small.index.first = change_first_small;
        t->small.index.first_arg = cut;
    }
    c->tracking = track;
    c->known = false;
    t->cut = cut;
    marks_lend(t, true);
}

paramo_err table_cut_open(struct table *t, enum table_cut_kind kind, bool track, table_cut_row row, void *arg,
                          struct table_cut **out)
{
    if (t->cut)
        return err_set(PARAMO_E_INVALID, "a cut of the table is open");
    if (kind == TABLE_CUT_CHANGES && !table_changes_known(t))
        return err_set(PARAMO_E_INVALID, "the table's changes are not known");
    struct table_cut *cut = calloc(1, sizeof *cut);
    if (!cut)
        return err_memory(sizeof *cut);
    cut->table = t;
    cut->kind = kind;
    cut->row = row;
    cut->arg = arg;
    paramo_err err = is_dense(t) ? dense_open(cut) : PARAMO_OK;
    if (!err && kind == TABLE_CUT_CHANGES)
        err = erased_settle(t);
    if (err) {
        cut_free(cut);
        return err;
    }
    epoch_begin(t, cut, track);
    *out = cut;
    return PARAMO_OK;
}

const uint64_t *table_cut_erased(const struct table_cut *cut, size_t *n)
{
    *n = cut->erased_count;
    return cut->erased;
}

bool table_cut_walks(const struct table *t)
{
    return t->cut && is_open(t->cut);
}

void table_changes_forget(struct table *t)
{
    table_changes_lose(t);
}

void table_cut_touch_all(struct table *t)
{
    bool done = !table_cut_walks(t);
    while (!done)
        done = table_cut_step(t->cut, SIZE_MAX / 16, &done) != PARAMO_OK || done;
    table_changes_lose(t);
}

paramo_err table_cut_step(struct table_cut *cut, size_t bytes, bool *done)
{
    const struct table *t = cut->table;
    uint64_t rows = table_rows(t);
    size_t row = rows ? t->mem.bytes / rows + 1 : 1;
    if (is_open(cut) && is_dense(t))
        dense_step(cut, bytes);
    else if (is_open(cut))
        sweep_step(cut, bytes / row + 1);
    *done = cut->done;
    return t->changes.marks.failed ? err_set(PARAMO_E_MEMORY, "no memory to note a change of the table")
                                   : PARAMO_OK;
}

static bool holds_keys(const struct table_cut *cut, const uint64_t *keys, size_t n)
{
    const struct table *t = cut->table;
    for (size_t i = 0; i < n; i++) {
        const void *payload = keyindex_payload(index_of(t), keys[i]);
        if (payload && wants(cut, mark_of(t, payload)) && keyindex_hash(index_of(t), keys[i]) >= cut->cursor)
            return true;
    }
    return false;
}

static bool holds_blocks(const struct table_cut *cut, const uint64_t *keys, size_t n)
{
    const struct table *t = cut->table;
    for (size_t i = 0; i < n; i++) {
        uint64_t block = keys[i] / block_rows(t);
        if (keys[i] < t->options.rows && block >= cut->cursor &&
            wants(cut, rowmarks_get(&t->changes.marks, block)))
            return true;
    }
    return false;
}

bool table_cut_holds(const struct table_cut *cut, const uint64_t *keys, size_t n)
{
    if (!is_open(cut))
        return false;
    return !keys || (is_dense(cut->table) ? holds_blocks(cut, keys, n) : holds_keys(cut, keys, n));
}

void table_cut_close(struct table_cut *cut)
{
    if (!cut)
        return;
    struct table *t = cut->table;
    struct table_changes *c = &t->changes;
    c->known = cut->done && c->tracking && !c->marks.failed;
    c->marks.first = NULL;
    if (is_small(t))
        t->small.index.first = NULL;
    if (!cut->done)
        marks_settle(t);
    t->cut = NULL;
    cut_free(cut);
    if (!c->known)
        table_changes_lose(t);
}
