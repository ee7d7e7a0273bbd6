#include "server/shard/apply.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "server/replication/chain_wait.h"
#include "server/replication/forward.h"
#include "server/shard/apply_rows.h"
#include "server/shard/clearing.h"
#include "server/shard/filtered.h"
#include "server/shard/partial_apply.h"
#include "server/shard/reducing.h"
#include "server/shard/reply.h"
#include "server/shard/scanning.h"
#include "server/shard/shard_tables.h"

enum { LEND_MIN = 16 << 10 }; /* a shorter copy costs less than sending by itself */

/* ---- reading ---- */

static paramo_err pull_var(struct shard *s, struct shard_table *t, const struct wire_head *h,
                           const uint64_t *keys, struct reply **reply)
{
    /* The lengths say how much room the values need. */
    size_t n = h->count, total = 0, lens_bytes = (4 * n + 7) & ~(size_t)7;
    assert(lens_bytes >= 4 * n && t->options.kind == PARAMO_TABLE_VAR);
    uint32_t *lens = bufpool_get(&s->pool, lens_bytes);
    if (!lens)
        return err_set(PARAMO_E_MEMORY, "the server is out of memory for the answer");
    table_var_lens(t->table, keys, n, lens, &total);
    paramo_err err = reply_make(s, lens_bytes + total * t->value_bytes, reply);
    if (!err) {
        struct reply *r = *reply;
        assert(r->buffer_bytes == lens_bytes + total * t->value_bytes); /* values follow the lengths */
        memcpy(r->buffer, lens, 4 * n);
        table_var_pull(t->table, keys, n, (uint8_t *)r->buffer + lens_bytes);
        reply_seg(r, WIRE_SEG_LENS, 0, 4 * n);
        reply_seg(r, WIRE_SEG_VALS, lens_bytes, total * t->value_bytes);
        reply_finish(r, h, true, h->count, false);
    }
    bufpool_put(&s->pool, lens, lens_bytes);
    return err;
}

static paramo_err pull_fixed(struct shard *s, struct shard_table *t, const struct wire_head *h,
                             const uint64_t *keys, const struct rowcache_list *known, struct reply **reply)
{
    bool columns = h->flags & WIRE_COLUMNS, create = h->flags & WIRE_CREATE;
    size_t bytes = (size_t)h->count * (columns ? h->columns.count : t->row_values) * t->value_bytes;
    paramo_err err = reply_make(s, bytes, reply);
    if (err)
        return err;
    struct reply *r = *reply;
    if (h->flags & WIRE_CLOCKED)
        table_at_clock(t->table, h->clock, 1);
    bool lends = bytes >= LEND_MIN && (!columns || h->count == 1);
    const void *span = lends ? table_span(t->table, keys, h->count, columns ? h->columns.first : 0) : NULL;
    if (span)
        reply_lend(r, WIRE_SEG_VALS, span, bytes);
    else
        err = columns ? table_pull_columns(t->table, keys, h->count, h->columns.first, h->columns.count,
                                           r->buffer, create)
                      : apply_pull_rows(t, keys, h->count, known, s->part, r->buffer, create);
    if (h->flags & WIRE_CLOCKED)
        table_at_clock(t->table, UINT64_MAX, 1);
    if (err) {
        reply_free(r);
        return err;
    }
    if (!span)
        reply_seg(r, WIRE_SEG_VALS, 0, bytes);
    reply_finish(r, h, false, h->count, false);
    return PARAMO_OK;
}

/* The finished answer of a PULL or PUSHPULL, perhaps an error; NULL: there is no memory even for that. */
static struct reply *pull(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                          const uint64_t *keys, const struct rowcache_list *known)
{
    struct shard *s = peer->shard;
    struct reply *r = NULL;
    assert(t->table && peer->conn);
    t->pulls += h->count;
    paramo_err err = t->options.kind == PARAMO_TABLE_VAR ? pull_var(s, t, h, keys, &r)
                                                         : pull_fixed(s, t, h, keys, known, &r);
    if (err)
        return reply_of_status(s, h, err, err_text());
    assert(r->shard == s && !r->kept);
    filtered_answer(peer, t, h, keys, r);
    return r;
}

static void stat(struct peer *peer, struct shard_table *t, const struct wire_head *h)
{
    struct shard *s = peer->shard;
    struct table_count count;
    if (!counting_slice(peer, t, h, &count))
        return;
    struct data_stat answer = {.rows = chain_mixes(s, t) ? count.rows : table_rows(t->table),
                               .nonzero = count.nonzero,
                               .bytes = shard_table_bytes(t),
                               .pushes = t->pushes,
                               .pulls = t->pulls};
    struct reply *r = reply_begin(peer, h, DATA_STAT_BYTES);
    if (!r)
        return;
    data_stat_encode(&answer, r->buffer);
    reply_seg(r, WIRE_SEG_BODY, 0, DATA_STAT_BYTES);
    reply_send(peer, r, h, false, 0, false);
}

