#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "table/table_options.h"
#include "worker/after.h"
#include "worker/answer.h"
#include "worker/app_request.h"
#include "worker/callbacks.h"
#include "worker/carrying.h"
#include "worker/check.h"
#include "worker/chunk.h"
#include "worker/client.h"
#include "worker/client_impl.h"
#include "worker/clock_gate.h"
#include "worker/ending.h"
#include "worker/fence.h"
#include "worker/filtering.h"
#include "worker/floor.h"
#include "worker/gather.h"
#include "worker/link.h"
#include "worker/links.h"
#include "worker/numbers.h"
#include "worker/page_request.h"
#include "worker/reduction_request.h"
#include "worker/requests.h"
#include "worker/scan_batch.h"
#include "worker/slicing.h"
#include "worker/slicing_turns.h"
#include "worker/views.h"

/* More bytes are copied before the lane is entered. Arbitrary: some microseconds. */
enum { COPY_APART = 64 << 10 };

void client_table_init(struct client_table *t, const struct view_table *from)
{
    memset(t, 0, sizeof *t);
    t->id = from->id;
    t->since = from->since;
    t->options = from->options;
    t->placement =
        (struct ring_placement){.kind = table_options_placement(&from->options), .rows = from->options.rows};
    t->value_bytes = (uint32_t)table_dtype_size(from->options.dtype);
    if (from->options.kind == PARAMO_TABLE_SPARSE || from->options.kind == PARAMO_TABLE_DENSE) {
        t->row_values = from->options.dim;
        t->state_values = (uint32_t)table_state_values(&from->options);
        t->splittable = table_options_splittable(&from->options);
    }
    memcpy(t->name, from->name, sizeof t->name);
}

/* ---- requests come and go ---- */

/* The bytes that a copy of the request's input takes. */
static size_t copy_size(const struct client_call *call, const struct request *r)
{
    size_t bytes = (r->keys ? 8 * r->n : 0) + (r->src_lens ? 4 * r->n : 0);
    if (r->src)
        bytes += (r->src_len * call->table->value_bytes + 7) & ~(size_t)7;
    return bytes;
}

static void copy_in(struct request *r, uint8_t *to, size_t value_bytes)
{
    if (r->keys) {
        memcpy(to, r->keys, 8 * r->n);
        r->keys = (const uint64_t *)(void *)to;
        to += 8 * r->n;
    }
    if (r->src && r->src_len) {
        memcpy(to, r->src, r->src_len * value_bytes);
        r->src = to;
        to += (r->src_len * value_bytes + 7) & ~(size_t)7; /* values and lens keep their alignment */
    }
    if (r->src_lens && r->n) {
        memcpy(to, r->src_lens, 4 * r->n);
        r->src_lens = (const uint32_t *)(void *)to;
    }
}

/* The bytes that PARAMO_COPY copies, about. */
static uint64_t copied_bytes(const struct client_call *call)
{
    uint64_t bytes = 0;
    if (!call->options || !(call->options->flags & PARAMO_COPY))
        return 0;
    for (size_t i = 0; call->kind == REQUEST_MESSAGE && i < call->messages_count; i++)
        for (unsigned k = 0; k < VAN_SEGS; k++)
            bytes += call->messages[i].seg[k].len;
    if (call->kind < REQUEST_CLEAR)
        bytes = 8 * (uint64_t)call->kv->n + call->kv->vals_len * (uint64_t)call->table->value_bytes;
    return bytes;
}

static const struct client_table no_table = {.options.kind = PARAMO_TABLE_USER, .value_bytes = 1};

/* The requests that this one names must have been issued. */
static paramo_err after_check(const struct client *c, const paramo_request_options *o)
{
    uint64_t issued = atomic_load(&c->tracker.issued);
    if (o->after_count && !o->after)
        return err_set(PARAMO_E_INVALID, "options.after is NULL");
    for (size_t i = 0; i <= o->after_count; i++) {
        uint64_t ts = i < o->after_count ? o->after[i] : o->after_all;
        if (ts > issued || (!ts && i < o->after_count))
            return err_set(PARAMO_E_INVALID, "options.after has timestamp %llu, which no request has",
                           (unsigned long long)ts);
    }
    return PARAMO_OK;
}

