#include "cluster/scheduler/sched_calls.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "wire/pool_calls.h"

enum { PLACE_BITS = 12 };

_Static_assert(CALL_PLACES == 1 << PLACE_BITS, "the key of a durable record has a node's id above the place");

static struct lane *lane_of(const struct sched_call *call)
{
    return call->node->sched->config.lane;
}

/* An answer that cannot leave now is asked for again: the caller repeats its call, and the answer is kept. */
static void answer_send(const struct sched_call *call)
{
    assert(call->answered);
    assert(!call->queue && !call->timer.slot);
    if (!call->node->peer)
        return;
    paramo_err err =
        sched_peer_reply(call->node->peer, call->kind, call->number, call->status, &call->answer);
    if (err)
        log_debug("scheduler: an answer to %s is sent later: %s", call_kind_name(call->kind), err_text());
}

/* A call that is answered is in the queue of those that wait for a save; any other waits for its event. */
static void call_check(const struct sched_call *call)
{
    assert(!call->save || call->answered);
    assert(!call->queue || call->answered == (call->queue == &call->node->sched->calls->held));
}

/* The groups that are released, in a list, and how many of these are answered by one save; the answers that a save
 * holds back, by its number. */
static void released_check(const struct sched_calls *c)
{
    assert(c->released ? c->released_end != &c->released : c->released_end == &c->released && !c->together);
    assert(!c->held.first == !c->held.last);
    assert(!c->held.first || (c->held.first->save && c->held.first->save <= c->held.last->save));
}

static void places_check(const struct sched_node *node)
{
    assert(!node->calls.kept == !node->calls.kept_count && node->calls.kept_count <= CALL_PLACES);
    assert(!(node->calls.kept_count & (node->calls.kept_count - 1)));
}

static void call_dequeue(struct sched_call *call)
{
    if (!call->queue)
        return;
    call_check(call);
    lane_timer_cancel(lane_of(call), &call->timer);
    assert(call->prev ? call->prev->next == call : call->queue->first == call);
    assert(call->next ? call->next->prev == call : call->queue->last == call);
    *(call->prev ? &call->prev->next : &call->queue->first) = call->next;
    *(call->next ? &call->next->prev : &call->queue->last) = call->prev;
    call->queue = NULL;
    if (call->withdrawn)
        call->withdrawn(call);
}

static void call_free(struct sched_call *call)
{
    call_dequeue(call);
    assert(!call->queue && !call->timer.slot);
    writer_fini(&call->answer);
    free(call);
}

static void call_enqueue(struct sched_call_queue *queue, struct sched_call *call)
{
    assert(!call->queue && !queue->first == !queue->last);
    call->queue = queue;
    call->next = NULL;
    call->prev = queue->last;
    *(queue->last ? &queue->last->next : &queue->first) = call;
    queue->last = call;
    call_check(call);
}

/* Must its answer survive? A call that changes nothing, or the same when it is repeated, may be done again. */
static bool call_kept(const struct sched_call *call)
{
    switch (call->kind) {
    case CALL_BARRIER:
    case CALL_POOL_DONE:
    case CALL_POOL_END:
    case CALL_KV_PUT:
    case CALL_KV_ADD:
    case CALL_KV_DELETE: /* a second time might delete a value that was put in between */
    case CALL_CKPT_LOAD: /* ... or lose it */
        return call->answered && call->status == PARAMO_OK;
    case CALL_POOL_NEXT:
        return call->answered && call->status == PARAMO_OK && call->answer.len &&
               call->answer.data[0] == POOL_GOT;
    default:
        return false;
    }
}

static uint64_t call_key(const struct sched_call *call)
{
    return (uint64_t)call->node->info.id << PLACE_BITS | call->number % CALL_PLACES;
}

/* The call that has this place; NULL: none. */
static struct sched_call *call_at(const struct sched_node *node, uint32_t place)
{
    places_check(node);
    assert(place < CALL_PLACES);
    return place < node->calls.kept_count ? node->calls.kept[place] : NULL;
}