/* ---- changing ---- */

static paramo_err all_change(struct shard *s, struct shard_table *t, const struct wire_head *h,
                             const struct van_seg *seg, struct rowcache_list *known)
{
    paramo_err err = h->kind == WIRE_CLEAR ? PARAMO_OK : apply_change(t, h, seg, known);
    if (h->kind == WIRE_CLEAR)
        clearing_begin(s, t, NULL);
    else if (h->kind == WIRE_DELETE)
        clearing_update(s, t);
    return err;
}

paramo_err apply_slice(struct peer *peer, struct shard_table *t, const struct wire_head *h,
                       const struct van_seg *seg, unsigned nseg, bool repeated)
{
    struct shard *s = peer->shard;
    const uint64_t *keys = h->count ? seg[WIRE_SEG_KEYS].data : NULL;
    assert(t->table && s->view && peer->sender);
    assert(!t->lacks);                          /* handle() refuses these */
    if (repeated && h->kind != WIRE_PUSHPULL) { /* the caller may have changed its contents */
        reply_status(peer, h, PARAMO_OK, NULL);
        return PARAMO_OK;
    }
    paramo_err err = apply_check_rows(t, h, seg, nseg);
    /* Remembered keys have been checked, but perhaps under an earlier view. */
    struct rowcache_list *known = err ? NULL : apply_rows_known(t, h, keys);
    if (!err && h->kind != WIRE_SCAN && !(known && apply_owned(s, &t->placement, keys, h->count)))
        err = apply_check_keys(s, t, keys, h->count);
    if (err == PARAMO_E_PROTOCOL)
        return err;
    if (err) {
        reply_status(peer, h, err, err_text());
        return PARAMO_OK;
    }
    /* This holds for a repeat, too: the record of a pushpull's push may have survived when its rows did
     * not. */
    err = apply_check_lost(s, t, h, keys);
    if (err) {
        reply_status(peer, h, err, err_text());
        return PARAMO_OK;
    }
    struct chain_wait *wait = NULL;
    struct reply *answer;
    if (data_changes(h->kind) && !repeated) {
        struct applied_window *applied_window = &peer->sender->applied_window;
        uint64_t partitions[RING_PARTITIONS / 64], *only = NULL;
        const struct applied_note *applied_note =
            applied_window->applied_notes ? applied_window_note(applied_window, h->number) : NULL;
        if (applied_note) { /* the rest of the chunk */
            for (unsigned i = 0; i < PARTITION_WORDS; i++)
                partitions[i] = ~applied_note->partitions[i];
            only = partitions;
            known = NULL; /* part of the list may replace it */
        }
        if (s->chain)
            err = chain_prepare(peer, t, h, seg, nseg, only, &wait);
        if (!err && h->kind == WIRE_CLEAR && s->chain && s->chain->origins)
            only = chain_only_mine(s->chain, only, partitions); /* the table has rows of other owners, too */
        if (!err)
            err = only ? partial_apply(s, t, h, seg, nseg, only) : all_change(s, t, h, seg, known);
        if (err == PARAMO_E_AGAIN) { /* as if it was lost on the way */
            s->counters.dropped++;
            return PARAMO_OK;
        }
        if (err) { /* nothing has changed */
            chain_abandon(wait);
            reply_status(peer, h, err, err_text());
            return PARAMO_OK;
        }
        applied_window_record(applied_window, h->number);
        /* Only a CLEAR of the whole table ends its loss. After rows are put one by one, or from an older
         * file, the other lost rows would read as zeros. */
        if (h->kind == WIRE_CLEAR)
            shard_table_lose(t, only, false);
        if (wait) {
            /* The values are those of now; the answer leaves when the replicas have the change. */
            if (h->kind == WIRE_PUSHPULL)
                wait->reply = pull(peer, t, h, keys, known ? known : apply_rows_known(t, h, keys));
            if (wait->reply)
                reply_own(wait->reply);
            chain_commit(s->chain, t, wait, seg, peer->sender, only);
            return PARAMO_OK;
        }
    }
    switch (h->kind) {
    case WIRE_PULL:
    case WIRE_PUSHPULL:
        answer = pull(peer, t, h, keys,
                      known ? known : apply_rows_known(t, h, keys)); /* the push may have kept them */
        if (answer)
            reply_leave(peer, answer);
        return PARAMO_OK;
    case WIRE_SCAN:
        return scanning_slice(peer, t, h, seg);
    case WIRE_STAT:
        stat(peer, t, h);
        return PARAMO_OK;
    case WIRE_REDUCE:
        return reducing_slice(peer, t, h, seg);
    default:
        reply_status(peer, h, PARAMO_OK, NULL);
        return PARAMO_OK;
    }
}