static paramo_err after_fill(struct request *r, const paramo_request_options *o)
{
    assert(!r->after && !r->after_count);
    r->after_all = o->after_all;
    if (!o->after_count)
        return PARAMO_OK;
    r->after = malloc(o->after_count * sizeof *r->after);
    if (!r->after)
        return err_memory(o->after_count * sizeof *r->after);
    memcpy(r->after, o->after, o->after_count * sizeof *r->after);
    r->after_count = o->after_count;
    return PARAMO_OK;
}

static paramo_err request_fill(struct request *r, const struct client_call *call, uint64_t deadline)
{
    static const uint8_t kinds[] = {WIRE_PUSH,      WIRE_PULL,    WIRE_PUSHPULL, WIRE_PUT,  WIRE_DELETE,
                                    WIRE_TRANSFORM, WIRE_CLEAR,   WIRE_STAT,     WIRE_SCAN, WIRE_REDUCE,
                                    WIRE_SCAN,      WIRE_MESSAGE, WIRE_PUSH};
    const paramo_request_options *o = call->options;
    const paramo_kv *kv = call->kv;
    assert(!r->copy && !r->after && !r->ts);
    assert(call->kind < sizeof kinds);
    r->table = call->table ? call->table : &no_table;
    r->since = call->other && call->other->since > r->table->since ? call->other->since : r->table->since;
    r->kind = call->kind;
    r->wire_kind = kinds[call->kind];
    r->deadline = deadline;
    r->stats = call->stats;
    r->batch = call->batch;
    r->status_to = call->status;
    if (o) {
        r->priority = o->priority;
        r->cmd = o->cmd;
        r->callback = o->callback;
        r->callback_arg = o->callback_arg;
        r->expects = o->callback && !(o->flags & PARAMO_WAITED);
        r->more = o->flags & PARAMO_MORE;
        r->at_clock = o->at_clock;
        if ((o->flags & PARAMO_CREATE) && call->kind == REQUEST_PULL)
            r->flags |= WIRE_CREATE;
    }
    if (call->clocked) {
        r->clocked = true;
        r->clock = call->clock;
        r->workers = call->workers;
        r->at_clock = r->at_clock > call->clock ? r->at_clock : call->clock;
    }
    if (o && (o->after_count || o->after_all)) {
        paramo_err err = after_fill(r, o);
        if (err)
            return err;
    }
    if (call->kind == REQUEST_MESSAGE)
        return app_request_fill(r, call);
    r->user_function = (call->transform && call->transform->function == PARAMO_TRANSFORM_USER) ||
                       (call->reduction && call->reduction->function == PARAMO_REDUCE_USER);
    if (call->kind == REQUEST_REDUCE)
        return reduction_request_make(call, &r->reduction);
    r->columns = client_call_columns(call);
    if (call->kind == REQUEST_PAGE)
        return page_request_make(call, client_scan_id(r->client), &r->page);
    if (call->kind == REQUEST_TRANSFORM) {
        r->transform_bytes = (uint32_t)transform_body_bytes(call->transform);
        r->transform = malloc(r->transform_bytes);
        if (!r->transform)
            return err_memory(r->transform_bytes);
        transform_encode(call->transform, r->transform);
    }
    if (call->with_state || (call->batch && call->batch->with_state))
        r->flags |= WIRE_STATE;
    if (call->batch && call->batch->keys_only)
        r->flags |= WIRE_KEYS;
    if (call->kind >= REQUEST_CLEAR)
        return PARAMO_OK;
    bool sends = call->kind == REQUEST_PUSH || call->kind == REQUEST_PUSHPULL || call->kind == REQUEST_PUT;
    bool pulls = call->kind == REQUEST_PULL || call->kind == REQUEST_PUSHPULL;
    r->keys = call->range ? NULL : kv->keys;
    r->range = call->range;
    r->begin = call->begin;
    r->n = kv->n;
    if (sends) {
        r->src = kv->vals;
        r->src_len = kv->vals_len;
        r->src_lens = kv->lens;
        if (kv->lens && call->kind == REQUEST_PUSHPULL) {
            uint64_t sum;
            check_sum(kv->lens, kv->n, &sum);
            r->src_len = sum;
        }
        if (r->src_lens)
            r->flags |= WIRE_LENS;
    }
    if (pulls) {
        r->dst = kv->vals;
        r->dst_len = kv->vals_len;
        r->dst_lens = kv->lens;
        r->pulls_lens = kv->lens != NULL;
    }
    if (call->kind == REQUEST_PULL && kv->keyset && !(o && (o->flags & PARAMO_COPY)))
        r->part = (struct keyset_part){.set = kv->keyset, .places = kv->places, .n = kv->n};
    if (o && (o->flags & PARAMO_COPY)) {
        size_t bytes = copy_size(call, r);
        uint8_t *to = request_copy_room(r, bytes);
        if (!to)
            return err_memory(bytes);
        copy_in(r, to, call->table->value_bytes);
    }
    return PARAMO_OK;
}

