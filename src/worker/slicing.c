/*
 * Slicing a request into chunks by the view, and a chunk into slices when the view has changed
 * (docs/ARCHITECTURE.md).
 *
 *   1. one owner for all keys            chunks straight from the caller's arrays
 *   2. a placement that keeps order      runs of keys with one owner, straight from the caller's arrays
 *   3. else                              keys and values gathered per owner into one buffer;
 *                                        answers scattered back
 */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "wire/key_range.h"
#include "worker/app_request.h"
#include "worker/carrying.h"
#include "worker/chunk.h"
#include "worker/ending.h"
#include "worker/filtering.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/page_request.h"
#include "worker/reduction_request.h"
#include "worker/requests.h"
#include "worker/scan_batch.h"
#include "worker/sending.h"
#include "worker/slicing.h"
#include "worker/views.h"

enum {
    RUNS_PER_SHARD = 8, /* arbitrary */
    /* Sliced again in one turn: 1 ms (bench/steps.sh). A chunk costs as much as TURN_CHUNK keys, beside its own. */
    TURN_KEYS = 1 << 15,
    TURN_CHUNK = 64,
    /* Of a request that is gathered: 2 ms. */
    PORTION_KEYS = 1 << 16,
    PORTION_BYTES = 4 << 20
};

static bool is_user(const struct request *r)
{
    return r->table->options.kind == PARAMO_TABLE_USER;
}

static unsigned owner_of(const struct view *view, const struct request *r, uint64_t key)
{
    return view_ring(view)->owner[ring_partition(ring_position(&r->table->placement, key))];
}

static void slice_by_view(struct client *c, struct request *r);
static size_t slice_rest(struct client *c, struct chunk *rest);
static size_t flush_rest(struct client *c, struct chunk *rest);

/* ---- waiting for a view, and for a turn ---- */

static size_t resume_chunk(struct client *c, struct chunk *chunk)
{
    struct request *r = chunk->request;
    if (chunk->rest)
        return r->kind == REQUEST_FLUSH ? flush_rest(c, chunk) : slice_rest(c, chunk);
    size_t keys = TURN_CHUNK + (chunk->unsliced ? r->n : chunk->span.count);
    slice_unwait_view(c, chunk);
    assert(!chunk->count); /* a waiting chunk has no slices */
    if (r->ended)
        return TURN_CHUNK;
    if (chunk->unsliced) {
        request_drop_chunks(c, r);
        slice_by_view(c, r);
    } else {
        slice_chunk(c, chunk);
    }
    return keys;
}

/* Chunks that must wait again come behind the others, for a later view. */
static void resume_turn(struct client *c, size_t left)
{
    while (chunk_resume_at(c) && left) {
        struct chunk *chunk = chunk_resume_at(c);
        if (chunk->need > c->view->number) {
            chunk_resume_from(c, chunk->wait_next);
            continue;
        }
        size_t keys = resume_chunk(c, chunk);
        left -= keys < left ? keys : left;
    }
    uint32_t few = c->config.turn_keys; /* in a simulation, other events come between two turns */
    if (chunk_resume_at(c) &&
        lane_timer_arm(c->lane, &c->turns->timer, lane_now(c->lane) + (few ? ENV_MS : 0)))
        resume_turn(c, SIZE_MAX);
}

/* Chunks that have waited long enough are tried again. */
static void again_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_waiters, again)->client;
    size_t left = c->config.turn_keys ? c->config.turn_keys : TURN_KEYS;
    for (struct chunk *chunk = chunk_first_waiter(c); chunk; chunk = chunk->wait_next) {
        if (chunk->again)
            chunk->need = c->view->number;
        chunk->again = false;
    }
    chunk_resume_from(c, chunk_first_waiter(c));
    resume_turn(c, left);
    client_finish(c);
}

static size_t turn_keys(const struct client *c)
{
    return c->config.turn_keys ? c->config.turn_keys : TURN_KEYS;
}

static void resume_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_turns, timer)->client;
    resume_turn(c, turn_keys(c));
    client_finish(c);
}