static paramo_err place_make(struct sched_node *node, uint32_t place)
{
    assert(place < CALL_PLACES);
    places_check(node);
    uint32_t have = node->calls.kept_count, count = have ? have : 8;
    while (count <= place)
        count *= 2;
    if (count == have)
        return PARAMO_OK;
    struct sched_call **kept = realloc(node->calls.kept, count * sizeof(struct sched_call *));
    if (!kept)
        return err_memory(count * sizeof(struct sched_call *));
    memset(kept + have, 0, (count - have) * sizeof(struct sched_call *));
    node->calls.kept = kept;
    node->calls.kept_count = count;
    places_check(node);
    return PARAMO_OK;
}

static void place_free(struct sched_node *node, uint32_t place)
{
    assert(place < node->calls.kept_count && node->calls.kept[place]->node == node);
    assert(node->calls.kept[place]->number % CALL_PLACES == place);
    call_free(node->calls.kept[place]);
    node->calls.kept[place] = NULL;
}

/* What a call has changed, and what it has seen, is durable before it is answered. */
static void call_complete(struct sched_call *call, paramo_err status)
{
    struct scheduler *s = call->node->sched;
    assert(!call->answered && call->number);
    call_dequeue(call);
    assert(!call->queue && !call->timer.slot);
    call->answered = true;
    call->status = status;
    call->withdrawn = NULL;
    if (call_kept(call))
        sched_save_record_changed(s, RECORD_CALL, call_key(call));
    call->save = sched_save_due(s);
    if (call->save)
        call_enqueue(&s->calls->held, call);
    else
        answer_send(call);
}

/* ---- many answers at once: in turns -------------------------------------------------------------------- */

/* How much of a turn it takes. */
static size_t answer_cost(const struct sched_call *call)
{
    return 1 + call->answer.len / SCHED_CALLS_ANSWER_BYTES;
}

/* Answers calls of this group; false: the turn is over, and some are left. */
static bool group_turn(struct sched_call_group *group, size_t *cost, size_t most)
{
    assert(group->released && group->answer);
    for (struct sched_call *call; (call = group->queue.first);) {
        if (*cost >= most)
            return false;
        group->answer(call);
        assert(call->answered && group->queue.first != call);
        *cost += answer_cost(call);
    }
    return true;
}

/* True if there is more to do. */
static bool turn(struct sched_calls *c, size_t most)
{
    size_t cost = 0;
    released_check(c);
    for (struct sched_call_group *group; (group = c->released);) {
        if (!group_turn(group, &cost, most))
            return true;
        c->released = group->next;
        if (!c->released)
            c->released_end = &c->released;
        assert(group->released && c->together >= group->together);
        c->together -= group->together;
        group->free(group);
    }
    assert(!c->together); /* all groups are answered */
    for (struct sched_call *call; (call = c->held.first) && call->save <= c->saved;) {
        if (cost >= most)
            return true;
        assert(call->answered && call->save);
        call_dequeue(call);
        answer_send(call);
        cost += answer_cost(call);
    }
    return false;
}

static void go_on(struct sched_calls *c)
{
    struct lane *lane = c->sched->config.lane;
    released_check(c);
    assert(!c->timer.slot);
    bool held = c->together > 0;
    if (turn(c, c->most) && lane_timer_arm(lane, &c->timer, lane_now(lane) + c->pause))
        while (turn(c, SIZE_MAX)) /* no memory for the timer: all in this step */
            ;
    if (held && !c->together)
        sched_save_retry(c->sched);
}

static void turn_due(struct lane_timer *timer)
{
    go_on(container_of(timer, struct sched_calls, timer));
}

void sched_calls_saved(struct scheduler *s, uint64_t save)
{
    struct sched_calls *c = s->calls;
    assert(save > c->saved);
    released_check(c);
    c->saved = save;
    if (!c->timer.slot)
        go_on(c);
}

void sched_calls_release(struct scheduler *s, struct sched_call_group *group)
{
    struct sched_calls *c = s->calls;
    released_check(c);
    assert(!group->released && !group->next && group->answer && group->free);
    group->released = true;
    c->together += group->together;
    *c->released_end = group;
    c->released_end = &group->next;
    if (!c->timer.slot)
        go_on(c);
}

