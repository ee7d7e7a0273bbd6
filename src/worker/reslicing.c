#include "worker/reslicing.h"

#include <assert.h>

#include "worker/app_request.h"
#include "worker/chunk.h"
#include "worker/ending.h"
#include "worker/grouping.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/page_request.h"
#include "worker/reduction_request.h"
#include "worker/scan_batch.h"
#include "worker/sending.h"
#include "worker/slicing.h"
#include "worker/views.h"

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
    assert(split && count);
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
    assert(chunk->target < 0 && !chunk->split && !chunk->count);
    struct gathered g;
    paramo_err err = grouping_gather(c, chunk->request, &chunk->span, 0, sizeof(struct split), &g);
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
    grouping_done(c, &g);
    chunk_enqueue(c, chunk, split, (uint32_t)g.count, g.bytes);
}

/* A CLEAR when partitions have changed owners since it was sliced. A shard that has done it may own other partitions
 * now. So this attempt and all later ones ask all shards under the chunk's number, by which a shard knows that it has
 * done the CLEAR. */
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

static void stat_reset(struct client *c, struct request *r)
{
    assert(request_adds_up(r) && (r->stats || r->reduction || r->page));
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
    assert(!r->chunks && !r->unfinished);
    if (need > c->view->number)
        request_wait(c, r, need);
    else
        slice_by_view(c, r);
}

/* False: the chunk continues like any other. */
static bool partitions_gone(struct client *c, struct chunk *chunk)
{
    struct request *r = chunk->request;
    assert(chunk->target >= 0 && (uint32_t)chunk->target < c->view->shards_count);
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
    if (request_adds_up(chunk->request)) {
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
    assert(!chunk->need && !chunk->request->ended);
    if (need <= c->view->number) {
        slice_chunk(c, chunk);
    } else if (request_adds_up(chunk->request)) {
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
    if (request_adds_up(r)) {
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
