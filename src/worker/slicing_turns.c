#include "worker/slicing_turns.h"

#include <assert.h>

#include "worker/chunk.h"
#include "worker/requests.h"
#include "worker/reslicing.h"
#include "worker/slicing.h"
#include "worker/views.h"

enum { TURN_KEYS = 1 << 15 }; /* sliced again in one turn: 1 ms (bench/steps.sh) */

static size_t resume_chunk(struct client *c, struct chunk *chunk)
{
    struct request *r = chunk->request;
    assert(chunk->need && chunk->need <= c->view->number && r->client == c);
    if (chunk->rest)
        return slice_rest_turn(c, chunk);
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

/* Chunks that must wait again come after the others, for a later view. */
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

static size_t turn_keys(const struct client *c)
{
    return c->config.turn_keys ? c->config.turn_keys : TURN_KEYS;
}

/* Chunks that have waited long enough are tried again. */
static void again_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_waiters, again)->client;
    assert(!client_is_down(c));
    assert(!timer->slot);
    size_t left = turn_keys(c);
    for (struct chunk *chunk = chunk_first_waiter(c); chunk; chunk = chunk->wait_next) {
        assert(chunk->need);
        if (chunk->again)
            chunk->need = c->view->number;
        chunk->again = false;
    }
    chunk_resume_from(c, chunk_first_waiter(c));
    resume_turn(c, left);
    client_finish(c);
}

static void resume_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_turns, timer)->client;
    assert(!client_is_down(c));
    assert(!timer->slot);
    resume_turn(c, turn_keys(c));
    client_finish(c);
}

void slice_resume_waiting(struct client *c)
{
    chunk_resume_from(c, chunk_first_waiter(c));
    resume_turn(c, turn_keys(c));
}

/* The view of the client may lack the table, and so may that of a server. A slice waits at a shard for the view by
 * which it was made, so the request waits here for a view that has the table. Later requests wait behind it: those of
 * a customer to a shard stay in order. */
void slice_request(struct client *c, struct request *r)
{
    bool to_table = r->kind != REQUEST_MESSAGE;
    assert(!r->ended && !r->chunks && !r->gated);
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

void slicing_turns_init(struct client *c)
{
    c->turns->client = c;
    c->turns->timer.fire = resume_fire;
    c->waiters->client = c;
    c->waiters->again.fire = again_fire;
}

void slicing_turns_close(struct client *c)
{
    lane_timer_cancel(c->lane, &c->turns->timer);
    lane_timer_cancel(c->lane, &c->waiters->again);
}