bool sched_calls_hold_save(const struct scheduler *s)
{
    return s->calls->together > 0;
}

void sched_calls_init(struct scheduler *s)
{
    struct sched_calls *c = s->calls;
    c->sched = s;
    c->most = SCHED_CALLS_TURN;
    c->released_end = &c->released;
    c->timer.fire = turn_due;
}

void sched_calls_fini(struct scheduler *s)
{
    struct sched_calls *c = s->calls;
    released_check(c);
    assert(!c->held.first); /* no node has calls */
    lane_timer_cancel(s->config.lane, &c->timer);
    for (struct sched_call_group *group; (group = c->released);) {
        assert(!group->queue.first);
        c->released = group->next;
        group->free(group);
    }
}

/* ---- durable records ----------------------------------------------------------------------------------- */

static void call_write(const struct sched_call *call, struct writer *w)
{
    assert(call->answered && call->node->info.id);
    write_u64(w, call->node->info.incarnation);
    write_u64(w, call->number);
    write_u32(w, call->kind);
    if (call->answer.len)
        write_bytes(w, call->answer.data, call->answer.len);
}

void sched_calls_record(const struct scheduler *s, uint64_t key, struct writer *w)
{
    const struct sched_node *node = sched_roster_find(s, (uint32_t)(key >> PLACE_BITS));
    const struct sched_call *call = node ? call_at(node, key % CALL_PLACES) : NULL;
    if (call && call_kept(call))
        call_write(call, w);
}

/* A few places of a node. Where it is depends on no address, as nodes and places may come. */
bool sched_calls_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w)
{
    enum { PLACES = 32 };
    size_t next = cursor->at, mark;
    struct sched_node *node = sched_roster_next(s, &next);
    if (!node)
        return false;
    size_t end =
        cursor->inner + PLACES < node->calls.kept_count ? cursor->inner + PLACES : node->calls.kept_count;
    for (; cursor->inner < end; cursor->inner++) {
        const struct sched_call *call = node->calls.kept[cursor->inner];
        if (!call || !call_kept(call))
            continue;
        sched_save_record_begin(w, RECORD_CALL, call_key(call), &mark);
        call_write(call, w);
        store_record_end(w, mark);
    }
    if (cursor->inner >= node->calls.kept_count) {
        cursor->at = next;
        cursor->inner = 0;
    }
    return true;
}

paramo_err sched_calls_restore(struct scheduler *s, uint64_t key, struct reader *record)
{
    struct sched_node *node = sched_roster_find(s, (uint32_t)(key >> PLACE_BITS));
    uint64_t incarnation = read_u64(record), number = read_u64(record);
    uint32_t kind = read_u32(record);
    if (record->failed || number % CALL_PLACES != key % CALL_PLACES ||
        (node && call_at(node, key % CALL_PLACES))) /* several keys may name the scheduler's own member */
        return err_set(PARAMO_E_CORRUPT, "the durable record of a call is malformed");
    if (!node || node->info.incarnation != incarnation)
        return PARAMO_OK; /* of one that had the place before */
    paramo_err err = place_make(node, key % CALL_PLACES);
    if (err)
        return err;
    struct sched_call *call = calloc(1, sizeof *call);
    if (!call)
        return err_memory(sizeof *call);
    places_check(node);
    *call = (struct sched_call){.node = node, .number = number, .kind = kind, .answered = true};
    if (record->left)
        write_bytes(&call->answer, record->at, record->left);
    node->calls.kept[key % CALL_PLACES] = call;
    return call->answer.failed ? err_memory(record->left) : PARAMO_OK;
}

/* ---- answered and deferred ----------------------------------------------------------------------------- */

struct writer sched_call_result(struct sched_call *call)
{
    assert(!call->answered);
    return writer_over(call->room, sizeof call->room);
}

void sched_call_fail(struct sched_call *call, paramo_err status)
{
    call_check(call);
    assert(!call->answered);
    writer_fini(&call->answer);
    call_text_encode(err_text(), &call->answer);
    if (call->answer.failed) {
        writer_fini(&call->answer);
        call->answer = sched_call_result(call);
        call_text_encode("the scheduler is out of memory", &call->answer);
    }
    call_complete(call, status);
}