void slice_resume_waiting(struct client *c)
{
    chunk_resume_from(c, chunk_first_waiter(c));
    resume_turn(c, turn_keys(c));
}

/* ---- gathering keys and values by owner ---- */

struct group {
    uint32_t owner, count;
    uint64_t src_bytes, dst_bytes;
    struct span span; /* in the buffer */
};

/* Where the sections of a gathered buffer begin, behind `head` bytes. */
struct layout {
    size_t keys, index, lens, vals, total;
};

static struct layout layout_of(size_t head, size_t n, bool lens, uint64_t vals_bytes)
{
    struct layout l = {.keys = (head + 63) & ~(size_t)63};
    l.index = l.keys + 8 * n;
    l.lens = l.index + 4 * n;
    l.vals = (l.lens + (lens ? 4 * n : 0) + 63) & ~(size_t)63;
    l.total = l.vals + vals_bytes;
    return l;
}

/* The bytes of key i's values in a slice with lens. */
static uint64_t src_row(const struct span *s, size_t i, uint32_t value_bytes)
{
    return s->lens ? (uint64_t)s->lens[i] * value_bytes : s->src_bytes / s->count;
}

static void copy_row(uint8_t *to, const uint8_t *from, uint64_t bytes)
{
    if (bytes == 4)
        memcpy(to, from, 4);
    else
        memcpy(to, from, bytes);
}

/* Fills the groups' slices with their keys' part of s. cursor[owner]: the group of each owner. Values that
 * are sent and values that come back share their room: an answer comes after its values were applied. */
static void gather_groups(const struct span *s, size_t from, const uint16_t *owner, struct group *groups,
                          const uint16_t *group_of, uint8_t *base, const struct layout *l, size_t ngroups,
                          uint32_t value_bytes)
{
    size_t at = 0;
    uint64_t vals_at = 0;
    for (size_t g = 0; g < ngroups; g++) {
        struct span *to = &groups[g].span;
        uint64_t dst_row = s->dst ? s->dst_bytes / s->count : 0;
        memset(to, 0, sizeof *to);
        to->keys = (uint64_t *)(void *)(base + l->keys) + at;
        to->index = (uint32_t *)(void *)(base + l->index) + at;
        to->lens = s->lens ? (uint32_t *)(void *)(base + l->lens) + at : NULL;
        to->columns = s->columns;
        to->src_bytes = groups[g].src_bytes;
        to->dst_bytes = dst_row * groups[g].count;
        to->src = s->src ? base + l->vals + vals_at : NULL;
        to->dst = s->dst ? base + l->vals + vals_at : NULL;
        at += groups[g].count;
        vals_at += to->src_bytes > to->dst_bytes ? to->src_bytes : to->dst_bytes;
        groups[g].src_bytes = 0; /* now: filled so far */
    }
    assert(at == s->count); /* each key has one group */
    const uint8_t *src = s->src;
    uint64_t fixed = s->count ? s->src_bytes / s->count : 0;
    for (size_t i = 0; i < s->count; i++) {
        struct group *g = &groups[group_of[owner[i]]];
        struct span *to = &g->span;
        uint32_t k = to->count++;
        ((uint64_t *)(uintptr_t)to->keys)[k] = span_key(s, i);
        ((uint32_t *)(uintptr_t)to->index)[k] = (uint32_t)(from + i);
        if (src) {
            uint64_t bytes = s->lens ? (uint64_t)s->lens[i] * value_bytes : fixed;
            if (s->lens)
                ((uint32_t *)(uintptr_t)to->lens)[k] = s->lens[i];
            copy_row((uint8_t *)(uintptr_t)to->src + g->src_bytes, src, bytes);
            g->src_bytes += bytes;
            src += bytes;
        }
    }
    for (size_t g = 0; g < ngroups; g++)
        assert(groups[g].span.count == groups[g].count);
}

/* Splits s, whose first key is the key `from` by the groups' index, by owner into groups, in one buffer of the client's pool behind head bytes. *groups are in scratch
 * memory that the caller gives back (*scratch). AGAIN: a key has no owner in this view. */
