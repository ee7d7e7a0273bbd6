/*
 *   1. one owner for all keys            chunks straight from the caller's arrays
 *   2. a placement that keeps order      runs of keys with one owner, straight from the caller's arrays
 *   3. else                              keys and values gathered per owner into one buffer;
 *                                        answers scattered back
 */
#include "worker/slicing.h"

#include <assert.h>
#include <stdlib.h>

#include "worker/app_request.h"
#include "worker/carrying.h"
#include "worker/chopping.h"
#include "worker/chunk.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/grouping.h"
#include "worker/links.h"
#include "worker/page_request.h"
#include "worker/requests.h"
#include "worker/scan_batch.h"
#include "worker/sending.h"
#include "worker/views.h"

enum {
    RUNS_PER_SHARD = 8, /* arbitrary */
    /* Of a request that is gathered: 2 ms. */
    PORTION_KEYS = 1 << 16,
    PORTION_BYTES = 4 << 20
};

/* A dead server without partitions holds nothing: other shards own its partitions. */
bool shard_counts(const struct view *view, uint32_t shard)
{
    if (view_node(view, view->shards[shard].node)->alive)
        return true;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (view_ring(view)->owner[a] == shard)
            return true;
    return false;
}

/* The whole request waits for a view: partitions have no owner, or another, or its table is not in this one. */
void request_wait(struct client *c, struct request *r, uint64_t need)
{
    struct span none = {0};
    assert(!r->chunks); /* the whole request waits */
    struct chunk *chunk = slice_chunk_add(c, r, &none, -1);
    if (!chunk)
        return;
    assert(chunk == &r->first); /* it needs no memory */
    chunk->unsliced = true;
    slice_wait_view(c, chunk, need);
}

bool request_adds_up(const struct request *r)
{
    return r->kind == REQUEST_STAT || r->kind == REQUEST_REDUCE || r->kind == REQUEST_PAGE;
}

/* ---- a part of the keys at a time ---- */

/* A carrier fails in no part once another was sent: it has the memory for its chunks, and the owners of all keys,
 * before the first of them. AGAIN: a key has no owner in this view. MEMORY. */
static paramo_err carrier_ready(struct client *c, const struct request *r, const struct span *s)
{
    assert(request_is_carrier(r) && s->count > 0);
    uint64_t row = s->src_bytes / s->count, most = filtering_chunk_bytes(c, r),
             groups = c->view->shards_count;
    uint64_t per = most / (8 + row), runs = RUNS_PER_SHARD * groups, value = r->table->value_bytes;
    uint64_t chunks = s->count / (per ? per : 1) + (runs < s->count ? runs : s->count);
    if (row > most)
        chunks += s->count * (r->table->row_values / (c->config.chunk_bytes / value) + 1);
    for (uint32_t i = 0; i < s->count; i++)
        if (owner_of(c->view, r, span_key(s, i)) >= c->view->shards_count)
            return PARAMO_E_AGAIN;
    return client_chunks_reserve(c, (size_t)chunks);
}

/* It waits as a whole. */
static void carrier_waits(struct client *c, struct request *r, paramo_err why)
{
    struct span none = {0};
    assert(request_is_carrier(r) && !r->chunks);
    if (why == PARAMO_E_AGAIN) {
        request_wait(c, r, c->view->number + 1);
        return;
    }
    struct chunk *chunk = slice_chunk_add(c, r, &none, -1); /* the first: it needs no memory */
    assert(chunk == &r->first);
    chunk->unsliced = true;
    slice_wait_again(c, chunk);
}

/* How many keys from `first` on are gathered in one turn, and the bytes of their values. */
static uint32_t portion_of(const struct client *c, const struct request *r, const struct span *s,
                           size_t first, uint64_t *src_bytes)
{
    uint64_t src = s->src_bytes / s->count, dst = s->dst_bytes / s->count, most = PORTION_KEYS,
             left = s->count - first, portion_bytes = PORTION_BYTES;
    if (carrying_selects(r)) {
        most = CARRYING_KEYS;
        portion_bytes = CARRYING_BYTES;
    }
    if (c->config.portion_keys)
        most = c->config.portion_keys;
    most = most < left ? most : left;
    if (!s->lens) {
        uint64_t fits = portion_bytes / (8 + (src > dst ? src : dst)) + 1;
        most = most < fits ? most : fits;
        *src_bytes = most * src;
        return (uint32_t)most;
    }
    uint32_t n = 0;
    for (*src_bytes = 0; n < most && *src_bytes < PORTION_BYTES; n++)
        *src_bytes += (uint64_t)s->lens[first + n] * r->table->value_bytes;
    return n;
}

