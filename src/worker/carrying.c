#include "worker/carrying.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "filter/residuals.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/numbers.h"
#include "worker/requests.h"

/* What is held back of one table, and its carriers and flushes. */
struct held_table {
    const struct client_table *table;
    struct residuals rows;
    struct table_filters *filters; /* the chains by which rows were held back last */
    struct request *first, *last;  /* carriers */
    struct request *flushes;       /* that wait for carriers */
};

struct carrying {
    struct map tables; /* of struct held_table, by id */
    size_t sent;       /* bytes of carriers */
    uint64_t given_up; /* carriers */
};

/* Carriers of a table are in order of their numbers, and no more bytes of them are counted than there are carriers. */
static void held_check(const struct held_table *h)
{
    assert(!h->first == !h->last);
    assert(!h->first || (!h->first->carry.prev && !h->last->carry.next));
    assert(!h->first || h->first->number <= h->last->number);
}

/* The arrays of a carrier, after the head of its buffer. */
struct carried {
    uint64_t *keys;
    uint8_t *vals, *waits;
};

static paramo_err held_of(struct client *c, const struct client_table *t, struct held_table **out)
{
    if (!c->carrying) {
        c->carrying = calloc(1, sizeof *c->carrying);
        if (!c->carrying)
            return err_memory(sizeof *c->carrying);
        map_init(&c->carrying->tables);
    }
    *out = map_get(&c->carrying->tables, t->id);
    if (*out)
        return PARAMO_OK;
    struct held_table *h = calloc(1, sizeof *h);
    if (!h)
        return err_memory(sizeof *h);
    h->table = t;
    residuals_init(&h->rows, (size_t)t->row_values * t->value_bytes);
    paramo_err err = map_put(&c->carrying->tables, t->id, h);
    if (err) {
        residuals_fini(&h->rows);
        free(h);
        return err;
    }
    *out = h;
    return PARAMO_OK;
}

static size_t held_bytes(const struct client *c)
{
    size_t at = 0, sum = 0;
    uint64_t id;
    void *h;
    while (map_next(&c->carrying->tables, &at, &id, &h))
        sum += residuals_bytes(&((struct held_table *)h)->rows);
    return sum;
}

bool carrying_selects(const struct request *r)
{
    return !r->carry.own && filtering_selects(r);
}

/* ---- carriers ---- */

/* A carrier with room for n rows, for `of`. MEMORY; AGAIN: carriers in flight hold CARRYING_SENT_MAX bytes. */
static paramo_err carrier_make(struct client *c, struct request *of, size_t n, struct request **out,
                               struct carried *arrays)
{
    assert(n > 0 && !of->ended);
    size_t row = (size_t)of->table->row_values * of->table->value_bytes;
    size_t head = (sizeof(struct scatter) + 63) & ~(size_t)63, bytes = head + n * (8 + row + 1);
    if (c->carrying->sent && c->carrying->sent + bytes > CARRYING_SENT_MAX)
        return PARAMO_E_AGAIN;
    struct request *q = requests_get(c, true);
    struct scatter *buffer = q ? bufpool_get(&c->pool, bytes) : NULL;
    if (!buffer) {
        if (q)
            requests_put(c, q);
        return err_memory(bytes);
    }
    *buffer = (struct scatter){.bytes = bytes};
    arrays->keys = (uint64_t *)(void *)((uint8_t *)buffer + head);
    arrays->vals = (uint8_t *)(arrays->keys + n);
    arrays->waits = arrays->vals + n * row;
    memset(arrays->waits, 0, n);
    q->scatters = buffer;
    q->table = of->table;
    q->since = of->since;
    q->kind = REQUEST_PUSH;
    q->wire_kind = WIRE_PUSH;
    q->priority = of->priority;
    q->deadline = lane_now(c->lane) + c->config.request_timeout_ms * ENV_MS;
    q->draws_as = mix64(of->draws_as + ++of->carry.portions);
    q->carry = (struct carry){.own = true, .bytes = bytes};
    q->keys = arrays->keys;
    q->src = arrays->vals;
    assert(request_is_carrier(q) && !q->carry.held && !q->ts);
    *out = q;
    return PARAMO_OK;
}