struct gathered {
    struct group *groups;
    size_t count;
    uint8_t *base;
    size_t bytes;
    void *scratch;
    size_t scratch_bytes;
};

static paramo_err gather(struct client *c, const struct request *r, const struct span *s, size_t from,
                         size_t head_each, struct gathered *out)
{
    uint32_t nshards = c->view->shards_count;
    /* scratch: groups, count of each shard, group of each shard, owner of each key */
    size_t groups_bytes = nshards * sizeof(struct group);
    size_t bytes = groups_bytes + nshards * sizeof(size_t) + 2 * (size_t)nshards + 2 * (size_t)s->count;
    uint8_t *scratch = bufpool_get(&c->pool, bytes);
    if (!scratch)
        return err_memory(bytes);
    struct group *groups = (struct group *)(void *)scratch;
    size_t *counts = (size_t *)(void *)(scratch + groups_bytes);
    uint16_t *group_of = (uint16_t *)(void *)(counts + nshards);
    uint16_t *owner = group_of + nshards;
    memset(groups, 0, groups_bytes);
    memset(counts, 0, nshards * sizeof(size_t));
    for (size_t i = 0; i < s->count; i++) {
        unsigned o = owner_of(c->view, r, span_key(s, i));
        if (o >= nshards) {
            bufpool_put(&c->pool, scratch, bytes);
            return PARAMO_E_AGAIN;
        }
        owner[i] = (uint16_t)o;
        counts[o]++;
    }
    size_t n = 0;
    uint64_t vals = 0, dst_row = s->dst && s->count ? s->dst_bytes / s->count : 0;
    for (uint32_t o = 0; o < nshards; o++) {
        if (counts[o]) {
            group_of[o] = (uint16_t)n;
            groups[n].owner = o;
            groups[n++].count = (uint32_t)counts[o];
        }
    }
    if (s->src) {
        for (size_t i = 0; s->lens && i < s->count; i++)
            groups[group_of[owner[i]]].src_bytes += src_row(s, i, r->table->value_bytes);
        for (size_t g = 0; !s->lens && g < n; g++)
            groups[g].src_bytes = s->src_bytes / s->count * groups[g].count;
    }
    for (size_t g = 0; g < n; g++)
        vals +=
            groups[g].src_bytes > dst_row * groups[g].count ? groups[g].src_bytes : dst_row * groups[g].count;
    struct layout l = layout_of(head_each * n, s->count, s->lens != NULL, vals);
    uint8_t *base = bufpool_get(&c->pool, l.total);
    if (!base) {
        bufpool_put(&c->pool, scratch, bytes);
        return err_memory(l.total);
    }
    gather_groups(s, from, owner, groups, group_of, base, &l, n, r->table->value_bytes);
    *out = (struct gathered){.groups = groups,
                             .count = n,
                             .base = base,
                             .bytes = l.total,
                             .scratch = scratch,
                             .scratch_bytes = bytes};
    return PARAMO_OK;
}

/* ---- a chunk's next attempt ---- */

/* -1: several; -2: a key without an owner. */
static int chunk_owner(const struct client *c, const struct chunk *chunk)
{
    const struct span *s = &chunk->span;
    if (chunk->target >= 0)
        return (uint32_t)chunk->target < c->view->shards_count ? chunk->target : -2;
    if (links_sole(c) >= 0)
        return links_sole(c);
    unsigned first = owner_of(c->view, chunk->request, span_key(s, 0));
    if (first >= c->view->shards_count)
        return -2;
    for (uint32_t i = 1; i < s->count; i++) {
        if (owner_of(c->view, chunk->request, span_key(s, i)) != first)
            return -1;
    }
    return (int)first;
}

static void chunk_enqueue(struct client *c, struct chunk *chunk, struct split *split, uint32_t count,
                          size_t bytes)
{
    assert(!chunk->split && !chunk->need && !chunk->unanswered);
    chunk->split = split;
    chunk->split_bytes = bytes;
    chunk->view = c->view->number;
    chunk->count = chunk->unanswered = count;
    for (uint32_t i = 0; i < chunk->count && !chunk->request->ended; i++) {
        if (sending_usable(chunk, split[i].slice.link))
            link_enqueue(split[i].slice.link, &split[i].slice);
    }
}

