#include "worker/page_request.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Of a page of rows of a fixed length, unless one row is longer. Arbitrary. */
enum { PAGE_BYTES = 1 << 20 };

static bool is_var(const struct client_table *t)
{
    return !t->row_values;
}

paramo_err page_request_make(const struct client_call *call, uint32_t id, struct page_request **out)
{
    const struct client_table *t = call->table;
    struct page_request *p = calloc(1, sizeof *p);
    if (!p)
        return err_memory(sizeof *p);
    paramo_page *to = call->page;
    p->table = t;
    p->to = to;
    p->ends[0] = to->begin;
    p->ends[1] = to->end - 1; /* end 0: the last key of all */
    p->id = to->scan ? to->scan : id;
    p->most = (uint32_t)to->most;
    p->columns = client_call_columns(call);
    if (!is_var(t)) {
        size_t row = p->columns.count ? p->columns.count : t->row_values, room = to->vals_len / row;
        size_t fit = PAGE_BYTES / (8 + row * t->value_bytes) + 1;
        room = room < fit ? room : fit;
        p->most = room < p->most ? (uint32_t)room : p->most;
    }
    assert(p->most <= to->most);
    *out = p;
    return PARAMO_OK;
}

static void batches_free(struct page_request *p)
{
    for (uint32_t i = 0; i < p->count; i++) {
        free(p->batches[i].keys);
        free(p->batches[i].lens);
        free(p->batches[i].vals);
    }
    free(p->batches);
    p->batches = NULL;
    p->count = 0;
}

void page_request_free(struct page_request *p)
{
    if (!p)
        return;
    batches_free(p);
    free(p);
}

void page_request_reset(struct page_request *p)
{
    batches_free(p);
}

paramo_err page_request_begin(struct page_request *p, uint32_t shards)
{
    assert(!p->batches && shards);
    p->batches = calloc(shards, sizeof *p->batches);
    if (!p->batches)
        return err_memory(shards * sizeof *p->batches);
    p->count = shards;
    /* Where keys are mixed, each shard has about as many of the first rows. An eighth more, and the page is nearly
     * full. */
    uint32_t even = p->most / shards;
    p->share = shards == 1 ? p->most : even + even / 8 + 16;
    p->share = p->share < p->most ? p->share : p->most;
    assert(p->share <= p->most && (!p->most || p->share));
    for (uint32_t i = 0; i < shards; i++)
        p->batches[i].cursor = p->ends[0], p->batches[i].columns = p->columns.count;
    return PARAMO_OK;
}

paramo_err page_request_take(struct page_request *p, uint32_t shard, const struct wire_head *h,
                             const struct van_seg *seg, unsigned nseg)
{
    assert(shard < p->count && p->share <= p->most);
    assert(p->batches);
    struct scan_batch *b = &p->batches[shard];
    paramo_err err = scan_receive(b, p->table, h, seg, nseg);
    if (!err && (b->n > p->share || (b->n && b->keys[b->n - 1] > p->ends[1])))
        err = err_set(PARAMO_E_PROTOCOL, "a page has rows that were not asked for");
    return err;
}

/* ---- merging ---- */

/* Shards that have rows left, as a binary heap: the least next key comes first. */
struct merge {
    const struct page_request *p;
    uint32_t *heap;       /* indices of batches */
    size_t *at, *vals_at; /* of each: rows taken, and bytes of their values */
    uint32_t n;
};

static uint64_t next_key(const struct merge *m, uint32_t shard)
{
    return m->p->batches[shard].keys[m->at[shard]];
}

/* The shard at this place of the heap has another next key, which is not less. */
static void sift(struct merge *m, uint32_t place)
{
    assert(place < m->n && m->n <= m->p->count);
    uint32_t shard = m->heap[place];
    for (uint32_t child; (child = 2 * place + 1) < m->n; place = child) {
        if (child + 1 < m->n && next_key(m, m->heap[child + 1]) < next_key(m, m->heap[child]))
            child++;
        if (next_key(m, shard) <= next_key(m, m->heap[child]))
            break;
        m->heap[place] = m->heap[child];
    }
    m->heap[place] = shard;
}

