#include "table/table_snapshot.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "table/keysort.h"
#include "table/table_changes.h"
#include "table/table_state.h"

enum {
    BLOCK_BYTES = 16 << 10, /* block of a dense table. Arbitrary */
    VISIT_BYTES = 64,       /* what a block that is not given out takes of a step's bytes */
    VISIT_LOOKS = 4,        /* cost of a row that is given out, relative to one that is not */
    ERASED_FIRST = 256,
    MARKS_STEP = 1 << 16 /* rows whose marks are cleared in a step: 1 ms (bench/steps.sh) */
};

struct table_snapshot {
    struct table *table;
    enum table_snapshot_kind kind;
    table_snapshot_row row;
    void *arg;
    bool done;
    uint64_t cursor; /* a hash; DENSE: a block */
    uint64_t *erased;
    size_t erased_count, erased_room;
    char *buffer; /* DENSE: a block of rows, and their keys; of an aggregated table: one row */
    uint64_t *keys;
};

/* ---- marks --------------------------------------------------------------------------------------------- */

/* Gives the marks to the store, or takes them away. */
static void marks_lend(struct table *t, bool marking)
{
    struct rowmarks *marks = marking ? &t->changes.marks : NULL;
    assert(!marking || (t->changes.marks.now >= 1 && t->changes.marks.now <= 3));
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
    assert(c->erased_count <= c->erased_room);
    assert(!c->erased == !c->erased_room);
    tablemem_put(&t->mem, c->erased, c->erased_room * sizeof *c->erased);
    c->erased = NULL;
    c->erased_count = c->erased_room = 0;
}

static void changes_lose(struct table *t)
{
    t->changes.tracking = t->changes.known = false;
    erased_free(t);
    if (!t->snapshot || t->snapshot->done) {
        marks_lend(t, false);
        rowmarks_clear(&t->changes.marks);
    }
    assert(t->changes.marking || !t->changes.marks.chunk);
}

bool table_changes_known(const struct table *t)
{
    return t->changes.known && !t->changes.marks.failed;
}

/* Would the walk give out a row with this mark? */
static bool wants(const struct table_snapshot *snapshot, unsigned mark)
{
    return mark != snapshot->table->changes.marks.now && (snapshot->kind == TABLE_SNAPSHOT_ALL || mark);
}

static bool is_open(const struct table_snapshot *snapshot)
{
    return !snapshot->done && !snapshot->table->changes.marks.failed;
}

static void erased_note(struct table *t, uint64_t key)
{
    struct table_changes *c = &t->changes;
    assert(c->tracking && c->erased_count <= c->erased_room);
    if (c->erased_count == c->erased_room) {
        size_t room = c->erased_room ? 2 * c->erased_room : ERASED_FIRST;
        uint64_t *erased = room <= TABLE_SNAPSHOT_ERASED
                               ? tablemem_get(&t->mem, sizeof *erased, room * sizeof *erased)
                               : NULL;
        if (!erased) {
            changes_lose(t);
            return;
        }
        if (c->erased_count)
            memcpy(erased, c->erased, c->erased_count * sizeof *erased);
        tablemem_put(&t->mem, c->erased, c->erased_room * sizeof *erased);
        c->erased = erased;
        c->erased_room = room;
    }
    assert(c->erased_count < c->erased_room && c->erased_room <= TABLE_SNAPSHOT_ERASED);
    c->erased[c->erased_count++] = key;
}