static void chunk_split(struct client *c, struct chunk *chunk)
{
    struct gathered g;
    paramo_err err = gather(c, chunk->request, &chunk->span, 0, sizeof(struct split), &g);
    if (err == PARAMO_E_AGAIN) {
        slice_wait_view(c, chunk, c->view->number + 1);
        return;
    }
    if (err && request_is_carrier(chunk->request)) {
        slice_wait_again(c, chunk);
        return;
    }
    if (err) {
        request_end(chunk->request, err, err_text());
        return;
    }
    struct split *split = (struct split *)(void *)g.base;
    for (size_t i = 0; i < g.count; i++) {
        split[i].span = g.groups[i].span;
        sending_init(&split[i].slice, chunk, links_to_shard(c, g.groups[i].owner), &split[i].span);
    }
    bufpool_put(&c->pool, g.scratch, g.scratch_bytes);
    chunk_enqueue(c, chunk, split, (uint32_t)g.count, g.bytes);
}

/* A dead server without partitions holds nothing: other shards own its partitions. */
static bool shard_counts(const struct view *view, uint32_t shard)
{
    if (view_node(view, view->shards[shard].node)->alive)
        return true;
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (view_ring(view)->owner[a] == shard)
            return true;
    return false;
}

/* The whole request waits for a view: partitions have no owner, or another, or its table is not in this one. */
static void request_wait(struct client *c, struct request *r, uint64_t need)
{
    struct span none = {0};
    assert(!r->chunks); /* the whole request waits */
    struct chunk *chunk = slice_chunk_add(c, r, &none, -1);
    if (!chunk)
        return;
    chunk->unsliced = true;
    slice_wait_view(c, chunk, need);
}

/* A CLEAR when partitions have changed owners since it was sliced. A shard that has done it may own other
 * partitions now. So all shards are asked, under the chunk's number, which tells them what is done; and so
 * with every later attempt. */
static void chunk_everywhere(struct client *c, struct chunk *chunk)
{
    const struct view *view = c->view;
    uint32_t count = 0;
    assert(chunk->request->kind == REQUEST_CLEAR && !chunk->need);
    chunk->everywhere = true;
    for (uint32_t s = 0; s < view->shards_count; s++)
        count += shard_counts(view, s);
    struct split *split = bufpool_get(&c->pool, count * sizeof *split);
    if (!split) {
        request_end(chunk->request, err_memory(count * sizeof *split), err_text());
        return;
    }
    uint32_t at = 0;
    for (uint32_t s = 0; s < view->shards_count; s++) {
        if (!shard_counts(view, s))
            continue;
        split[at].span = (struct span){0};
        sending_init(&split[at].slice, chunk, links_to_shard(c, s), &split[at].span);
        at++;
    }
    assert(at == count);
    chunk_enqueue(c, chunk, split, count, count * sizeof *split);
}

/* The answers of shards add up only if all are of one view: the request begins again. */
static bool adds_up(const struct request *r)
{
    return r->kind == REQUEST_STAT || r->kind == REQUEST_REDUCE || r->kind == REQUEST_PAGE;
}

static void stat_reset(struct client *c, struct request *r)
{
    assert(adds_up(r) && (r->stats || r->reduction || r->page));
    request_drop_chunks(c, r);
    r->again++;
    if (r->reduction)
        reduced_reset(&r->reduction->found);
    else if (r->page)
        page_request_reset(r->page);
    else
        *r->stats = (struct client_stats){0};
}

static void stat_again(struct client *c, struct request *r, uint64_t need)
{
    stat_reset(c, r);
    if (need > c->view->number)
        request_wait(c, r, need);
    else
        slice_by_view(c, r);
}