static void carrier_drop(struct client *c, struct request *q)
{
    assert(q->carry.own && !q->carry.held);
    assert(q->scatters && !q->ts && !q->chunks);
    bufpool_put(&c->pool, q->scatters, q->scatters->bytes);
    requests_put(c, q);
}

/* Its arrays are filled: it is a request of the client from now on. */
static void carrier_begin(struct client *c, struct request *q, struct held_table *h, size_t n)
{
    held_check(h);
    assert(n > 0 && !q->carry.held);
    q->n = n;
    q->src_len = n * h->table->row_values;
    q->carry.held = h;
    q->filters = filtering_ref(h->filters);
    requests_add(c, q);
    c->carrying->sent += q->carry.bytes;
    q->carry.prev = h->last;
    *(h->last ? &h->last->carry.next : &h->first) = q;
    h->last = q;
    held_check(h);
}

static void row_add(paramo_dtype dtype, void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n && dtype == PARAMO_F32; i++)
        ((float *)to)[i] += ((const float *)from)[i];
    for (size_t i = 0; i < n && dtype == PARAMO_F64; i++)
        ((double *)to)[i] += ((const double *)from)[i];
}

/* May one more row be held back? */
static bool has_room(const struct client *c, size_t held)
{
    return held < (c->config.held_bytes ? c->config.held_bytes : CARRYING_HELD_MAX);
}

paramo_err carrying_portion(struct client *c, struct request *r, const struct span *s,
                            struct request **carrier)
{
    const struct client_table *t = r->table;
    size_t row = (size_t)t->row_values * t->value_bytes, n = 0, held;
    struct held_table *h;
    struct request *q;
    struct carried a;
    *carrier = NULL;
    assert(s->count > 0 && !r->ended && !r->carry.own);
    paramo_err err = held_of(c, t, &h);
    if (!err)
        err = carrier_make(c, r, s->count, &q, &a);
    if (err)
        return err;
    for (uint32_t i = 0; i < s->count; i++)
        a.keys[i] = span_key(s, i);
    memcpy(a.vals, s->src, s->count * row);
    for (uint32_t i = 0; i < s->count; i++) {
        const void *before = residuals_get(&h->rows, a.keys[i]);
        if (before)
            row_add(t->options.dtype, a.vals + i * row, before, t->row_values);
    }
    struct filter_rows rows = {.vals = a.vals,
                               .n = (size_t)s->count * t->row_values,
                               .whole = a.vals,
                               .whole_n = (size_t)s->count * t->row_values,
                               .keys = a.keys,
                               .count = s->count,
                               .row_values = t->row_values};
    filtering_select(r, &rows, a.waits);
    if (h->filters != r->filters) {
        filtering_unref(h->filters);
        h->filters = filtering_ref(r->filters);
    }
    held = held_bytes(c);
    for (uint32_t i = 0; i < s->count; i++) {
        bool known = residuals_get(&h->rows, a.keys[i]) != NULL;
        if (a.waits[i] && (known || has_room(c, held)) &&
            !residuals_put(&h->rows, a.keys[i], a.vals + i * row)) {
            held += known ? 0 : residuals_row_bytes(&h->rows);
            continue;
        }
        residuals_take(&h->rows, a.keys[i]);
        a.keys[n] = a.keys[i];
        memmove(a.vals + n * row, a.vals + i * row, row);
        n++;
    }
    if (!n) {
        carrier_drop(c, q);
        return PARAMO_OK;
    }
    carrier_begin(c, q, h, n);
    q->carry.parent = r;
    q->carry.sibling = r->carry.children;
    r->carry.children = q;
    r->unfinished++;
    assert(n <= s->count && request_is_carrier(q));
    *carrier = q;
    return PARAMO_OK;
}

/* ---- flushes ---- */

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Rows of one turn. */
static size_t turn_rows(const struct client *c, size_t row)
{
    size_t n = CARRYING_BYTES / (8 + row) + 1, most = CARRYING_KEYS / 4; /* they are sorted, too */
    if (c->config.portion_keys)
        return c->config.portion_keys;
    return n < most ? n : most;
}

