#include "table/table_page.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/sm.h"
#include "table/table_state.h"

enum {
    SWEEP_KEYS = 16384, /* of one sweep; more than a segment has, which a sweep reads as a whole */
    SAMPLE = 32768,     /* keys that estimate where a page ends, within a few percent */
    AHEAD = 32,         /* rows that are prefetched before they are counted */
    TRIM_KEYS = 1 << 18 /* 2 MiB: about 0.2 ms to unmap */
};

/* ---- a page -------------------------------------------------------------------------------------------- */

paramo_err table_page_open(struct table_page *page, const struct table *t, uint64_t from, size_t room)
{
    assert(!is_dense(t));
    assert(room > 0);
    *page = (struct table_page){.table = t, .from = from, .to = UINT64_MAX, .room = room};
    page->keys = malloc(room * sizeof *page->keys);
    return page->keys ? PARAMO_OK : err_memory(room * sizeof *page->keys);
}

void table_page_close(struct table_page *page)
{
    free(page->keys);
    free(page->scratch);
    free(page->sort);
    *page = (struct table_page){.phase = TABLE_PAGE_DONE};
}

static const struct sm machine = {
    "page",
    {[TABLE_PAGE_SWEEP] = {"sweep", SM_TO(TABLE_PAGE_SHRINK) | SM_TO(TABLE_PAGE_SORT)},
     [TABLE_PAGE_SHRINK] = {"shrink", SM_TO(TABLE_PAGE_SWEEP)},
     [TABLE_PAGE_SORT] = {"sort", SM_TO(TABLE_PAGE_TRIM)},
     [TABLE_PAGE_TRIM] = {"trim", SM_TO(TABLE_PAGE_DONE)},
     [TABLE_PAGE_DONE] = {"done", 0}}};

static void move(struct table_page *page, enum table_page_phase to)
{
    sm_check(&machine, page->phase, to);
    page->phase = to;
}

/* Cuts some keys off the array's end. True: it is no longer than `least`. */
static bool trim(uint64_t **keys, size_t *room, size_t least)
{
    size_t less = *room > least + TRIM_KEYS ? *room - TRIM_KEYS : least;
    if (*keys && less == 0) {
        free(*keys);
        *keys = NULL;
    } else if (*keys && less < *room) {
        uint64_t *shorter = realloc(*keys, less * sizeof *shorter);
        *keys = shorter ? shorter : *keys; /* if that fails it stays as it was */
    }
    *room = less;
    return less == least;
}

bool table_page_close_step(struct table_page *page)
{
    bool closed = page->scratch ? (trim(&page->scratch, &page->scratch_room, 0), false)
                                : trim(&page->keys, &page->room, 0);
    if (closed)
        table_page_close(page);
    return closed;
}

size_t table_page_bytes(const struct table_page *page)
{
    size_t bytes = page->keys ? page->room * sizeof *page->keys : 0;
    if (page->scratch)
        bytes += page->scratch_room * sizeof *page->scratch;
    return page->sort ? bytes + sizeof *page->sort : bytes;
}

struct sweep {
    struct table_page *page;
    table_wants wants;
    void *arg;
};

/* There is no room, because a sweep gave more keys than requested, before the page could shrink. Drops
 * the greatest key and ends the page before it. */
static void add_over(struct table_page *page, uint64_t key)
{
    size_t last = 0;
    assert(page->n > 0 && page->n == page->room);
    for (size_t i = 1; i < page->n; i++)
        last = page->keys[i] > page->keys[last] ? i : last;
    if (key > page->keys[last]) {
        page->to = key - 1;
    } else {
        page->to = page->keys[last] - 1;
        page->keys[last] = key;
    }
    assert(page->to >= page->from);
}

static void add(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    const struct sweep *sweep = ctx;
    struct table_page *page = sweep->page;
    (void)hash;
    (void)payload;
    if (key < page->from || key > page->to || (sweep->wants && !sweep->wants(sweep->arg, key)))
        return;
    if (page->n < page->room)
        page->keys[page->n++] = key;
    else
        add_over(page, key);
}

/* Is there room for fewer keys than a sweep may add? */
static bool is_full(const struct table_page *page)
{
    size_t spare = page->room / 4 < 2 * SWEEP_KEYS ? page->room / 4 : 2 * SWEEP_KEYS;
    return page->n + spare > page->room;
}

