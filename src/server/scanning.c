/* Batches of rows in ascending key order. A session is a sorted list of the keys there were when the scan
 * began: only a cache, made anew when it has been let go, since the request says where to go on. */
#include <stdlib.h>
#include <string.h>

#include "server/chained.h"

static void session_free(struct session *x)
{
    free(x->keys);
    free(x);
}

static bool session_is(const struct session *x, const struct sender *sender)
{
    return x->node == sender->node && x->app == sender->app && x->customer == sender->customer &&
           x->incarnation == sender->incarnation;
}

/* All that `which` does not keep. */
static void sessions_remove(struct shard *s, const struct sender *sender, uint64_t before,
                            const struct session *one)
{
    for (struct session **at = &s->sessions; *at;) {
        struct session *x = *at;
        if ((sender && session_is(x, sender)) || x->used_at < before || x == one) {
            *at = x->next;
            s->sessions_count--;
            session_free(x);
        } else {
            at = &x->next;
        }
    }
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
    for (struct session *x = s->sessions; x; x = x->next) {
        if (session_is(x, sender) && x->id == h->columns && x->table == h->table)
            return x;
    }
    return NULL;
}

static struct session *session_make(struct shard *s, const struct sender *sender, struct shard_table *t,
                                    const struct wire_head *h)
{
    if (s->sessions_count >= SCAN_SESSIONS_MAX) {
        struct session *oldest = s->sessions;
        for (struct session *x = s->sessions; x; x = x->next)
            oldest = x->used_at < oldest->used_at ? x : oldest;
        sessions_remove(s, NULL, 0, oldest);
    }
    struct session *x = calloc(1, sizeof *x);
    if (!x || (chain_mixes(s, t) ? parted_keys(t, s->chain->mine, &x->keys, &x->n)
                                 : table_sorted_keys(t->table, &x->keys, &x->n))) {
        free(x);
        return NULL;
    }
    x->node = sender->node;
    x->app = sender->app;
    x->customer = sender->customer;
    x->incarnation = sender->incarnation;
    x->id = h->columns;
    x->table = h->table;
    x->next = s->sessions;
    s->sessions = x;
    s->sessions_count++;
    return x;
}

/* Index of the first key not below. */
static size_t lower_bound(const uint64_t *keys, size_t n, uint64_t key)
{
    size_t low = 0;
    while (n) {
        size_t half = n / 2;
        if (keys[low + half] < key || (MUTANT(scan_from_next) && keys[low + half] == key)) {
            low += half + 1;
            n -= half + 1;
        } else {
            n = half;
        }
    }
    return low;
}

/* keys | lens, padded to 8 | values */
static paramo_err answer_rows(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                              struct session *x, size_t first, size_t n, const uint32_t *lens, size_t vals)
{
    bool var = t->options.kind == PARAMO_TABLE_VAR;
    size_t lens_bytes = var ? 4 * n : 0, vals_at = 8 * n + ((lens_bytes + 7) & ~(size_t)7);
    struct reply *r = reply_begin(peer, h, vals_at + vals);
    if (!r)
        return PARAMO_OK;
    uint8_t *to = r->buffer;
    paramo_err err = PARAMO_OK;
    if (n)
        memcpy(to, x->keys + first, 8 * n);
    if (lens_bytes)
        memcpy(to + 8 * n, lens, lens_bytes);
    if (var && n) /* an empty list has no address */
        table_var_pull(t->table, x->keys + first, n, to + vals_at);
    else if (n)
        err = table_get_rows(t->table, x->keys + first, n, h->flags & WIRE_STATE, to + vals_at);
    if (err) {
        reply_free(r);
        return err;
    }
    reply_seg(r, WIRE_SEG_KEYS, 0, 8 * n);
    reply_seg(r, WIRE_SEG_LENS, 8 * n, lens_bytes);
    reply_seg(r, WIRE_SEG_VALS, vals_at, vals);
    x->over = first + n >= x->n;
    reply_send(peer, r, h, var, (uint32_t)n, !x->over);
    return PARAMO_OK;
}

static paramo_err batch(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                        struct session *x, uint64_t cursor)
{
    enum { VAR_ROWS = 4096 };
    struct shard *s = peer->shard;
    size_t first = lower_bound(x->keys, x->n, cursor), left = x->n - first;
    if (t->options.kind != PARAMO_TABLE_VAR) {
        size_t row =
            (t->row_values + ((h->flags & WIRE_STATE) ? t->state_values : 0)) * (size_t)t->value_bytes;
        size_t n = SCAN_BATCH_BYTES / (8 + row) + 1;
        n = n < left ? n : left;
        return answer_rows(peer, t, h, x, first, n, NULL, n * row);
    }
    uint32_t *lens = bufpool_get(&s->pool, VAR_ROWS * sizeof *lens);
    if (!lens)
        return err_memory(VAR_ROWS * sizeof *lens);
    size_t n = left < VAR_ROWS ? left : VAR_ROWS, total, vals = 0, fit = 0;
    if (n)
        table_var_lens(t->table, x->keys + first, n, lens, &total);
    while (fit < n && (fit == 0 || vals < SCAN_BATCH_BYTES))
        vals += lens[fit++] * (size_t)t->value_bytes;
    paramo_err err = answer_rows(peer, t, h, x, first, fit, lens, vals);
    bufpool_put(&s->pool, lens, VAR_ROWS * sizeof *lens);
    return err;
}

paramo_err scanning_piece(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const struct van_seg *seg)
{
    struct shard *s = peer->shard;
    uint64_t cursor;
    memcpy(&cursor, seg[WIRE_SEG_KEYS].data, sizeof cursor);
    paramo_err err = PARAMO_OK;
    /* Rows that were deleted since the list was made: once more with a new list. */
    for (unsigned attempt = 0; attempt < 2; attempt++) {
        struct session *x = session_find(s, peer->sender, h);
        if (!x)
            x = session_make(s, peer->sender, t, h);
        if (!x) {
            reply_status(peer, h, PARAMO_E_MEMORY, "the server has no memory for the list of keys");
            return PARAMO_OK;
        }
        x->used_at = lane_now(s->lane);
        err = batch(peer, t, h, x, cursor);
        if (err || x->over)
            sessions_remove(s, NULL, 0, x);
        if (err != PARAMO_E_NOT_FOUND)
            break;
    }
    if (err)
        reply_status(peer, h, err, err_text());
    shard_keep_house(s);
    return PARAMO_OK;
}