/* False: the chunk continues like any other. */
static bool partitions_gone(struct client *c, struct chunk *chunk)
{
    struct request *r = chunk->request;
    if (r->kind == REQUEST_CLEAR && (views_partitions_changed(c) > chunk->view || chunk->everywhere))
        chunk_everywhere(c, chunk);
    else if (r->kind == REQUEST_SCAN && views_partitions_changed(c) != r->batch->partitions_view)
        request_end(r, PARAMO_E_MOVED, "partitions have changed owners");
    else if (!shard_counts(c->view, (uint32_t)chunk->target))
        chunk_finished(c, chunk); /* it had no keys */
    else
        return false;
    return true;
}

void slice_chunk(struct client *c, struct chunk *chunk)
{
    assert(!chunk->need && !chunk->request->ended);
    if (chunk->message) {
        app_request_slice_again(c, chunk);
        return;
    }
    assert(chunk->request->client == c);
    c->counts->retries++;
    if (adds_up(chunk->request)) {
        stat_again(c, chunk->request, 0);
        return;
    }
    chunk_withdraw(chunk);
    chunk->attempt++;
    if (chunk->target >= 0 && (uint32_t)chunk->target < c->view->shards_count && partitions_gone(c, chunk))
        return;
    int owner = chunk_owner(c, chunk);
    if (owner >= 0)
        slice_chunk_start(c, chunk, owner);
    else if (owner == -1)
        chunk_split(c, chunk);
    else
        slice_wait_view(c, chunk, c->view->number + 1);
}

void slice_chunk_by(struct client *c, struct chunk *chunk, uint64_t need)
{
    if (need <= c->view->number) {
        slice_chunk(c, chunk);
    } else if (adds_up(chunk->request)) {
        stat_again(c, chunk->request, need);
    } else {
        chunk_withdraw(chunk);
        slice_wait_view(c, chunk, need);
    }
}

void slice_chunk_later(struct client *c, struct chunk *chunk, struct chunk *before)
{
    struct request *r = chunk->request;
    assert(!chunk->need && !r->ended && !chunk->rest);
    if (chunk->message) {
        slice_chunk(c, chunk);
        return;
    }
    if (adds_up(r)) {
        struct span none = {0};
        stat_reset(c, r);
        chunk = slice_chunk_add(c, r, &none, -1); /* the first: it needs no memory */
        assert(chunk == &r->first);
        chunk->unsliced = true;
    } else {
        chunk_withdraw(chunk);
    }
    slice_wait_turn(c, chunk, before);
}

/* ---- a request's chunks ---- */

static void chunk_add_start(struct client *c, struct request *r, const struct span *s, int owner, int target)
{
    struct chunk *chunk = slice_chunk_add(c, r, s, target);
    if (chunk)
        slice_chunk_start(c, chunk, owner);
}

/* The keys [first, first + count) of a slice whose values begin at given offsets. */
static struct span span_sub(const struct span *s, size_t first, uint32_t count, uint64_t src_at,
                            uint64_t src_bytes)
{
    assert(count > 0 && first + count <= s->count);
    uint64_t dst_row = s->dst_bytes / s->count;
    struct span sub = {
        .keys = s->keys ? s->keys + first : NULL,
        .begin = s->begin + first,
        .lens = s->lens ? s->lens + first : NULL,
        .src = s->src ? s->src + src_at : NULL,
        .dst = s->dst ? s->dst + first * dst_row : NULL,
        .index = s->index ? s->index + first : NULL,
        .first = s->first + first,
        .count = count,
        .columns = s->columns,
        .src_bytes = src_bytes,
        .dst_bytes = dst_row * count,
    };
    return sub;
}