static void client_submit(struct client *c, struct request *r);

static void submit_task(struct lane_task *task)
{
    struct request *r = container_of(task, struct request, task);
    assert(lane_held(r->client->lane) && r->posted);
    client_submit(r->client, r);
}

static bool has_room(void *arg)
{
    struct client *c = arg;
    return client_has_room(c) || atomic_load(&c->life->closed) || atomic_load(&c->life->interrupted);
}

bool client_has_room(struct client *c)
{
    return tracker_has_room(&c->tracker) && atomic_load(&c->shared->copied) < CLIENT_COPIES_MAX;
}

static paramo_err closed_error(void)
{
    return err_set(PARAMO_E_CLOSED, "the worker is closed");
}

/* A timestamp, when there is room for one more request. */
static paramo_err issue_ts(struct client *c, bool nowait, uint64_t deadline, uint64_t *ts)
{
    for (;;) {
        paramo_err err = PARAMO_E_AGAIN;
        if (atomic_load_explicit(&c->shared->copied, memory_order_relaxed) < CLIENT_COPIES_MAX)
            err = tracker_issue(&c->tracker, ts);
        if (err != PARAMO_E_AGAIN)
            return err;
        if (nowait || lane_inside())
            return err_set(PARAMO_E_AGAIN,
                           "too many requests are in flight: at most %d, with at most %d MiB of copied "
                           "arrays; wait for one first",
                           TRACKER_LIMIT, CLIENT_COPIES_MAX >> 20);
        err = lane_wait(c->lane, has_room, c, deadline);
        if (err)
            return err_prefix(err, "waiting for room for one more request");
        if (atomic_load(&c->life->closed) || atomic_load(&c->life->interrupted))
            return closed_error();
    }
}