static void next_row(struct merge *m, size_t bytes)
{
    assert(m->n > 0 && m->n <= m->p->count);
    uint32_t shard = m->heap[0];
    assert(m->at[shard] < m->p->batches[shard].n);
    m->vals_at[shard] += bytes;
    if (++m->at[shard] == m->p->batches[shard].n)
        m->heap[0] = m->heap[--m->n];
    if (m->n)
        sift(m, 0);
}

static paramo_err merge_make(struct merge *m, const struct page_request *p)
{
    size_t bytes = p->count * (sizeof *m->at + sizeof *m->vals_at + sizeof *m->heap);
    m->p = p;
    m->n = 0;
    m->at = calloc(1, bytes);
    if (!m->at)
        return err_memory(bytes);
    m->vals_at = m->at + p->count;
    m->heap = (uint32_t *)(m->vals_at + p->count);
    for (uint32_t i = 0; i < p->count; i++)
        if (p->batches[i].n)
            m->heap[m->n++] = i;
    for (uint32_t place = m->n / 2; place-- > 0;)
        sift(m, place);
    assert(p->count > 0 && m->n <= p->count);
    return PARAMO_OK;
}

/* The last key up to which all rows have come. *more: there may be others after it. */
static uint64_t known_until(const struct page_request *p, bool *more)
{
    uint64_t last = p->ends[1];
    *more = false;
    for (uint32_t i = 0; i < p->count; i++) {
        const struct scan_batch *b = &p->batches[i];
        if (!b->more)
            continue;
        assert(b->n); /* only a batch with rows says so */
        *more = true;
        last = b->keys[b->n - 1] < last ? b->keys[b->n - 1] : last;
    }
    return last;
}

/* Objective: the rows of all batches up to `last`, in order, as far as there is room. */
static paramo_err rows_take(struct merge *m, uint64_t last, size_t *vals_n)
{
    const struct page_request *p = m->p;
    paramo_page *to = p->to;
    assert(m->n <= p->count && p->share <= p->most);
    size_t value = p->table->value_bytes;
    uint32_t row = p->columns.count ? p->columns.count : p->table->row_values;
    *vals_n = to->n = 0;
    while (m->n && to->n < p->most && next_key(m, m->heap[0]) <= last) {
        uint32_t shard = m->heap[0];
        const struct scan_batch *b = &p->batches[shard];
        size_t values = is_var(p->table) ? b->lens[m->at[shard]] : row;
        if (values > to->vals_len - *vals_n) {
            if (to->n)
                break;
            return err_set(PARAMO_E_TOO_LARGE,
                           "a page: the row of key %" PRIu64 " has %zu values, there is room for %zu",
                           next_key(m, shard), values, to->vals_len);
        }
        to->keys[to->n] = next_key(m, shard);
        if (to->lens)
            to->lens[to->n] = (uint32_t)values;
        if (values)
            memcpy((uint8_t *)to->vals + *vals_n * value, b->vals + m->vals_at[shard], values * value);
        to->n++;
        *vals_n += values;
        next_row(m, values * value);
    }
    return PARAMO_OK;
}

paramo_err page_request_end(struct page_request *p)
{
    assert(p->batches && p->count);
    struct merge m;
    bool more;
    uint64_t last = known_until(p, &more);
    paramo_page *to = p->to;
    paramo_err err = merge_make(&m, p);
    if (err)
        return err;
    size_t vals_n;
    err = rows_take(&m, last, &vals_n);
    assert(to->n <= p->most && m.n <= p->count);
    more = more || m.n;
    free(m.at);
    if (err)
        return err;
    to->vals_n = vals_n;
    to->more = more && (!to->n || to->keys[to->n - 1] < p->ends[1]);
    to->next = to->n && to->keys[to->n - 1] < p->ends[1] ? to->keys[to->n - 1] + 1 : to->end;
    to->scan = to->more ? p->id : 0;
    return PARAMO_OK;
}