/* The keys of each owner in one buffer of the request. Rows that must be split go one by one from the
 * caller's array. AGAIN: a key has no owner in this view. */
static paramo_err gather_some(struct client *c, struct request *r, const struct span *s)
{
    assert(s->count > 0 && !r->ended);
    uint64_t row = (s->src_bytes > s->dst_bytes ? s->src_bytes : s->dst_bytes) / s->count;
    paramo_err err = request_is_carrier(r) ? carrier_ready(c, r, s) : PARAMO_OK;
    if (err)
        return err;
    if (!s->lens && !request_is_user(r) && row >= c->config.chunk_bytes / 2) {
        for (uint32_t i = 0; i < s->count && !r->ended; i++) {
            unsigned owner = owner_of(c->view, r, span_key(s, i));
            if (owner >= c->view->shards_count)
                return err_set(PARAMO_E_NODE_LOST, "a key has no owner");
            uint64_t src = s->src_bytes / s->count;
            struct span one = span_sub(s, i, 1, i * src, src);
            chop(c, r, &one, (int)owner);
        }
        return PARAMO_OK;
    }
    struct gathered g;
    err = grouping_gather(c, r, s, s->first, sizeof(struct scatter), &g);
    if (err)
        return err;
    struct scatter *scatter = (struct scatter *)(void *)g.base;
    *scatter = (struct scatter){.next = r->scatters, .bytes = g.bytes};
    r->scatters = scatter;
    for (size_t i = 0; i < g.count && !r->ended; i++)
        chop(c, r, &g.groups[i].span, (int)g.groups[i].owner);
    grouping_done(c, &g);
    return PARAMO_OK;
}

/* All keys in turns, before what waits. */
static struct chunk *rest_begin(struct client *c, struct request *r)
{
    struct span none = {0};
    struct chunk *rest = slice_chunk_add(c, r, &none, -1); /* the first: it needs no memory */
    assert(rest == &r->first);
    assert(!rest->next && !rest->need);
    rest->rest = true;
    r->sliced = r->sliced_src = 0;
    return rest;
}

static void rest_wait_turn(struct client *c, struct chunk *rest)
{
    assert(rest->rest && !rest->need);
    slice_wait_turn(c, rest, chunk_resume_at(c));
    chunk_resume_from(c, rest);
}

/* A handler gets all of its keys in one chunk. */
static void slice_gathered(struct client *c, struct request *r, const struct span *s)
{
    uint64_t src;
    assert(s->count > 0 && !r->chunks);
    if (!request_is_user(r) && portion_of(c, r, s, 0, &src) < s->count) {
        rest_wait_turn(c, rest_begin(c, r));
        return;
    }
    paramo_err err = gather_some(c, r, s);
    if (err && request_is_carrier(r))
        carrier_waits(c, r, err);
    else if (err == PARAMO_E_AGAIN)
        request_wait(c, r, c->view->number + 1);
    else if (err)
        request_end(r, err, err_text());
}

static struct span span_of(const struct request *r)
{
    uint32_t value = r->table->value_bytes;
    bool dst = r->dst && !r->pulls_lens;
    return (struct span){
        .keys = r->keys,
        .begin = r->begin,
        .lens = r->src_lens,
        .src = r->src,
        .dst = dst ? r->dst : NULL,
        .count = (uint32_t)r->n,
        .columns = r->columns,
        .src_bytes = r->src ? r->src_len * value : 0,
        .dst_bytes = dst ? r->dst_len * value : 0,
    };
}

/* The rows that filters let travel leave in a carrier. */
static paramo_err select_some(struct client *c, struct request *r, const struct span *s)
{
    struct request *carrier;
    paramo_err err = carrying_portion(c, r, s, &carrier);
    if (carrier)
        slice_by_view(c, carrier);
    return err;
}