paramo_err client_issue(struct client *c, const struct client_call *call, uint64_t *ts)
{
    if (atomic_load_explicit(&c->life->closed, memory_order_acquire))
        return closed_error();
    const paramo_request_options *o = call->options;
    paramo_err err =
        call->kind == REQUEST_MESSAGE ? app_request_check(c, call) : check_call(call, c->config.frame_bytes);
    if (!err && o)
        err = after_check(c, o);
    if (err)
        return err;
    uint32_t timeout_ms = o && o->timeout_ms ? o->timeout_ms : c->config.request_timeout_ms;
    uint64_t deadline = lane_now(c->lane) + timeout_ms * ENV_MS;
    uint64_t issued;
    err = issue_ts(c, o && (o->flags & PARAMO_NOWAIT), deadline, &issued);
    if (err)
        return err;
    bool held = lane_held(c->lane), apart = !held && copied_bytes(call) > COPY_APART;
    bool entered = !held && !apart && lane_enter(c->lane), expects = false;
    struct request *r = requests_get(c, held || entered);
    err = r ? request_fill(r, call, deadline) : err_memory(sizeof *r);
    if (r)
        r->posted = !held && !entered;
    if (apart && !err)
        entered = lane_enter(c->lane);
    if (err) {
        tracker_complete(&c->tracker, issued);
        if (r)
            free(r->after);
        free(r);
    } else {
        r->ts = r->draws_as = issued;
        if (ts)
            *ts = issued;
        expects = r->expects;
        if (expects)
            lane_expect(c->lane);
        if (held || entered) {
            client_submit(c, r);
        } else {
            r->task.run = submit_task;
            lane_post(c->lane, &r->task);
        }
    }
    if (entered)
        lane_leave(c->lane);
    if (expects && !held)
        lane_give_way(c->lane);
    return err;
}

static void deadline_arm(struct client *c, uint64_t at)
{
    assert(c->life->deadline_at == UINT64_MAX || c->life->deadline_timer.slot);
    assert(!client_is_down(c));
    if (at >= c->life->deadline_at)
        return;
    if (lane_timer_arm(c->lane, &c->life->deadline_timer, at))
        log_error("customer %u: no memory for a timer, deadlines are late", c->config.customer);
    else
        c->life->deadline_at = at;
}

static void client_submit(struct client *c, struct request *r)
{
    assert(r->ts && !r->ended && !r->chunks);
    assert(r->client == c && !r->first_used && !r->filters && !r->unfinished);
    requests_add(c, r);
    clock_gate_begin(c, r);
    if (client_is_down(c)) {
        request_end(r, PARAMO_E_CLOSED, "the worker was closed");
    } else if (c->life->failure) {
        request_end(r, c->life->failure, c->life->failure_text);
    } else {
        deadline_arm(c, r->deadline);
        filtering_begin(r);
        if (r->stats)
            *r->stats = (struct client_stats){0};
        if (!after_hold(c, r) && !clock_gate_hold(c, r))
            slice_request(c, r);
    }
    client_finish(c);
}

paramo_err client_filter(struct client *c, const struct client_table *table, enum filter_direction direction,
                         const struct filter_chain *chain)
{
    struct request *flush = NULL;
    paramo_err err =
        direction == FILTER_PUSH && !client_is_down(c) ? carrying_chain_changes(c, table, &flush) : PARAMO_OK;
    if (!err)
        err = filtering_set(c, table, direction, chain);
    if (flush && c->life->failure)
        request_end(flush, c->life->failure, c->life->failure_text);
    else if (flush)
        slice_request(c, flush);
    if (flush)
        client_finish(c);
    return err;
}

void client_filter_counts(const struct client *c, struct filter_counts *sum)
{
    filtering_counts(c, sum);
}

/* ---- endings ---- */

/* Back on the lane after its callback. */
static void request_return(struct lane_task *task)
{
    struct request *r = container_of(task, struct request, task);
    struct client *c = r->client;
    struct lane *lane = c->lane;
    assert(lane_held(lane) && callbacks_out(c) > 0);
    assert(r->ended && !r->chunks && !r->edges && !r->waiters);
    requests_put(c, r);
    callbacks_ended(c); /* a closing thread may free the client from here on */
    lane_notify(lane);
}

static void request_callback(struct lane_task *task)
{
    struct request *r = container_of(task, struct request, task);
    struct client *c = r->client;
    assert(r->ended && r->ts && !r->chunks);
    assert(r->callback || r->on_reply);
    if (r->status) /* paramo_last_error has the cause; the tracker may have forgotten it by now */
        (void)!err_set(r->status, "%s", r->error_text ? r->error_text : err_sentence(r->status));
    if (r->callback)
        r->callback(r->callback_arg, r->ts, r->status);
    tracker_complete(&c->tracker, r->ts);
    r->task.run = request_return;
    lane_post_late(c->lane, &r->task);
}

