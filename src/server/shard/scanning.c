#include "server/shard/scanning.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication/chain_impl.h"
#include "server/shard/deferred.h"
#include "server/shard/housekeeping.h"
#include "server/shard/owned_keys.h"
#include "server/shard/reply.h"

/* ---- sessions ---- */

/* Removes the sessions of a sender, those older than `before`, and the session `one`. */
static void sessions_remove(struct shard *s, const struct sender *sender, uint64_t before,
                            const struct session *one)
{
    for (struct session **at = &s->scans->sessions; *at;) {
        struct session *x = *at;
        if ((sender && sender_id_equal(&x->sender, &sender->id)) || x->used_at < before || x == one) {
            assert(s->scans->count > 0);
            *at = x->next;
            s->scans->count--;
            deferred_close_page(s, x);
        } else {
            at = &x->next;
        }
    }
    assert(!s->scans->sessions == !s->scans->count);
}

void scanning_expire(struct shard *s, uint64_t before)
{
    sessions_remove(s, NULL, before, NULL);
}

void scanning_forget(struct shard *s, const struct sender *sender)
{
    sessions_remove(s, sender, 0, NULL);
}

static struct session *session_find(struct shard *s, const struct sender *sender, const struct wire_head *h)
{
    for (struct session *x = s->scans->sessions; x; x = x->next) {
        if (sender_id_equal(&x->sender, &sender->id) && x->id == h->scan.id && x->table == h->table)
            return x;
    }
    return NULL;
}

static struct session *session_oldest(struct shard *s, const struct session *but, bool with_page)
{
    struct session *oldest = NULL;
    for (struct session *x = s->scans->sessions; x; x = x->next)
        if (x != but && (x->page.keys || !with_page) && (!oldest || x->used_at < oldest->used_at))
            oldest = x;
    return oldest;
}

/* The page is freed in steps, or at once if there is no memory to queue it. */
static void page_drop(struct shard *s, struct session *x)
{
    assert(s->scans->count > 0); /* x is one of them */
    struct session *rest = x->page.keys ? calloc(1, sizeof *rest) : NULL;
    if (rest) {
        rest->page = x->page;
        x->page = (struct table_page){0};
        deferred_close_page(s, rest);
    } else {
        table_page_close(&x->page);
    }
    assert(!x->page.keys);
}

/* What the session knows of other rows than the present ones does not count. */
static struct session *session_get(struct shard *s, const struct sender *sender, const struct wire_head *h)
{
    assert(!s->scans->sessions == !s->scans->count);
    struct session *x = session_find(s, sender, h);
    if (!x) {
        if (s->scans->count >= SCAN_SESSIONS_MAX)
            sessions_remove(s, NULL, 0, session_oldest(s, NULL, false));
        x = calloc(1, sizeof *x);
        if (!x)
            return NULL;
        x->sender = sender->id;
        x->id = h->scan.id;
        x->table = h->table;
        x->next = s->scans->sessions;
        s->scans->sessions = x;
        s->scans->count++;
        assert(s->scans->count <= SCAN_SESSIONS_MAX);
    }
    x->used_at = lane_now(s->lane);
    if (!rows_epoch_is(s, x->epoch)) {
        page_drop(s, x);
        x->past = 0;
        x->epoch = rows_epoch_now(s);
    }
    return x;
}

/* A late copy of an earlier request: its sender has sent later ones and no longer waits for it. A session has one
 * place. Two deferred requests of one session would displace each other forever. */
static bool is_late(const struct session *x, const struct wire_head *h)
{
    return h->number < x->number;
}

/* ---- pages ---- */

static size_t step_keys(const struct shard *s)
{
    return s->config.scan_keys ? s->config.scan_keys : SCAN_STEP_KEYS;
}

/* The number of keys of a new page: each scan has an equal share of SCAN_BYTES. A page takes 16 bytes a key
 * until it is sorted, then 8. */
static size_t page_room(struct shard *s, const struct session *x, const struct shard_table *t)
{
    assert(s->scans->count > 0); /* x is one of them */
    uint64_t rows = table_rows(t->table) + table_rows(t->table) / 8 + 64;
    size_t share = s->config.scan_keys ? s->config.scan_keys : SCAN_BYTES / 16 / s->scans->count;
    size_t room = rows < share ? (size_t)rows : share, bytes = 16 * room;
    for (const struct session *other = s->scans->sessions; other; other = other->next)
        bytes += other == x ? 0 : table_page_bytes(&other->page);
    for (struct session *oldest; bytes > SCAN_BYTES && (oldest = session_oldest(s, x, true));) {
        assert(bytes >= table_page_bytes(&oldest->page));
        bytes -= table_page_bytes(&oldest->page);
        page_drop(s, oldest);
    }
    return room;
}