void sched_call_answer(struct sched_call *call, struct writer *result)
{
    call_check(call);
    assert(!call->answered && !call->answer.data);
    if (result && result->failed) {
        writer_fini(result);
        sched_call_fail(call, err_memory(0));
        return;
    }
    if (result) {
        call->answer = *result;
        *result = (struct writer){0};
    }
    call_complete(call, PARAMO_OK);
}

static void call_due(struct lane_timer *timer)
{
    struct sched_call *call = container_of(timer, struct sched_call, timer);
    assert(call->queue && !call->answered); /* a call that is answered has no deadline */
    call_check(call);
    assert(!timer->slot);
    call->timed_out(call);
}

bool sched_call_defer(struct sched_call *call, struct sched_call_queue *queue, uint32_t timeout_ms,
                      void (*timed_out)(struct sched_call *call))
{
    assert(!call->answered && !call->queue && timed_out);
    assert(queue != &call->node->sched->calls->held && !call->timer.slot);
    call->timer.fire = call_due;
    call->timed_out = timed_out;
    paramo_err err =
        lane_timer_arm(lane_of(call), &call->timer, lane_now(lane_of(call)) + timeout_ms * ENV_MS);
    if (err) {
        if (call->withdrawn)
            call->withdrawn(call);
        sched_call_fail(call, err);
        return false;
    }
    call_enqueue(queue, call);
    return true;
}

paramo_err sched_calls_floor(struct sched_node *node, uint64_t floor)
{
    if (floor <= node->calls.floor)
        return PARAMO_OK;
    places_check(node);
    for (uint32_t i = 0; i < node->calls.kept_count; i++)
        if (node->calls.kept[i] && node->calls.kept[i]->number < floor)
            place_free(node, i);
    node->calls.floor = floor;
    return PARAMO_OK;
}

void sched_calls_drop(struct sched_node *node, bool keep_answered)
{
    places_check(node);
    for (uint32_t i = 0; i < node->calls.kept_count; i++)
        if (node->calls.kept[i] && !(keep_answered && node->calls.kept[i]->answered))
            place_free(node, i);
    if (keep_answered)
        return;
    free(node->calls.kept);
    node->calls = (struct sched_node_calls){.floor = node->calls.floor};
}

paramo_err sched_calls_received(struct sched_node *node, const struct wire_call *head, struct reader *body,
                                void (*handle)(struct sched_call *call, struct reader *body))
{
    if (node->info.id == 0 || head->number == 0)
        return err_set(PARAMO_E_PROTOCOL, "%s came before the node had its place",
                       call_kind_name(head->what));
    if (head->floor > head->number)
        return err_set(PARAMO_E_PROTOCOL, "call %" PRIu64 " is below its floor %" PRIu64, head->number,
                       head->floor);
    paramo_err err = sched_calls_floor(node, head->floor);
    if (err || head->number < node->calls.floor)
        return err; /* given up or answered long ago: an old copy */
    uint32_t place = head->number % CALL_PLACES;
    struct sched_call *known = call_at(node, place);
    if (known && known->number > head->number)
        return PARAMO_OK; /* an old copy: the caller has used its place again */
    if (known && known->number == head->number) {
        if (known->answered && !known->queue)
            answer_send(known);
        return PARAMO_OK;
    }
    struct sched_call *call = place_make(node, place) ? NULL : calloc(1, sizeof *call);
    if (!call) { /* the place stays as it is, for old copies of its call */
        log_debug("scheduler: no memory for %s: it will be sent again", call_kind_name(head->what));
        return PARAMO_OK;
    }
    if (known)
        place_free(node, place); /* the caller has its answer, or has given it up */
    assert(!node->calls.kept[place] && head->number >= node->calls.floor);
    places_check(node);
    node->calls.kept[place] = call;
    call->node = node;
    call->number = head->number;
    call->kind = head->what;
    handle(call, body);
    return PARAMO_OK;
}