static void slice_selected(struct client *c, struct request *r)
{
    struct span s = span_of(r);
    uint64_t src;
    assert(!r->chunks && carrying_selects(r));
    if (portion_of(c, r, &s, 0, &src) < s.count) {
        rest_wait_turn(c, rest_begin(c, r));
        return;
    }
    paramo_err err = select_some(c, r, &s);
    if (err == PARAMO_E_AGAIN)
        slice_wait_again(c, rest_begin(c, r));
    else if (err)
        request_end(r, err, err_text());
}

/* A turn of a flush. */
static size_t flush_rest(struct client *c, struct chunk *rest)
{
    struct request *flush = rest->request, *carrier;
    assert(rest->rest && flush->kind == REQUEST_FLUSH);
    assert(rest == &flush->first && rest->need);
    bool more = false;
    paramo_err err = flush->ended ? PARAMO_OK : carrying_flush(c, flush, &carrier, &more);
    if (err == PARAMO_E_AGAIN) {
        slice_unwait_view(c, rest);
        slice_wait_again(c, rest);
        return TURN_CHUNK;
    }
    if (err)
        request_end(flush, err, err_text());
    if (!flush->ended && carrier)
        slice_by_view(c, carrier);
    if (!flush->ended && more)
        return TURN_CHUNK + CARRYING_KEYS / 4;
    slice_unwait_view(c, rest);
    if (!flush->ended) {
        carrying_flushed(flush);
        chunk_finished(c, rest);
    }
    return TURN_CHUNK;
}

/* One turn. The chunk stays the next one to be sliced until all keys are. A later view does not change how the chunks
 * before were sliced: they continue like all others. */
static size_t slice_rest(struct client *c, struct chunk *rest)
{
    struct request *r = rest->request;
    struct span s = span_of(r);
    uint64_t src;
    assert(rest == &r->first && rest->need && r->sliced <= r->n);
    uint32_t keys = r->ended ? 0 : portion_of(c, r, &s, r->sliced, &src);
    if (keys) {
        struct span some = span_sub(&s, r->sliced, keys, r->sliced_src, src);
        bool selects = carrying_selects(r);
        paramo_err err = selects ? select_some(c, r, &some) : gather_some(c, r, &some);
        if (err == PARAMO_E_AGAIN || (err && request_is_carrier(r))) {
            slice_unwait_view(c, rest);
            if (selects || err == PARAMO_E_MEMORY)
                slice_wait_again(c, rest);
            else
                slice_wait_view(c, rest, c->view->number + 1);
            return keys;
        }
        if (err)
            request_end(r, err, err_text());
        r->sliced += keys;
        r->sliced_src += src;
        assert(r->sliced <= r->n && r->sliced_src <= s.src_bytes);
        if (!r->ended && r->sliced < r->n)
            return keys;
    }
    slice_unwait_view(c, rest);
    if (!r->ended)
        chunk_finished(c, rest);
    return TURN_CHUNK + keys;
}

size_t slice_rest_turn(struct client *c, struct chunk *rest)
{
    assert(rest->rest && rest->need);
    return rest->request->kind == REQUEST_FLUSH ? flush_rest(c, rest) : slice_rest(c, rest);
}

/* ---- the whole request ---- */

static void slice_runs(struct client *c, struct request *r, const struct span *s)
{
    size_t count = 0;
    const struct ring *ring = view_ring(c->view);
    const struct ring_placement *placement = &r->table->placement;
    assert(s->count > 0 && !r->chunks);
    paramo_err err =
        s->keys ? ring_runs(ring, placement, s->keys, s->count, c->slicing->runs, RING_PARTITIONS + 1, &count)
                : ring_range_runs(ring, placement, s->begin, s->count, c->slicing->runs, RING_PARTITIONS + 1,
                                  &count);
    if (err) {
        request_end(r, err, err_text());
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (c->slicing->runs[i].shard >= c->view->shards_count) {
            request_wait(c, r, c->view->number + 1);
            return;
        }
    }
    if (count > RUNS_PER_SHARD * (size_t)c->view->shards_count) {
        slice_gathered(c, r, s); /* runs are short: a copy costs less than many messages */
        return;
    }
    uint64_t at = 0, row = s->src_bytes / s->count;
    for (size_t i = 0; i < count && !r->ended; i++) {
        const struct ring_run *run = &c->slicing->runs[i];
        uint64_t bytes = row * run->count;
        if (s->lens) {
            bytes = 0;
            for (size_t k = 0; k < run->count; k++)
                bytes += (uint64_t)s->lens[run->first + k] * r->table->value_bytes;
        }
        struct span sub = span_sub(s, run->first, (uint32_t)run->count, at, bytes);
        chop(c, r, &sub, (int)run->shard);
        at += bytes;
    }
}