/* One step towards a page of x that has `cursor`. *done: the page is complete. */
static paramo_err page_step(struct shard *s, struct session *x, struct shard_table *t, uint64_t cursor,
                            bool *done)
{
    struct owned_keys owned = {s, t};
    *done = false;
    if (!x->page.keys || cursor < x->page.from || cursor > x->page.to) {
        page_drop(s, x);
        paramo_err err = table_page_open(&x->page, t->table, cursor, page_room(s, x, t));
        if (err)
            return err;
    }
    assert(x->page.keys);
    x->used_at = lane_now(s->lane);
    paramo_err err = table_page_step(&x->page, step_keys(s), owned_keys_only(&owned), &owned, done);
    if (err)
        page_drop(s, x);
    assert(!x->page.keys == (err != PARAMO_OK));
    return err;
}

/* Index of the first key not below. */
static size_t lower_bound(const uint64_t *keys, size_t n, uint64_t key)
{
    size_t low = 0;
    while (n) {
        size_t half = n / 2;
        if (keys[low + half] < key) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* ---- batches ---- */

/* What is wanted of the rows from a key on: those up to the key `last`, and at most `most`. */
struct wanted {
    uint64_t last;
    size_t most;
};

static struct wanted wanted_of(const struct wire_head *h, const uint64_t *keys)
{
    return (struct wanted){.last = h->count > 1 ? keys[1] : UINT64_MAX,
                           .most = h->count > 1 && h->scan.most ? h->scan.most : SIZE_MAX};
}

/* Rows that go into an answer: keys | lens, padded to 8 | values. */
struct batch {
    struct reply *reply;
    uint64_t *keys;
    size_t n, vals_at, vals;
    bool more;
};

static size_t row_bytes(const struct shard_table *t, const struct wire_head *h)
{
    return h->flags & WIRE_KEYS ? 0
           : h->flags & WIRE_COLUMNS
               ? h->scan_columns.count * (size_t)t->value_bytes
               : (t->row_values + ((h->flags & WIRE_STATE) ? t->state_values : 0)) * (size_t)t->value_bytes;
}

static void batch_send(struct peer *peer, const struct wire_head *h, struct batch *b, bool var)
{
    reply_seg(b->reply, WIRE_SEG_KEYS, 0, 8 * b->n);
    reply_seg(b->reply, WIRE_SEG_LENS, 8 * b->n, var ? 4 * b->n : 0);
    reply_seg(b->reply, WIRE_SEG_VALS, b->vals_at, b->vals);
    reply_send(peer, b->reply, h, var, (uint32_t)b->n, b->more);
}

static void answer_none(struct peer *peer, const struct wire_head *h, bool var)
{
    struct batch b = {.reply = reply_begin(peer, h, 0)};
    if (b.reply)
        batch_send(peer, h, &b, var);
}

/* Keys alone may be of rows that are gone: what is done with them asks for the rows. */
static size_t rows_read(const struct shard_table *t, const struct wire_head *h, uint64_t *keys, size_t n,
                        void *out)
{
    if (h->flags & WIRE_KEYS)
        return n;
    return h->flags & WIRE_COLUMNS
               ? table_scan_columns(t->table, keys, n, h->scan_columns.first, h->scan_columns.count, out)
               : table_scan_rows(t->table, keys, n, h->flags & WIRE_STATE, out);
}

/* Answers with the rows of page keys [first, first + n); more: there may be rows after them. False: none has a row. */
static bool answer_rows(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                        const struct table_page *page, size_t first, size_t n, bool more)
{
    size_t row = row_bytes(t, h);
    assert(n > 0 && first + n <= page->n);
    struct batch b = {.reply = reply_begin(peer, h, n * (8 + row)), .vals_at = 8 * n};
    if (!b.reply)
        return true;
    b.keys = b.reply->buffer;
    memcpy(b.keys, page->keys + first, 8 * n);
    b.n = rows_read(t, h, b.keys, n, (uint8_t *)b.reply->buffer + b.vals_at);
    assert(b.n <= n);
    b.vals = b.n * row;
    b.more = more;
    if (!b.n) {
        reply_free(b.reply);
        return false;
    }
    batch_send(peer, h, &b, false);
    return true;
}

/* Like answer_rows(), for rows of variable length. *n: how many keys of the page were examined. */
static paramo_err answer_var(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                             const struct table_page *page, size_t first, size_t *n, bool more,
                             bool *answered)
{
    struct shard *s = peer->shard;
    size_t bytes = *n * 12, total, vals = 0, fit = 0;
    assert(*n > 0 && first + *n <= page->n);
    uint64_t *keys = bufpool_get(&s->pool, bytes);
    if (!keys)
        return err_memory(bytes);
    uint32_t *lens = (uint32_t *)(keys + *n);
    memcpy(keys, page->keys + first, 8 * *n);
    size_t found = table_scan_rows(t->table, keys, *n, false, NULL);
    table_var_lens(t->table, keys, found, lens, &total);
    while (fit < found && (fit == 0 || vals < SCAN_BATCH_BYTES))
        vals += lens[fit++] * (size_t)t->value_bytes;
    if (fit < found)
        *n = lower_bound(page->keys + first, *n, keys[fit]);
    assert(fit <= found && !found == !fit);
    *answered = found > 0;
    size_t vals_at = 8 * fit + ((4 * fit + 7) & ~(size_t)7);
    struct batch b = {.reply = fit ? reply_begin(peer, h, vals_at + vals) : NULL,
                      .n = fit,
                      .vals_at = vals_at,
                      .vals = vals,
                      .more = more || fit < found};
    if (b.reply) {
        memcpy(b.reply->buffer, keys, 8 * fit);
        memcpy((uint8_t *)b.reply->buffer + 8 * fit, lens, 4 * fit);
        table_var_pull(t->table, keys, fit, (uint8_t *)b.reply->buffer + vals_at);
        batch_send(peer, h, &b, true);
    }
    bufpool_put(&s->pool, keys, bytes);
    return PARAMO_OK;
}

static bool page_has(const struct session *x, uint64_t cursor)
{
    const struct table_page *page = &x->page;
    return page->keys && page->phase == TABLE_PAGE_DONE && cursor >= page->from && cursor <= page->to;
}

/* Where the request continues: the keys before have no rows. */
static uint64_t session_cursor(const struct session *x, uint64_t asked)
{
    return x->asked == asked && x->past > asked ? x->past : asked;
}

/* Answers from the page that has the cursor. *answered: the answer was sent, perhaps that the scan has ended.
 * Otherwise x has moved past the keys that it examined. */
static paramo_err batch(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                        struct session *x, uint64_t asked, struct wanted wanted, bool *answered)
{
    enum { VAR_ROWS = 4096 };
    bool var = t->options.kind == PARAMO_TABLE_VAR && !(h->flags & WIRE_KEYS);
    const struct table_page *page = &x->page;
    size_t first = lower_bound(page->keys, page->n, session_cursor(x, asked)), end = page->n;
    if (wanted.last < page->to)
        end = lower_bound(page->keys, page->n, wanted.last + 1);
    end = end > first ? end : first;
    size_t left = end - first;
    size_t n = var ? VAR_ROWS : SCAN_BATCH_BYTES / (8 + row_bytes(t, h)) + 1;
    paramo_err err = PARAMO_OK;
    assert(page->keys && page->phase == TABLE_PAGE_DONE && first <= page->n);
    n = n < wanted.most ? n : wanted.most;
    n = n < left ? n : left;
    *answered = false;
    bool whole = page->to >= wanted.last; /* the page has all that is wanted */
    if (n && var)
        err = answer_var(peer, t, h, page, first, &n, first + n < end || !whole, answered);
    else if (n)
        *answered = answer_rows(peer, t, h, page, first, n, first + n < end || !whole);
    assert(first + n <= end);
    bool last = first + n == end;
    if (!err && !*answered && last && whole) {
        answer_none(peer, h, var);
        *answered = true;
    }
    x->over = *answered && last && whole;
    x->asked = asked;
    x->past = *answered ? 0 : last ? page->to + 1 : page->keys[first + n];
    return err;
}

/* ---- dense tables: their keys are in order as they are ---- */

static paramo_err batch_dense(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                              uint64_t cursor, struct wanted wanted)
{
    struct shard *s = peer->shard;
    size_t row = row_bytes(t, h), most = SCAN_BATCH_BYTES / (8 + row) + 1;
    uint64_t rows = wanted.last < t->options.rows ? wanted.last + 1 : t->options.rows;
    most = most < wanted.most ? most : wanted.most;
    bool mixes = chain_mixes(s, t);
    struct batch b = {.reply = reply_begin(peer, h, most * (8 + row))};
    if (!b.reply)
        return PARAMO_OK;
    b.keys = b.reply->buffer;
    while (cursor < rows && b.n < most) {
        unsigned partition = ring_partition(ring_position(&t->placement, cursor));
        uint64_t end =
            partition + 1 == RING_PARTITIONS ? t->options.rows : ring_first_row(&t->placement, partition + 1);
        end = end < rows ? end : rows;
        if (mixes && !partition_set_has(s->chain->mine, partition))
            cursor = end;
        else
            b.n += table_dense_list(t->table, &cursor, end, most - b.n, b.keys + b.n);
    }
    assert(b.n <= most);
    b.more = cursor < rows;
    b.vals_at = 8 * b.n;
    b.vals = b.n * row;
    void *out = (uint8_t *)b.reply->buffer + b.vals_at;
    paramo_err err = PARAMO_OK;
    if (h->flags & WIRE_COLUMNS)
        err = table_pull_columns(t->table, b.keys, b.n, h->scan_columns.first, h->scan_columns.count, out,
                                 false);
    else if (!(h->flags & WIRE_KEYS))
        err = table_get_rows(t->table, b.keys, b.n, h->flags & WIRE_STATE, out);
    if (err)
        reply_free(b.reply);
    else
        batch_send(peer, h, &b, false);
    return err;
}

/* ---- requests ---- */

/* Small enough for one step? */
static bool is_short(const struct shard *s, const struct shard_table *t)
{
    return table_rows(t->table) <= step_keys(s) / 4;
}

static paramo_err scan(struct peer *peer, struct shard_table *t, const struct wire_head *h, struct session *x,
                       uint64_t cursor, struct wanted wanted, bool *answered)
{
    struct shard *s = peer->shard;
    bool there = false;
    paramo_err err = PARAMO_OK;
    do {
        uint64_t at = session_cursor(x, cursor);
        there = page_has(x, at);
        if (!there && is_short(s, t))
            err = page_step(s, x, t, at, &there);
    } while (!err && !there && is_short(s, t));
    return err || !there ? err : batch(peer, t, h, x, cursor, wanted, answered);
}

paramo_err scanning_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    const uint64_t *keys = seg[WIRE_SEG_KEYS].data;
    uint64_t cursor = keys[0];
    struct wanted wanted = wanted_of(h, keys);
    assert(t->table && t->options.kind != PARAMO_TABLE_USER);
    bool answered = false;
    paramo_err err = PARAMO_OK;
    if (t->options.kind == PARAMO_TABLE_DENSE) {
        err = batch_dense(peer, t, h, cursor, wanted);
        answered = !err;
    } else {
        struct session *x = session_get(s, peer->sender, h);
        if (x && is_late(x, h)) { /* as if it had been lost on the way */
            s->counters.dropped++;
            return PARAMO_OK;
        }
        if (x)
            x->number = h->number;
        err = x ? scan(peer, t, h, x, cursor, wanted, &answered) : err_memory(sizeof *x);
        if (x && (err || x->over))
            sessions_remove(s, NULL, 0, x);
    }
    assert(!err || !answered); /* one answer */
    if (!err && !answered)
        err = deferred_add(peer, h, seg[WIRE_SEG_KEYS].data);
    if (err)
        reply_status(peer, h, err, err_text());
    housekeeping_schedule(s);
    return PARAMO_OK;
}

bool scanning_step(struct peer *peer, struct shard_table *t, const struct wire_head *h, uint64_t cursor,
                   paramo_err *err)
{
    struct shard *s = peer->shard;
    struct session *x = session_get(s, peer->sender, h);
    bool done = false;
    *err = x ? PARAMO_OK : err_memory(sizeof *x);
    if (x && is_late(x, h))
        return true;
    if (x)
        cursor = session_cursor(x, cursor);
    if (x && page_has(x, cursor))
        return true;
    if (x)
        *err = page_step(s, x, t, cursor, &done);
    return done || *err;
}

/* ---- counts ---- */

void counting_step(struct shard *s, struct shard_table *t, struct table_count *count)
{
    struct owned_keys owned = {s, t};
    table_count_step(t->table, count, 4 * step_keys(s), owned_keys_only(&owned), &owned);
}

bool counting_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                    struct table_count *count)
{
    struct shard *s = peer->shard;
    paramo_err err = PARAMO_OK;
    *count = (struct table_count){0};
    if (deferred_count(peer, h, count))
        return true;
    while (is_short(s, t) && !count->done)
        counting_step(s, t, count);
    if (!count->done)
        err = deferred_add(peer, h, NULL);
    if (err)
        reply_status(peer, h, err, err_text());
    assert(!count->done || !err);
    return count->done;
}