/* Sorts the erased keys, and drops repeats and keys that have a row. */
static paramo_err erased_compact(struct table *t)
{
    struct table_changes *c = &t->changes;
    size_t n = c->erased_count, kept = 0;
    if (!n)
        return PARAMO_OK;
    assert(c->known && !is_dense(t)); /* rows of dense tables are not removed */
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

/* The row's number in the slab. */
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

static size_t row_bytes(const struct table *t)
{
    return t->spec.param_bytes + t->spec.state_bytes;
}

static void visit_small(struct table_snapshot *snapshot, uint64_t key, const void *row)
{
    const struct rowspec *spec = &snapshot->table->spec;
    snapshot->row(snapshot->arg, key, row, (uint32_t)(spec->dim + spec->state_values));
}

static void visit(struct table_snapshot *snapshot, uint64_t key, uint32_t number)
{
    const struct table *t = snapshot->table;
    uint32_t values = (uint32_t)table_stored_values(&t->options);
    const void *row =
        is_var(t) ? table_var_row(&t->var, number, &values) : rowslab_row(&t->sparse.slab, number);
    if (t->spec.aggregate) { /* clocks begin again in the job that loads it */
        memset(snapshot->buffer, 0, row_bytes(t));
        aggregate_copy(&t->spec, row, snapshot->buffer);
        row = snapshot->buffer;
    }
    snapshot->row(snapshot->arg, key, row, values);
}

struct sweep {
    struct table_snapshot *snapshot;
    uint64_t looks;
};

static void sweep_key(void *arg, uint64_t key, uint64_t hash, void *payload)
{
    struct sweep *sweep = arg;
    struct table_snapshot *snapshot = sweep->snapshot;
    struct rowmarks *marks = &snapshot->table->changes.marks;
    bool small = is_small(snapshot->table);
    unsigned mark = mark_of(snapshot->table, payload);
    (void)hash;
    sweep->looks++;
    if (wants(snapshot, mark)) {
        sweep->looks += VISIT_LOOKS - 1;
        if (small)
            visit_small(snapshot, key, payload);
        else
            visit(snapshot, key, number_of(payload));
    }
    if (!mark || mark == marks->now)
        return;
    if (small)
        keyindex_set_mark(&snapshot->table->small.index, payload, 0);
    else
        rowmarks_set(marks, number_of(payload), 0);
}

static void sweep_step(struct table_snapshot *snapshot, uint64_t rows)
{
    struct sweep sweep = {.snapshot = snapshot};
    assert(!is_dense(snapshot->table));
    uint64_t looks = VISIT_LOOKS * rows;
    while (!snapshot->done && sweep.looks < looks)
        snapshot->done =
            !keyindex_sweep(index_of(snapshot->table), &snapshot->cursor, looks / 2, sweep_key, &sweep);
}

void table_snapshot_remove(struct table *t, const uint64_t *keys, size_t n)
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

static uint64_t block_rows(const struct table *t)
{
    return row_bytes(t) < BLOCK_BYTES ? BLOCK_BYTES / row_bytes(t) : 1;
}

static void visit_block(struct table_snapshot *snapshot, uint64_t block)
{
    struct table *t = snapshot->table;
    uint64_t at = block * block_rows(t), first, end;
    for (uint64_t last = at + block_rows(t);
         at < last && table_dense_next(&t->dense, at, &first, &end) && first < last; at = end) {
        end = end < last ? end : last;
        size_t n = (size_t)(end - first);
        assert(n > 0 && n <= block_rows(t)); /* the buffer's room */
        for (size_t i = 0; i < n; i++)
            snapshot->keys[i] = first + i;
        if (table_dense_get(&t->dense, snapshot->keys, n, true,
                            snapshot->buffer)) /* the rows exist: it cannot fail */
            t->changes.marks.failed = true;
        for (size_t i = 0; i < n; i++)
            snapshot->row(snapshot->arg, first + i, snapshot->buffer + i * row_bytes(t),
                          (uint32_t)(t->spec.dim + t->spec.state_values));
    }
}

static void dense_step(struct table_snapshot *snapshot, size_t bytes)
{
    struct table *t = snapshot->table;
    struct rowmarks *marks = &t->changes.marks;
    uint64_t rows = block_rows(t), first, end;
    for (size_t given = 0; given < bytes;) {
        snapshot->done = !table_dense_next(&t->dense, snapshot->cursor * rows, &first, &end);
        if (snapshot->done)
            return;
        uint64_t block = first / rows;
        assert(block >= snapshot->cursor); /* no block is visited twice */
        unsigned mark = rowmarks_get(marks, block);
        if (wants(snapshot, mark))
            visit_block(snapshot, block);
        given += wants(snapshot, mark) ? rows * row_bytes(t) : VISIT_BYTES;
        if (mark && mark != marks->now)
            rowmarks_set(marks, block, 0);
        snapshot->cursor = block + 1;
    }
}

static paramo_err dense_open(struct table_snapshot *snapshot)
{
    size_t rows = (size_t)block_rows(snapshot->table);
    snapshot->buffer = malloc(rows * row_bytes(snapshot->table));
    snapshot->keys = malloc(rows * sizeof *snapshot->keys);
    return snapshot->buffer && snapshot->keys ? PARAMO_OK : err_memory(rows * row_bytes(snapshot->table));
}

/* The index of the first key of keys[from .. n) after the block of keys[from], which ends before `end`. */
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

void table_snapshot_touch(struct table *t, const uint64_t *keys, size_t n)
{
    uint64_t rows = block_rows(t);
    for (size_t i = 0; i < n && keys[i] < t->options.rows;) { /* keys beyond: the change will be refused */
        uint64_t block = keys[i] / rows;
        rowmarks_change(&t->changes.marks, keys[i], block);
        i = block_end(keys, i, n, (block + 1) * rows);
    }
}

void table_snapshot_touch_range(struct table *t, uint64_t first, uint64_t count)
{
    uint64_t rows = block_rows(t);
    if (count == 0 || first >= t->options.rows || count > t->options.rows - first) /* it will be refused */
        return;
    for (uint64_t block = first / rows; block <= (first + count - 1) / rows; block++)
        rowmarks_change(&t->changes.marks, first, block);
}

/* ---- both ---------------------------------------------------------------------------------------------- */

/* Called by rowmarks: a row will change for the first time since the snapshot was opened. */
static void change_first(void *arg, uint64_t key, uint64_t number, unsigned was)
{
    struct table_snapshot *snapshot = arg;
    const struct table *t = snapshot->table;
    assert(t->snapshot == snapshot);
    if (!is_open(snapshot) || !wants(snapshot, was))
        return;
    if (is_dense(t)) {
        if (number >= snapshot->cursor)
            visit_block(snapshot, number);
    } else if (keyindex_hash(index_of(t), key) >= snapshot->cursor)
        visit(snapshot, key, (uint32_t)number);
}

/* change_first for a small row. */
static void change_first_small(void *arg, uint64_t key, const void *row, unsigned was)
{
    struct table_snapshot *snapshot = arg;
    if (is_open(snapshot) && wants(snapshot, was) &&
        keyindex_hash(index_of(snapshot->table), key) >= snapshot->cursor)
        visit_small(snapshot, key, row);
}

/* After a walk there are only this epoch's marks and 0s. An abandoned walk leaves other marks, which a
 * later epoch would use again. They are cleared in steps. A snapshot may be opened before that, because
 * one of the three marks is free, and its own walk clears the old ones. If it is abandoned as well, no
 * mark is free. The marks of other stores are dropped (changes_lose). */
static void marks_stale(struct table *t)
{
    t->changes.stale = !is_small(t) ? 0 : t->changes.over_stale ? 2 : 1;
    t->changes.stale_at = 0;
}

bool table_snapshot_must_wait(const struct table *t)
{
    return t->changes.stale > 1;
}

bool table_marks_step(struct table *t)
{
    struct table_changes *c = &t->changes;
    assert(!c->stale || is_small(t));
    if (c->stale && !keyindex_clear_marks(&t->small.index, &c->stale_at, MARKS_STEP))
        c->stale = 0;
    return c->stale;
}

static void snapshot_free(struct table_snapshot *snapshot)
{
    tablemem_put(&snapshot->table->mem, snapshot->erased, snapshot->erased_room * sizeof *snapshot->erased);
    free(snapshot->buffer);
    free(snapshot->keys);
    free(snapshot);
}

/* The snapshot owns the noted changes from here on. */
static void epoch_begin(struct table *t, struct table_snapshot *snapshot, bool track)
{
    struct table_changes *c = &t->changes;
    assert(!t->snapshot && c->stale <= 1);
    if (!table_changes_known(t))
        changes_lose(t);
    if (snapshot->kind == TABLE_SNAPSHOT_CHANGES) {
        snapshot->erased = c->erased;
        snapshot->erased_count = c->erased_count;
        snapshot->erased_room = c->erased_room;
        c->erased = NULL;
        c->erased_count = c->erased_room = 0;
    }
    erased_free(t);
    c->over_stale = c->stale;
    c->stale = 0;
    c->epoch++;
    c->marks.now = (unsigned)(c->epoch % 3) + 1;
    c->marks.first = change_first;
    c->marks.arg = snapshot;
    if (is_small(t)) {
        t->small.index.first = change_first_small;
        t->small.index.first_arg = snapshot;
    }
    c->tracking = track;
    c->known = false;
    t->snapshot = snapshot;
    assert(!c->erased && !c->erased_count);
    marks_lend(t, true);
}

paramo_err table_snapshot_open(struct table *t, enum table_snapshot_kind kind, bool track,
                               table_snapshot_row row, void *arg, struct table_snapshot **out)
{
    if (t->snapshot)
        return err_set(PARAMO_E_INVALID, "a snapshot of the table is open");
    if (kind == TABLE_SNAPSHOT_CHANGES && !table_changes_known(t))
        return err_set(PARAMO_E_INVALID, "the table has not recorded its changes");
    struct table_snapshot *snapshot = calloc(1, sizeof *snapshot);
    if (!snapshot)
        return err_memory(sizeof *snapshot);
    while (table_snapshot_must_wait(t)) /* the caller should have waited */
        (void)table_marks_step(t);
    snapshot->table = t;
    snapshot->kind = kind;
    snapshot->row = row;
    snapshot->arg = arg;
    paramo_err err = is_dense(t) ? dense_open(snapshot) : PARAMO_OK;
    if (t->spec.aggregate && !(snapshot->buffer = malloc(row_bytes(t))))
        err = err_memory(row_bytes(t));
    if (!err && kind == TABLE_SNAPSHOT_CHANGES)
        err = erased_compact(t);
    if (err) {
        snapshot_free(snapshot);
        return err;
    }
    epoch_begin(t, snapshot, track);
    assert(t->snapshot == snapshot);
    assert(!snapshot->done);
    *out = snapshot;
    return PARAMO_OK;
}

const uint64_t *table_snapshot_erased(const struct table_snapshot *snapshot, size_t *n)
{
    *n = snapshot->erased_count;
    return snapshot->erased;
}

bool table_snapshot_walks(const struct table *t)
{
    return t->snapshot && is_open(t->snapshot);
}

void table_changes_forget(struct table *t)
{
    changes_lose(t);
}

void table_snapshot_touch_all(struct table *t)
{
    bool done = !table_snapshot_walks(t);
    while (!done)
        done = table_snapshot_step(t->snapshot, SIZE_MAX / 16, &done) != PARAMO_OK || done;
    changes_lose(t);
}

paramo_err table_snapshot_step(struct table_snapshot *snapshot, size_t bytes, bool *done)
{
    const struct table *t = snapshot->table;
    uint64_t rows = rows_of(t);
    size_t row = rows ? t->mem.bytes / rows + 1 : 1;
    if (is_open(snapshot) && is_dense(t))
        dense_step(snapshot, bytes);
    else if (is_open(snapshot))
        sweep_step(snapshot, bytes / row + 1);
    *done = snapshot->done;
    return t->changes.marks.failed ? err_set(PARAMO_E_MEMORY, "out of memory to record a change of the table")
                                   : PARAMO_OK;
}

static bool holds_keys(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n)
{
    const struct table *t = snapshot->table;
    for (size_t i = 0; i < n; i++) {
        const void *payload = keyindex_payload(index_of(t), keys[i]);
        if (payload && wants(snapshot, mark_of(t, payload)) &&
            keyindex_hash(index_of(t), keys[i]) >= snapshot->cursor)
            return true;
    }
    return false;
}

static bool holds_blocks(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n)
{
    const struct table *t = snapshot->table;
    for (size_t i = 0; i < n; i++) {
        uint64_t block = keys[i] / block_rows(t);
        if (keys[i] < t->options.rows && block >= snapshot->cursor &&
            wants(snapshot, rowmarks_get(&t->changes.marks, block)))
            return true;
    }
    return false;
}

bool table_snapshot_holds(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n)
{
    if (!is_open(snapshot))
        return false;
    return !keys ||
           (is_dense(snapshot->table) ? holds_blocks(snapshot, keys, n) : holds_keys(snapshot, keys, n));
}

void table_snapshot_close(struct table_snapshot *snapshot)
{
    if (!snapshot)
        return;
    struct table *t = snapshot->table;
    struct table_changes *c = &t->changes;
    assert(t->snapshot == snapshot);
    c->known = snapshot->done && c->tracking && !c->marks.failed;
    c->marks.first = NULL;
    if (is_small(t))
        t->small.index.first = NULL;
    if (!snapshot->done)
        marks_stale(t);
    t->snapshot = NULL;
    snapshot_free(snapshot);
    if (!c->known)
        changes_lose(t);
    assert(!c->known || (c->marking && c->tracking));
}