/* Two requests of one scan at a time would displace each other at a shard. */
static paramo_err page_begin(struct client *c, struct request *r)
{
    for (const struct request *other = c->requests->first; other; other = other->next)
        if (other != r && other->page && other->page->id == r->page->id)
            r->page->id = client_scan_id(c);
    return page_request_begin(r->page, c->view->shards_count);
}

static void slice_everywhere(struct client *c, struct request *r)
{
    assert(r->kind == REQUEST_CLEAR || request_adds_up(r));
    struct span none = {0};
    if (r->page && !c->view->shards_count) {
        request_wait(c, r, c->view->number + 1);
        return;
    }
    if (r->page && page_begin(c, r)) {
        request_end(r, PARAMO_E_MEMORY, err_text());
        return;
    }
    if (r->page) {
        none.keys = r->page->ends;
        none.count = 2;
    }
    for (uint32_t s = 0; s < c->view->shards_count && !r->ended; s++)
        if (shard_counts(c->view, s))
            chunk_add_start(c, r, &none, (int)s, (int)s);
}

static void slice_scan(struct client *c, struct request *r)
{
    struct scan_batch *b = r->batch;
    struct span s = {.keys = &b->cursor, .count = 1, .scan = b->id};
    if (!b->partitions_view)
        b->partitions_view = views_partitions_changed(c);
    if (b->partitions_view != views_partitions_changed(c))
        request_end(r, PARAMO_E_MOVED, "partitions have changed owners");
    else if (b->shard >= c->view->shards_count)
        request_end(r, PARAMO_E_MOVED, "the shard is gone");
    else if (shard_counts(c->view, b->shard))
        chunk_add_start(c, r, &s, (int)b->shard, (int)b->shard);
}

void slice_by_view(struct client *c, struct request *r)
{
    assert(!r->chunks && !r->unfinished);
    assert(!r->ended && r->client == c);
    if (r->kind == REQUEST_CLEAR || request_adds_up(r)) {
        slice_everywhere(c, r);
    } else if (r->kind == REQUEST_SCAN) {
        slice_scan(c, r);
    } else if (r->kind == REQUEST_MESSAGE) {
        app_request_slice(c, r);
    } else if (r->kind == REQUEST_FLUSH) {
        rest_wait_turn(c, rest_begin(c, r));
    } else if (r->n && carrying_selects(r)) {
        slice_selected(c, r);
    } else if (r->n) {
        struct span s = span_of(r);
        paramo_err err = request_is_carrier(r) ? carrier_ready(c, r, &s) : PARAMO_OK;
        if (err) {
            carrier_waits(c, r, err);
            return;
        }
        int owner = links_sole(c);
        if (owner < 0 && r->n == 1) {
            unsigned o = owner_of(c->view, r, span_key(&s, 0));
            owner = o < c->view->shards_count ? (int)o : -1;
        }
        if (owner >= 0)
            chop(c, r, &s, owner);
        else if (r->table->placement.kind != PARAMO_PLACE_MIXED && !request_is_user(r))
            slice_runs(c, r, &s);
        else
            slice_gathered(c, r, &s);
    }
    paramo_err err = r->page && !r->ended && !r->unfinished ? page_request_end(r->page) : PARAMO_OK;
    if (!r->unfinished) /* there is none to ask */
        request_end(r, err, err ? err_text() : "");
}

paramo_err slicing_init(struct client *c)
{
    c->slicing->runs = malloc((RING_PARTITIONS + 1) * sizeof *c->slicing->runs);
    return c->slicing->runs ? PARAMO_OK : err_memory((RING_PARTITIONS + 1) * sizeof *c->slicing->runs);
}

void slicing_fini(struct client *c)
{
    free(c->slicing->runs);
}
