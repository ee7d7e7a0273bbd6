#include "worker/chunk.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "worker/carrying.h"
#include "worker/ending.h"
#include "worker/floor.h"
#include "worker/gather.h"
#include "worker/numbers.h"
#include "worker/page_request.h"
#include "worker/reduction_request.h"
#include "worker/slices.h"
#include "worker/views.h"

static void waiters_check(const struct client_waiters *w)
{
    assert(!w->free == !w->free_count && !w->first == !w->last);
    assert(!w->resume_at || w->resume_at->need); /* it waits */
}

struct chunk *client_chunk_get(struct client *c)
{
    waiters_check(c->waiters);
    struct chunk *chunk = c->waiters->free;
    assert(!chunk == !c->waiters->free_count);
    if (chunk) {
        c->waiters->free = chunk->next;
        c->waiters->free_count--;
        waiters_check(c->waiters);
        return chunk;
    }
    return malloc(sizeof *chunk);
}

paramo_err client_chunks_reserve(struct client *c, size_t count)
{
    waiters_check(c->waiters);
    while (c->waiters->free_count < count) {
        struct chunk *chunk = malloc(sizeof *chunk);
        if (!chunk)
            return err_memory(sizeof *chunk);
        chunk->next = c->waiters->free;
        c->waiters->free = chunk;
        c->waiters->free_count++;
    }
    waiters_check(c->waiters);
    return PARAMO_OK;
}

void client_chunk_put(struct client *c, struct chunk *chunk)
{
    waiters_check(c->waiters);
    assert(!chunk->need && !chunk->number && !chunk->split);
    if (c->waiters->free_count >= REQUESTS_CACHED) {
        free(chunk);
        return;
    }
    chunk->next = c->waiters->free;
    c->waiters->free = chunk;
    c->waiters->free_count++;
    waiters_check(c->waiters);
}

void chunk_fini(struct client *c)
{
    waiters_check(c->waiters);
    assert(!c->waiters->first && !c->waiters->last && !c->waiters->resume_at);
    for (struct chunk *chunk; (chunk = c->waiters->free);) {
        c->waiters->free = chunk->next;
        free(chunk);
    }
}

/* ---- waiting for a view ---- */

void chunk_resume_from(struct client *c, struct chunk *chunk)
{
    waiters_check(c->waiters);
    assert(!chunk || chunk->need); /* it waits */
    c->waiters->resume_at = chunk;
}

/* before NULL: at the end. */
static void wait_insert(struct client *c, struct chunk *chunk, uint64_t need, struct chunk *before)
{
    waiters_check(c->waiters);
    assert(need && !chunk->need && !chunk->count);
    assert(!c->waiters->last || !c->waiters->last->wait_next);
    assert(!before || before->need); /* it waits as well */
    chunk->need = need;
    chunk->wait_next = before;
    chunk->wait_prev = before ? before->wait_prev : c->waiters->last;
    if (chunk->wait_prev)
        chunk->wait_prev->wait_next = chunk;
    else
        c->waiters->first = chunk;
    if (before)
        before->wait_prev = chunk;
    else
        c->waiters->last = chunk;
}

void slice_wait_view(struct client *c, struct chunk *chunk, uint64_t need)
{
    wait_insert(c, chunk, need, NULL);
    views_ask(c, need);
}

void slice_wait_turn(struct client *c, struct chunk *chunk, struct chunk *before)
{
    wait_insert(c, chunk, c->view->number, before);
}

void slice_wait_again(struct client *c, struct chunk *chunk)
{
    wait_insert(c, chunk, c->view->number + 1, NULL);
    chunk->again = true;
    /* without memory for a timer it waits for the next one, or for a view */
    if (!c->waiters->again.slot &&
        lane_timer_arm(c->lane, &c->waiters->again, lane_now(c->lane) + CHUNK_AGAIN_MS * ENV_MS))
        log_debug("customer %u: no memory for a timer: held rows wait for the next one", c->config.customer);
}