paramo_err carrying_flush(struct client *c, struct request *flush, struct request **carrier, bool *more)
{
    const struct client_table *t = flush->table;
    size_t row = (size_t)t->row_values * t->value_bytes, n;
    struct held_table *h = c->carrying ? map_get(&c->carrying->tables, t->id) : NULL;
    struct request *q;
    struct carried a;
    assert(flush->kind == REQUEST_FLUSH && !flush->ended && !flush->carry.waits);
    *carrier = NULL;
    *more = h && h->rows.count;
    if (!*more)
        return PARAMO_OK;
    if (!flush->carry.stamp) {
        flush->carry.stamp = ++h->rows.stamp;
        flush->carry.cursor = SIZE_MAX;
    }
    paramo_err err = carrier_make(c, flush, turn_rows(c, row), &q, &a);
    if (err)
        return err;
    n = residuals_old(&h->rows, flush->carry.stamp, &flush->carry.cursor, a.keys, turn_rows(c, row));
    assert(n <= h->rows.count && n <= turn_rows(c, row));
    *more = flush->carry.cursor > 0;
    qsort(a.keys, n, sizeof *a.keys, by_number);
    for (size_t i = 0; i < n; i++) {
        memcpy(a.vals + i * row, residuals_get(&h->rows, a.keys[i]), row);
        residuals_take(&h->rows, a.keys[i]);
    }
    if (!n) {
        carrier_drop(c, q);
        return PARAMO_OK;
    }
    carrier_begin(c, q, h, n);
    *carrier = q;
    return PARAMO_OK;
}

void carrying_flushed(struct request *flush)
{
    struct client *c = flush->client;
    struct held_table *h = c->carrying ? map_get(&c->carrying->tables, flush->table->id) : NULL;
    assert(!flush->carry.waits && !flush->ended);
    if (!h || !h->first)
        return;
    assert(flush->kind == REQUEST_FLUSH && h->table == flush->table);
    flush->carry.waits = true;
    flush->carry.held = h;
    flush->carry.upto = requests_total(c);
    flush->carry.flush_next = h->flushes;
    h->flushes = flush;
    flush->unfinished++;
}

static void flush_forget(struct request *flush)
{
    struct request **at = &flush->carry.held->flushes;
    assert(flush->carry.waits && flush->kind == REQUEST_FLUSH);
    while (*at != flush) {
        assert(*at); /* it waits there */
        at = &(*at)->carry.flush_next;
    }
    *at = flush->carry.flush_next;
    flush->carry.waits = false;
}

/* A carrier has ended: which flushes have waited for it? */
static void flushes_end(struct held_table *h)
{
    held_check(h);
    for (struct request *f = h->flushes, *next; f; f = next) {
        next = f->carry.flush_next;
        if (h->first && h->first->number <= f->carry.upto)
            continue;
        assert(f->carry.held == h && f->carry.waits);
        flush_forget(f);
        assert(f->ended || f->unfinished > 0);
        if (!f->ended && --f->unfinished == 0)
            request_end(f, PARAMO_OK, "");
    }
}

paramo_err carrying_chain_changes(struct client *c, const struct client_table *table, struct request **flush)
{
    const struct held_table *h = c->carrying ? map_get(&c->carrying->tables, table->id) : NULL;
    *flush = NULL;
    if (!h || !h->rows.count)
        return PARAMO_OK;
    assert(h->table->id == table->id);
    held_check(h);
    struct request *f = requests_get(c, true);
    if (!f)
        return err_memory(sizeof *f);
    f->table = table;
    f->since = table->since;
    f->kind = REQUEST_FLUSH;
    f->wire_kind = WIRE_PUSH;
    f->deadline = UINT64_MAX;
    f->carry.own = true;
    requests_add(c, f);
    f->draws_as = mix64(f->number);
    *flush = f;
    return PARAMO_OK;
}

/* ---- ends ---- */

void carrying_refused(struct request *q, paramo_err status, const char *text)
{
    assert(request_is_carrier(q) && !q->ended && status);
    held_check(q->carry.held);
    if (q->carry.parent)
        request_end(q->carry.parent, status, text);
    for (struct request *f = q->carry.held->flushes; f; f = f->carry.flush_next)
        if (f->carry.upto >= q->number)
            request_end(f, status, text);
}

/* The floor is at this carrier's chunk, no shard accepts the chunk, and other requests wait for the floor to rise. */
static bool blocks_the_floor(const struct request *q)
{
    const struct client *c = q->client;
    const struct chunk *first = numbers_chunk(c, numbers_floor(c));
    return c->numbers->full && first && first->request == q && first->number == numbers_floor(c) &&
           !first->unanswered;
}