/* One row after the other, or its part that is asked for, each split into columns. */
static void chop_rows(struct client *c, struct request *r, const struct span *s, int owner)
{
    uint32_t value = r->table->value_bytes, per = c->config.chunk_bytes / value;
    uint32_t dim = s->columns.count ? s->columns.count : r->table->row_values;
    for (uint32_t i = 0; i < s->count; i++) {
        for (uint32_t column = 0; column < dim && !r->ended; column += per) {
            uint32_t columns = dim - column < per ? dim - column : per;
            uint64_t at = ((uint64_t)i * dim + column) * value, bytes = (uint64_t)columns * value;
            struct span part = span_sub(s, i, 1, at, s->src ? bytes : 0);
            part.columns.first = s->columns.first + column;
            part.columns.count = columns;
            part.dst = s->dst ? s->dst + at : NULL;
            part.dst_bytes = s->dst ? bytes : 0;
            chunk_add_start(c, r, &part, owner, -1);
        }
    }
}

/* Keys of one owner, in chunks of about chunk_bytes; for a handler in one. */
static void chop(struct client *c, struct request *r, const struct span *s, int owner)
{
    uint64_t dst_row = s->dst_bytes / s->count;
    uint32_t most = filtering_chunk_bytes(c, r);
    uint64_t bytes = 8 * (uint64_t)s->count + (s->src_bytes > s->dst_bytes ? s->src_bytes : s->dst_bytes);
    /* The rows that a function reads and changes do not travel, but a step of the server handles them. */
    uint64_t work =
        r->kind == REQUEST_TRANSFORM ? 2 * (uint64_t)r->table->row_values * r->table->value_bytes : 0;
    bytes += s->count * work;
    if (is_user(r)) {
        uint64_t all = bytes + (s->lens ? 4 * (uint64_t)s->count : 0) + VAN_HEADER_BYTES;
        if (all > c->config.frame_bytes) {
            (void)err_set(PARAMO_E_TOO_LARGE,
                          "the part for one server has %llu bytes, but a message holds at most %llu",
                          (unsigned long long)all, (unsigned long long)c->config.frame_bytes);
            request_end(r, PARAMO_E_TOO_LARGE, err_text());
            return;
        }
        chunk_add_start(c, r, s, owner, -1);
        return;
    }
    if (bytes <= most && !(r->range && s->count > KEY_RANGE_KEYS_MAX)) {
        chunk_add_start(c, r, s, owner, -1);
        return;
    }
    if (s->lens) {
        uint64_t at = 0;
        for (uint32_t first = 0; first < s->count && !r->ended;) {
            uint64_t sum = 0;
            uint32_t k = first;
            while (k < s->count && (k == first || sum + 12 * (uint64_t)(k - first) < most))
                sum += (uint64_t)s->lens[k++] * r->table->value_bytes;
            struct span sub = span_sub(s, first, k - first, at, sum);
            chunk_add_start(c, r, &sub, owner, -1);
            at += sum;
            first = k;
        }
        return;
    }
    uint64_t src_row_bytes = s->src_bytes / s->count;
    uint64_t row = src_row_bytes > dst_row ? src_row_bytes : dst_row;
    if (row > most && r->table->splittable && !s->index && r->kind <= REQUEST_PUSHPULL) {
        chop_rows(c, r, s, owner);
        return;
    }
    uint32_t per = (uint32_t)(most / (8 + row + work));
    if (!per)
        per = 1;
    if (r->range && per > KEY_RANGE_KEYS_MAX)
        per = KEY_RANGE_KEYS_MAX;
    for (uint32_t first = 0; first < s->count && !r->ended; first += per) {
        uint32_t count = s->count - first < per ? s->count - first : per;
        struct span sub = span_sub(s, first, count, first * src_row_bytes, count * src_row_bytes);
        chunk_add_start(c, r, &sub, owner, -1);
    }
}

/* A carrier fails in no part once another was sent: it has the memory for its chunks, and the owners of all keys, before
 * the first of them. AGAIN: a key has no owner in this view. MEMORY. */