static void request_release(struct client *c, struct request *r)
{
    assert(r->ended && r->client == c);
    gather_end(r);
    request_drop_chunks(c, r);
    carrying_release(r);
    for (struct scatter *scatter = r->scatters, *next; scatter; scatter = next) {
        next = scatter->next;
        bufpool_put_late(&c->pool, scatter, scatter->bytes);
    }
    request_copy_free(r);
    filtering_end(r);
    reduction_request_free(r->reduction);
    page_request_free(r->page);
    free(r->transform);
    r->reduction = NULL; /* a request that after_done slices looks at the others, and this is still one */
    r->page = NULL;
    r->transform = NULL;
    after_done(c, r);
    clock_gate_done(c, r);
    requests_remove(c, r);
    if (!r->carry.own)
        fence_request_over(c, r->number);
    assert(!r->chunks && !r->waiters && !r->unfinished);
}

static void request_complete(struct client *c, struct request *r)
{
    request_release(c, r);
    assert(!r->chunks && !r->edges && !r->waiters && !r->copy && !r->unfinished);
    if (r->expects)
        lane_expected(c->lane);
    if (!r->callback && !r->on_reply) {
        uint64_t ts = r->ts;
        requests_put(c, r);
        if (ts)
            tracker_complete(&c->tracker, ts);
        lane_notify(c->lane);
        return;
    }
    callbacks_begun(c);
    r->task.run = request_callback;
    client_complete(c, &r->task);
}

/* May links send slices that had to wait? */
static bool may_pump(struct client *c)
{
    if (!links_hurried(c) && !numbers_room_again(c))
        return false;
    numbers_wait_over(c);
    return true;
}

/* Many bytes go back to the system in turns. Without memory for a timer the next turn comes with the next request. */
static void free_late(struct client *c)
{
    if (!c->pool.late || c->life->free_timer.slot || client_is_down(c)) /* then client_free frees all */
        return;
    if (lane_timer_arm(c->lane, &c->life->free_timer, lane_now(c->lane)))
        bufpool_free_late(&c->pool);
}

static void free_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_life, free_timer)->client;
    assert(!client_is_down(c)); /* closing cancels it */
    bufpool_free_late(&c->pool);
    client_finish(c);
}

static void requests_finish(struct client *c)
{
    for (;;) {
        struct request *r = requests_take_ended(c);
        if (r) {
            request_complete(c, r);
        } else if (may_pump(c)) {
            for (size_t i = 0; i < links_count(c); i++)
                link_pump(links_at(c, i));
        } else {
            free_late(c);
            return;
        }
    }
}

/* ---- deadlines ---- */

/* Sets this thread's message: what the request still waits for. */
static void deadline_text(const struct request *r)
{
    const char *what = wire_kind_name(r->wire_kind), *table = r->table->name;
    if (r->carry.children)
        r = r->carry.children; /* what it waits for */
    if (r->edges_open) {
        (void)err_set(PARAMO_E_TIMEOUT, "%s: a request that it comes after did not complete in time", what);
        return;
    }
    if (r->gated) {
        clock_gate_late(r->client, r);
        return;
    }
    for (const struct chunk *chunk = r->chunks; chunk; chunk = chunk->next) {
        if (chunk->need && views_of_tables(r->client) > r->client->view->number) {
            (void)err_set(PARAMO_E_TIMEOUT, "%s to table %s: no view that has its table came in time", what,
                          table);
            return;
        }
        if (chunk->need) {
            (void)err_set(PARAMO_E_TIMEOUT, "%s to table %s: its keys had no reachable owner in time", what,
                          table);
            return;
        }
        for (uint32_t i = 0; i < chunk->count; i++) {
            const struct slice *p = chunk->split ? &chunk->split[i].slice : &chunk->one;
            if (p->state == SLICE_ANSWERED || !p->link)
                continue;
            char name[LINK_NAME_MAX];
            link_name(p->link, name);
            (void)err_set(PARAMO_E_TIMEOUT, "%s%s%s: no answer from %s in time%s%s", what,
                          table[0] ? " to table " : "", table, name, p->link->trouble[0] ? ": " : "",
                          p->link->trouble);
            return;
        }
    }
    (void)err_set(PARAMO_E_TIMEOUT, "%s to table %s: it did not complete in time", what, table);
}