/* The keys swept so far are a random sample of all keys. Keeps enough of them that the keys of the rest should
 * fit as well, with a margin. If they do not fit, it runs again. */
static paramo_err choose_end(struct table_page *page)
{
    size_t n = page->n < SAMPLE ? page->n : SAMPLE;
    assert(n > 1 && page->n <= page->room);
    uint64_t *sample = malloc(2 * n * sizeof *sample);
    if (!sample)
        return err_memory(2 * n * sizeof *sample);
    for (size_t i = 0; i < n; i++)
        sample[i] = page->keys[page->n / n * i];
    keysort(sample, sample + n, n);
    size_t want = (size_t)((double)n * 0x1p-64 * (double)page->cursor),
           margin = want / 8 > 24 ? want / 8 : 24;
    size_t rank = want > margin ? want - margin : 0, most = n - n / 16 - 1;
    page->to = sample[rank < most ? rank : most];
    assert(page->to >= page->from);
    free(sample);
    page->looked = page->kept = 0;
    move(page, TABLE_PAGE_SHRINK);
    return PARAMO_OK;
}

static void shrink(struct table_page *page, size_t keys)
{
    assert(page->phase == TABLE_PAGE_SHRINK);
    size_t end = page->n - page->looked < keys ? page->n : page->looked + keys;
    for (; page->looked < end; page->looked++) {
        uint64_t key = page->keys[page->looked];
        page->keys[page->kept] = key;
        page->kept += key <= page->to;
    }
    assert(page->kept <= page->looked && page->looked <= page->n);
    if (end < page->n)
        return;
    page->n = page->kept;
    move(page, TABLE_PAGE_SWEEP);
}

static paramo_err sort_begin(struct table_page *page)
{
    assert(!page->sort && !page->scratch);
    assert(page->n <= page->room);
    page->sort = malloc(sizeof *page->sort);
    page->scratch = malloc((page->n + 1) * sizeof *page->scratch);
    if (!page->sort || !page->scratch)
        return err_memory((page->n + 1) * sizeof *page->scratch);
    keysort_start(page->sort, page->keys, page->scratch, page->n);
    page->scratch_room = page->n + 1;
    move(page, TABLE_PAGE_SORT);
    return PARAMO_OK;
}

static void sort_end(struct table_page *page)
{
    assert(page->sort->from == page->keys || page->sort->from == page->scratch);
    if (page->sort->from != page->keys) {
        size_t room = page->room;
        page->scratch = page->keys;
        page->keys = page->sort->from;
        page->room = page->scratch_room;
        page->scratch_room = room;
    }
    assert(page->n <= page->room);
    free(page->sort);
    page->sort = NULL;
    move(page, TABLE_PAGE_TRIM);
}

/* Frees the room that the keys do not need. */
static void trim_step(struct table_page *page)
{
    if (page->scratch)
        (void)trim(&page->scratch, &page->scratch_room, 0);
    else if (trim(&page->keys, &page->room, page->n + 1))
        move(page, TABLE_PAGE_DONE);
}

static paramo_err sweep(struct table_page *page, size_t keys, table_wants wants, void *arg)
{
    struct sweep sweep = {page, wants, arg};
    bool more = true;
    for (size_t looked = 0; more && looked < keys; looked += SWEEP_KEYS) {
        if (is_full(page) && page->n > 1)
            return choose_end(page);
        size_t rows = keys < SWEEP_KEYS ? keys : SWEEP_KEYS;
        more = keyindex_sweep(index_of(page->table), &page->cursor, rows, add, &sweep);
    }
    return more ? PARAMO_OK : sort_begin(page);
}

paramo_err table_page_step(struct table_page *page, size_t keys, table_wants wants, void *arg, bool *done)
{
    paramo_err err = PARAMO_OK;
    switch (page->phase) {
    case TABLE_PAGE_SWEEP:
        err = sweep(page, keys, wants, arg);
        break;
    case TABLE_PAGE_SHRINK:
        shrink(page, keys);
        break;
    case TABLE_PAGE_SORT:
        if (keysort_step(page->sort, keys))
            sort_end(page);
        break;
    case TABLE_PAGE_TRIM:
        trim_step(page);
        break;
    case TABLE_PAGE_DONE:
        break;
    }
    *done = page->phase == TABLE_PAGE_DONE;
    return err;
}