static paramo_err carrier_ready(struct client *c, const struct request *r, const struct span *s)
{
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
    if (!s->lens && !is_user(r) && row >= c->config.chunk_bytes / 2) {
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
    err = gather(c, r, s, s->first, sizeof(struct scatter), &g);
    if (err)
        return err;
    struct scatter *scatter = (struct scatter *)(void *)g.base;
    *scatter = (struct scatter){.next = r->scatters, .bytes = g.bytes};
    r->scatters = scatter;
    for (size_t i = 0; i < g.count && !r->ended; i++)
        chop(c, r, &g.groups[i].span, (int)g.groups[i].owner);
    bufpool_put(&c->pool, g.scratch, g.scratch_bytes);
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
    slice_wait_turn(c, rest, chunk_resume_at(c));
    chunk_resume_from(c, rest);
}

/* A handler gets all of its keys in one chunk. */
static void slice_gathered(struct client *c, struct request *r, const struct span *s)
{
    uint64_t src;
    if (!is_user(r) && portion_of(c, r, s, 0, &src) < s->count) {
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

/* A turn. The chunk stays the next to be sliced until all keys are. What is sliced already is not concerned by a later
 * view: its chunks fare like any others. */
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

static void slice_runs(struct client *c, struct request *r, const struct span *s)
{
    size_t count = 0;
    const struct ring *ring = view_ring(c->view);
    const struct ring_placement *placement = &r->table->placement;
    paramo_err err =
        s->keys ? ring_runs(ring, placement, s->keys, s->count, c->turns->runs, RING_PARTITIONS + 1, &count)
                : ring_range_runs(ring, placement, s->begin, s->count, c->turns->runs, RING_PARTITIONS + 1,
                                  &count);
    if (err) {
        request_end(r, err, err_text());
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (c->turns->runs[i].shard >= c->view->shards_count) {
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
        const struct ring_run *run = &c->turns->runs[i];
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

/* Two requests of one scan at a time would each take its place at a shard from the other. */
static paramo_err page_begin(struct client *c, struct request *r)
{
    for (const struct request *other = c->requests->first; other; other = other->next)
        if (other != r && other->page && other->page->id == r->page->id)
            r->page->id = client_scan_id(c);
    return page_request_begin(r->page, c->view->shards_count);
}

static void slice_everywhere(struct client *c, struct request *r)
{
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

static void slice_by_view(struct client *c, struct request *r)
{
    assert(!r->chunks && !r->unfinished);
    if (r->kind == REQUEST_CLEAR || adds_up(r)) {
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
        else if (r->table->placement.kind != PARAMO_PLACE_MIXED && !is_user(r))
            slice_runs(c, r, &s);
        else
            slice_gathered(c, r, &s);
    }
    paramo_err err = r->page && !r->ended && !r->unfinished ? page_request_end(r->page) : PARAMO_OK;
    if (!r->unfinished) /* there is none to ask */
        request_end(r, err, err ? err_text() : "");
}

/* The view of the client may lack the table, and so may that of a server. A slice waits at a shard for the view by which
 * it was cut, so the request waits here for a view that has the table. Later requests wait behind it: those of a
 * customer to a shard stay in order. */
void slice_request(struct client *c, struct request *r)
{
    bool to_table = r->kind != REQUEST_MESSAGE;
    if (to_table)
        views_need_table(c, r->since);
    if (to_table && views_of_tables(c) > c->view->number)
        request_wait(c, r, views_of_tables(c));
    else if (to_table && chunk_resume_at(c)) /* earlier requests wait for their turn */
        request_wait(c, r, c->view->number);
    else
        slice_by_view(c, r);
    /* it has many keys: the first turn */
    if (to_table && chunk_resume_at(c) && !c->turns->timer.slot)
        resume_turn(c, turn_keys(c));
}

paramo_err slicing_init(struct client *c)
{
    c->turns->client = c;
    c->turns->timer.fire = resume_fire;
    c->waiters->client = c;
    c->waiters->again.fire = again_fire;
    c->turns->runs = malloc((RING_PARTITIONS + 1) * sizeof *c->turns->runs);
    return c->turns->runs ? PARAMO_OK : err_memory((RING_PARTITIONS + 1) * sizeof *c->turns->runs);
}

void slicing_close(struct client *c)
{
    lane_timer_cancel(c->lane, &c->turns->timer);
    lane_timer_cancel(c->lane, &c->waiters->again);
}

void slicing_fini(struct client *c)
{
    free(c->turns->runs);
}