static void deadline_fire(struct lane_timer *timer)
{
    struct client *c = container_of(timer, struct client_life, deadline_timer)->client;
    uint64_t now = lane_now(c->lane), next = UINT64_MAX;
    assert(!client_is_down(c) && c->life->deadline_at != UINT64_MAX);
    c->life->deadline_at = UINT64_MAX;
    for (struct request *r = requests_first(c); r; r = r->next) {
        assert(r->client == c);
        if (r->deadline <= now && !r->ended && request_is_carrier(r))
            carrying_late(r); /* perhaps it has a later deadline now */
        if (r->deadline <= now && r->error) {
            request_close(r);
        } else if (r->deadline <= now && !r->ended) {
            deadline_text(r);
            request_end(r, PARAMO_E_TIMEOUT, err_text());
        } else if (r->deadline > now && r->deadline < next) {
            next = r->deadline;
        }
    }
    if (next != UINT64_MAX)
        /* coarse: not a wake-up for each request */
        deadline_arm(c, next > now + ENV_MS ? next : now + ENV_MS);
    client_finish(c);
    client_publish(c);
}

/* ---- life ---- */

void client_fail(struct client *c, paramo_err status, const char *text)
{
    assert(status && lane_held(c->lane));
    if (c->life->failure)
        return;
    c->life->failure = status;
    (void)snprintf(c->life->failure_text, sizeof c->life->failure_text, "%s", text);
    for (struct request *r = requests_first(c); r; r = r->next)
        request_end(r, status, c->life->failure_text);
    client_finish(c);
    lane_notify(c->lane);
}

static void close_on_lane(struct lane_task *task)
{
    struct client *c = container_of(task, struct client_life, close_task)->client;
    assert(!client_is_down(c) && lane_held(c->lane));
    struct lane *lane = c->lane;
    atomic_store(&c->life->down, true);
    for (struct request *r = requests_first(c); r; r = r->next)
        request_end(r, PARAMO_E_CLOSED, "the worker was closed");
    client_finish(c);
    client_publish(c);
    for (size_t i = 0; i < links_count(c); i++)
        link_goodbye(links_at(c, i));
    route_fini(c);
    link_orphan_probes(c); /* they leave with the goodbye, perhaps after the client was freed */
    lane_timer_cancel(lane, &c->life->deadline_timer);
    floor_close(c);
    slicing_turns_close(c);
    gather_close(c);
    lane_timer_cancel(c->lane, &c->life->free_timer);
    assert(!requests_first(c) && !chunk_first_waiter(c) && !links_count(c));
    assert(numbers_floor(c) == numbers_next(c)); /* all chunks are over */
    atomic_store(&c->life->gone, true);          /* the closing thread may free the client from here on */
    lane_notify(lane);
}

static bool close_done(void *arg)
{
    struct client *c = arg;
    return atomic_load(&c->life->gone) && callbacks_out(c) == 0 && atomic_load(&c->tracker.in_flight) == 0;
}

/* Runs deferred callbacks for which no thread polls any more. */
static bool close_or_callbacks(void *arg)
{
    struct client *c = arg;
    return close_done(c) || callbacks_deferred(c);
}

void client_close(struct client *c)
{
    if (!atomic_exchange(&c->life->closed, true)) {
        c->life->close_task.run = close_on_lane;
        lane_post(c->lane, &c->life->close_task);
    }
    while (!close_done(c)) {
        if (lane_wait(c->lane, close_or_callbacks, c, UINT64_MAX))
            return; /* in a callback: the contract is broken, and waiting would hang */
        client_run_callbacks(c);
    }
}