/* ---- counting ------------------------------------------------------------------------------------------ */

struct counting {
    const struct table *table;
    struct table_count *count;
    table_wants wants;
    void *arg;
    size_t n;
    const void *rows[AHEAD]; /* prefetched, not counted yet; VAR: their values */
    uint32_t lens[AHEAD];
};

static void count_fetched(struct counting *c)
{
    const struct rowspec *spec = &c->table->spec;
    assert(c->n <= AHEAD);
    for (size_t i = 0; i < c->n; i++)
        c->count->nonzero += spec->aggregate ? aggregate_count_nonzero(spec, c->rows[i])
                                             : rowspec_count_nonzero(spec, c->rows[i], c->lens[i]);
    c->n = 0;
}

static void count_key(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    struct counting *c = ctx;
    const struct table *t = c->table;
    uint32_t number, len = t->spec.dim;
    (void)hash;
    if (c->wants && !c->wants(c->arg, key))
        return;
    c->count->rows++;
    const void *row = payload;
    if (!is_small(t)) {
        memcpy(&number, payload, sizeof number);
        row = is_var(t) ? table_var_row(&t->var, number, &len) : rowslab_row(&t->sparse.slab, number);
        if (!len)
            return;
        __builtin_prefetch(row);
    }
    c->rows[c->n] = row;
    c->lens[c->n++] = len;
    if (c->n == AHEAD)
        count_fetched(c);
}

/* count_key for small rows without `wants`, those of a cache line at a time. */
static void count_payloads(void *ctx, void *const *payload, unsigned n)
{
    struct counting *c = ctx;
    const struct rowspec *spec = &c->table->spec;
    c->count->rows += n;
    if (spec->init.dtype == PARAMO_F32 && spec->dim == 1) { /* the usual table, without a call for each row */
        for (unsigned i = 0; i < n; i++)
            c->count->nonzero += *(const float *)payload[i] != 0;
        return;
    }
    for (unsigned i = 0; i < n; i++)
        c->count->nonzero += rowspec_count_nonzero(spec, payload[i], spec->dim);
}

/* The average number of values per row. */
static size_t row_values(const struct table *t)
{
    uint64_t rows = rows_of(t);
    return is_var(t) ? (size_t)(rows ? t->mem.bytes / t->spec.value_bytes / rows : 0) + 1 : t->spec.dim;
}

static void count_dense(const struct table *t, struct table_count *count, size_t rows, table_wants wants,
                        void *arg)
{
    uint64_t first, end;
    while (rows > 0 && !count->done) {
        count->done = !table_dense_next(&t->dense, count->cursor, &first, &end);
        if (count->done)
            return;
        assert(end > first);
        assert(first >= count->cursor);
        end = end - first < rows ? end : first + rows;
        rows -= (size_t)(end - first);
        count->cursor = end;
        for (uint64_t key = first; key < end;) { /* runs of wanted keys */
            uint64_t stop = key;
            while (stop < end && (!wants || wants(arg, stop)))
                stop++;
            count->rows += stop - key;
            count->nonzero += table_dense_nonzero(&t->dense, key, stop - key);
            key = stop + 1;
        }
    }
}

void table_count_step(const struct table *t, struct table_count *count, size_t values, table_wants wants,
                      void *arg)
{
    size_t rows = values / (row_values(t) + 8) + 1; /* a look-up costs as much as a few values */
    if (count->done)
        return;
    if (is_dense(t)) {
        count_dense(t, count, rows, wants, arg);
        return;
    }
    struct counting c = {.table = t, .count = count, .wants = wants, .arg = arg};
    const size_t sweep = rows < SWEEP_KEYS ? rows : SWEEP_KEYS;
    for (size_t looked = 0; looked < rows && !count->done; looked += SWEEP_KEYS) {
        if (is_small(t) && !wants)
            count->done = !keyindex_sweep_payloads(index_of(t), &count->cursor, sweep, count_payloads, &c);
        else
            count->done = !keyindex_sweep(index_of(t), &count->cursor, sweep, count_key, &c);
        count_fetched(&c);
    }
}