void carrying_late(struct request *q)
{
    assert(request_is_carrier(q) && !q->ended);
    if (!blocks_the_floor(q)) {
        q->deadline = lane_now(q->client->lane) + ENV_SEC;
        return;
    }
    paramo_err err = err_set(PARAMO_E_NODE_LOST,
                             "no server takes rows of table %s that a filter held back; they are given up",
                             q->table->name);
    log_warn("customer %u: %s", q->client->config.customer, err_text());
    q->client->carrying->given_up++;
    carrying_refused(q, err, err_text());
    request_end(q, err, err_text());
    assert(q->ended);
}

uint64_t carrying_given_up(const struct client *c)
{
    return c->carrying ? c->carrying->given_up : 0;
}

static void child_forget(struct request *parent, struct request *q)
{
    struct request **at = &parent->carry.children;
    assert(q->carry.parent == parent && request_is_carrier(q));
    while (*at != q) {
        assert(*at); /* its parent knows it */
        at = &(*at)->carry.sibling;
    }
    *at = q->carry.sibling;
    q->carry.parent = NULL;
}

static void carrier_release(struct request *q)
{
    struct carrying *all = q->client->carrying;
    struct held_table *h = q->carry.held;
    struct request *parent = q->carry.parent;
    held_check(h);
    assert(all->sent >= q->carry.bytes);
    assert(q->carry.prev ? q->carry.prev->carry.next == q : h->first == q);
    assert(q->carry.next ? q->carry.next->carry.prev == q : h->last == q);
    all->sent -= q->carry.bytes;
    *(q->carry.prev ? &q->carry.prev->carry.next : &h->first) = q->carry.next;
    *(q->carry.next ? &q->carry.next->carry.prev : &h->last) = q->carry.prev;
    if (parent)
        child_forget(parent, q);
    if (parent && !parent->ended && q->status) {
        request_end(parent, q->status, err_sentence(q->status));
    } else if (parent && !parent->ended) {
        assert(parent->unfinished > 0);
        if (--parent->unfinished == 0)
            request_end(parent, PARAMO_OK, "");
    }
    flushes_end(h);
}

void carrying_release(struct request *r)
{
    while (r->carry.children)
        child_forget(r, r->carry.children); /* they continue */
    if (r->carry.waits)
        flush_forget(r);
    if (request_is_carrier(r))
        carrier_release(r);
}

void carrying_fini(struct client *c)
{
    size_t at = 0;
    uint64_t id;
    void *value;
    if (!c->carrying)
        return;
    while (map_next(&c->carrying->tables, &at, &id, &value)) {
        struct held_table *h = value;
        assert(!h->first && !h->flushes); /* all requests are over */
        assert(!c->carrying->sent);
        residuals_fini(&h->rows);
        filtering_unref(h->filters);
        free(h);
    }
    map_fini(&c->carrying->tables);
    free(c->carrying);
    c->carrying = NULL;
}

/* ---- observers ---- */

void carrying_each(const struct client *c, uint32_t table, uint64_t key,
                   void (*fn)(void *arg, const void *row), void *arg)
{
    const struct held_table *h = c->carrying ? map_get(&c->carrying->tables, table) : NULL;
    if (!h)
        return;
    const void *row = residuals_get(&h->rows, key);
    if (row)
        fn(arg, row);
    for (const struct request *q = h->first; q; q = q->carry.next)
        for (size_t i = 0; i < q->n && q->keys[i] <= key; i++)
            if (q->keys[i] == key)
                fn(arg, q->src + i * h->rows.row_bytes);
}

uint64_t carrying_oldest(const struct client *c, uint32_t table, uint64_t *newest)
{
    const struct held_table *h = c->carrying ? map_get(&c->carrying->tables, table) : NULL;
    *newest = 0;
    if (!h || !h->first)
        return 0;
    held_check(h);
    *newest = h->last->number;
    return h->first->number;
}

bool carrying_any(const struct client *c)
{
    size_t at = 0;
    uint64_t id;
    void *value;
    while (c->carrying && map_next(&c->carrying->tables, &at, &id, &value)) {
        const struct held_table *h = value;
        if (h->first || h->rows.count)
            return true;
    }
    return false;
}