/* All of one client. */
struct client_parts {
    struct client client;
    struct client_life life;
    struct client_shared shared;
    struct client_counts counts;
    struct client_callbacks callbacks;
    struct client_requests requests;
    struct client_clock_gate clock_gate;
    struct client_numbers numbers;
    struct client_floor floor;
    struct client_links links;
    struct client_probes probes;
    struct client_views views;
    struct client_waiters waiters;
    struct client_slicing slicing;
    struct client_turns turns;
    struct client_gathers gathers;
};

static void parts_join(struct client_parts *all)
{
    struct client *c = &all->client;
    c->life = &all->life;
    c->shared = &all->shared;
    c->counts = &all->counts;
    c->callbacks = &all->callbacks;
    c->requests = &all->requests;
    c->clock_gate = &all->clock_gate;
    c->numbers = &all->numbers;
    c->floor = &all->floor;
    c->links = &all->links;
    c->probes = &all->probes;
    c->views = &all->views;
    c->waiters = &all->waiters;
    c->slicing = &all->slicing;
    c->turns = &all->turns;
    c->gathers = &all->gathers;
    c->life->client = c;
}

paramo_err client_create(const struct client_config *config, struct client **client)
{
    struct client_parts *all = calloc(1, sizeof *all);
    if (!all)
        return err_memory(sizeof *all);
    struct client *c = &all->client;
    parts_join(all);
    c->config = *config;
    if (!c->config.chunk_bytes)
        c->config.chunk_bytes = CHUNK_BYTES;
    c->lane = config->lane;
    (void)snprintf(c->token, sizeof c->token, "%s", config->token ? config->token : "");
    c->config.token = c->token;
    (void)snprintf(c->scheduler, sizeof c->scheduler, "%s", config->scheduler ? config->scheduler : "");
    c->config.scheduler = c->scheduler;
    atomic_init(&c->shared->num_servers, config->view->num_servers);
    atomic_init(&c->shared->num_workers, config->view->num_workers);
    c->config.view = NULL;
    /* A customer that is opened again is the same sender: its numbers must be above all that it used before.
     * The clock ensures that, since no client sends a chunk every nanosecond. */
    numbers_init(c, lane_now(c->lane));
    /* Ids of scans rise in the same way. A server keeps the batches of a scan for a minute, and no client begins a
     * scan every microsecond. */
    atomic_init(&c->shared->scans, (unsigned)(numbers_next(c) / ENV_US));
    c->finish = requests_finish;
    c->van_user = &client_van_user;
    c->life->deadline_at = UINT64_MAX;
    c->life->deadline_timer.fire = deadline_fire;
    c->life->free_timer.fire = free_fire;
    route_init(c);
    floor_init(c);
    gather_init(c);
    slicing_turns_init(c);
    callbacks_init(c);
    bufpool_init(&c->pool, CLIENT_POOL_MAX);
    paramo_err err = tracker_init(&c->tracker);
    if (err)
        goto err_free_client;
    err = slicing_init(c);
    if (err)
        goto err_fini_tracker;
    client_set_view(c, config->view);
    if (!c->view) {
        err = err_prefix(PARAMO_E_MEMORY, "cannot take the first view");
        goto err_fini_slicing;
    }
    assert(numbers_floor(c) == numbers_next(c) && !requests_first(c));
    *client = c;
    return PARAMO_OK;
err_fini_slicing:
    slicing_fini(c);
err_fini_tracker:
    tracker_fini(&c->tracker);
err_free_client:
    free(all);
    return err;
}

void client_free(struct client *c)
{
    if (!c)
        return;
    requests_fini(c);
    chunk_fini(c);
    link_free_probes(c);
    carrying_fini(c);
    filtering_fini(c);
    bufpool_fini(&c->pool);
    slicing_fini(c);
    tracker_fini(&c->tracker);
    free(container_of(c, struct client_parts, client));
}