void slice_unwait_view(struct client *c, struct chunk *chunk)
{
    waiters_check(c->waiters);
    assert(chunk->need);
    chunk->again = false;
    assert(chunk->wait_prev ? chunk->wait_prev->wait_next == chunk : c->waiters->first == chunk);
    assert(chunk->wait_next ? chunk->wait_next->wait_prev == chunk : c->waiters->last == chunk);
    if (c->waiters->resume_at == chunk)
        c->waiters->resume_at = chunk->wait_next;
    if (chunk->wait_prev)
        chunk->wait_prev->wait_next = chunk->wait_next;
    else
        c->waiters->first = chunk->wait_next;
    if (chunk->wait_next)
        chunk->wait_next->wait_prev = chunk->wait_prev;
    else
        c->waiters->last = chunk->wait_prev;
    chunk->need = 0;
    waiters_check(c->waiters);
}

/* ---- a chunk ends ---- */

static void number_free(struct client *c, struct chunk *chunk)
{
    if (!chunk->number)
        return;
    numbers_finish(c, chunk);
    floor_rises(c);
}

static void slice_answer_free(struct client *c, struct slice *p)
{
    assert(p->state == SLICE_IDLE && !p->in_van && !p->placing);
    assert(!p->prev && !p->next && !p->coding);
    if (p->lens)
        bufpool_put_late(&c->pool, p->lens, 4 * (size_t)p->span->count);
    if (p->vals)
        bufpool_put_late(&c->pool, p->vals, p->vals_bytes);
    if (p->bits)
        bufpool_put_late(&c->pool, p->bits, p->bits_bytes);
    p->lens = NULL;
    p->vals = NULL;
    p->bits = NULL;
}

void chunk_withdraw(struct chunk *chunk)
{
    struct client *c = chunk->request->client;
    assert(chunk->unanswered <= chunk->count && (chunk->count || !chunk->split));
    if (chunk->split) {
        for (uint32_t i = 0; i < chunk->count; i++) {
            link_forget(&chunk->split[i].slice);
            slice_answer_free(c, &chunk->split[i].slice);
        }
        bufpool_put_late(&c->pool, chunk->split, chunk->split_bytes);
        chunk->split = NULL;
    } else if (chunk->count) {
        link_forget(&chunk->one);
        slice_answer_free(c, &chunk->one);
    }
    chunk->count = chunk->unanswered = 0;
    assert(!chunk->split);
}

void chunk_finished(struct client *c, struct chunk *chunk)
{
    struct request *r = chunk->request;
    assert(!chunk->unanswered && !chunk->need && r->unfinished > 0);
    assert(!r->ended && r->client == c);
    number_free(c, chunk);
    if (!r->on_reply && !chunk->rest && r->ts)
        tracker_answered(&c->tracker, r->ts);
    if (!r->pulls_lens) {
        if (chunk->split)
            gather_split(chunk);
        if (chunk->span.index && chunk->span.dst)
            gather_chunk(chunk);
        chunk_withdraw(chunk);
    }
    if (--r->unfinished)
        return;
    if (r->error) {
        request_close(r);
        return;
    }
    if (r->reduction)
        reduction_request_end(r->reduction);
    paramo_err err = r->page ? page_request_end(r->page) : PARAMO_OK;
    if (r->pulls_lens)
        gather_lens(r);
    else
        request_end(r, err, err ? err_text() : "");
}

void chunk_failed(struct chunk *chunk, paramo_err status, const char *text)
{
    struct request *r = chunk->request;
    if (r->ended)
        return;
    if (request_is_carrier(r)) {
        carrying_refused(r, status, text);
        chunk_withdraw(chunk);
        slice_wait_again(r->client, chunk);
        return;
    }
    if (r->kind != REQUEST_MESSAGE) {
        request_end(r, status, text);
        return;
    }
    assert(chunk->message && r->unfinished > 0);
    request_note(r, status, text);
    chunk_withdraw(chunk);
    number_free(r->client, chunk);
    if (--r->unfinished == 0)
        request_close(r);
}

void request_drop_chunks(struct client *c, struct request *r)
{
    assert(r->client == c && (r->first_used || !r->chunks));
    for (struct chunk *chunk = r->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->need)
            slice_unwait_view(c, chunk);
        chunk_withdraw(chunk);
        number_free(c, chunk);
        if (chunk != &r->first)
            client_chunk_put(c, chunk);
    }
    r->chunks = NULL;
    r->unfinished = 0;
    r->first_used = false;
}
