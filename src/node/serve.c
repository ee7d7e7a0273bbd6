/* The user's request handlers, of tables and of apps. A paramo_request is the shard's request and what the handler
 * sees of it; it lies in the shard's request, and ends with it when it is answered. A handler dispatch is between a
 * shard and the handlers; requests without a handler wait there. An app without a function has a queue, from which
 * the application's threads take. */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sm.h"
#include "node/node.h"
#include "node/serve.h"

struct paramo_request {
    struct shard_request *request;
    struct paramo_request *next; /* of a handler dispatch or queue */
    uint64_t deadline;           /* at a handler dispatch; 0: it has not waited yet */
    uint32_t for_customer;
    paramo_request_info info;
};

/* ---- states ---- */

static const struct sm handler_machine = {"handler",
                                          {[HANDLER_FREE] = {"free", SM_TO(HANDLER_OPEN)},
                                           [HANDLER_OPEN] = {"open", SM_TO(HANDLER_CLOSING)},
                                           [HANDLER_CLOSING] = {"closing", SM_TO(HANDLER_FREE)}}};

/* Any thread. False: it is not in the state `from`, perhaps because another thread was first. */
static bool handler_move(struct handler *h, enum handler_state from, enum handler_state to)
{
    int was = (int)from;
    sm_check(&handler_machine, from, to);
    return atomic_compare_exchange_strong(&h->state, &was, (int)to);
}

/* ---- finding a handler ---- */

static bool is_open(struct handler *h)
{
    return atomic_load_explicit(&h->state, memory_order_acquire) == HANDLER_OPEN;
}

static struct handler *find_app(paramo_node *node, uint32_t app, uint32_t customer)
{
    unsigned used = atomic_load_explicit(&node->handlers_used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++) {
        struct handler *h = &node->handlers[i];
        if (is_open(h) && h->app && h->id == app && h->customer == customer)
            return h;
    }
    return NULL;
}

static void handlers_hold(paramo_node *node)
{
    while (atomic_flag_test_and_set_explicit(&node->handlers_lock, memory_order_acquire))
        ;
}

static void handlers_release(paramo_node *node)
{
    atomic_flag_clear_explicit(&node->handlers_lock, memory_order_release);
}

/* An open app with one more taker. While it has takers its place is not reused, even when it is closed. NULL:
 * it is not served. close: closes it. */
static struct handler *hold_app(paramo_node *node, uint32_t app, uint32_t customer, bool close)
{
    handlers_hold(node);
    struct handler *h = find_app(node, app, customer);
    if (h && close && !handler_move(h, HANDLER_OPEN, HANDLER_CLOSING))
        h = NULL;
    if (h)
        atomic_fetch_add(&h->takers, 1);
    assert(!h || (h->app && atomic_load(&h->state) != HANDLER_FREE));
    handlers_release(node);
    return h;
}

/* A closed app's place is free when no thread takes from it any more. */
static void handler_release(paramo_node *node, struct handler *h)
{
    assert(h >= node->handlers && h < node->handlers + HANDLERS_MAX);
    handlers_hold(node);
    unsigned takers = atomic_fetch_sub(&h->takers, 1);
    assert(takers > 0 && atomic_load(&h->state) != HANDLER_FREE);
    if (takers == 1)
        (void)handler_move(h, HANDLER_CLOSING, HANDLER_FREE); /* or it is open */
    handlers_release(node);
}

static struct handler *find_table(paramo_node *node, const char *table)
{
    unsigned used = atomic_load_explicit(&node->handlers_used, memory_order_acquire);
    for (unsigned i = 0; i < used; i++) {
        struct handler *h = &node->handlers[i];
        if (is_open(h) && !h->app && strcmp(h->table, table) == 0)
            return h;
    }
    return NULL;
}

static struct handler *find_handler(paramo_node *node, const struct paramo_request *q)
{
    struct handler *h =
        q->info.table ? find_table(node, q->info.table) : find_app(node, q->info.app, q->for_customer);
    if (!h)
        h = q->info.table ? find_table(node, "") : find_app(node, q->info.app, PARAMO_ANY);
    return h;
}

/* ---- queues ---- */

static void queue_hold(struct handler *h)
{
    while (atomic_flag_test_and_set_explicit(&h->lock, memory_order_acquire))
        ;
}

static void queue_release(struct handler *h)
{
    atomic_flag_clear_explicit(&h->lock, memory_order_release);
}

static void queue_add(struct handler *h, struct paramo_request *q)
{
    q->next = NULL;
    queue_hold(h);
    assert(!h->first == !h->last);
    assert((!h->last || !h->last->next));
    if (h->last)
        h->last->next = q;
    else
        h->first = q;
    h->last = q;
    atomic_fetch_add(&h->queued, 1);
    queue_release(h);
}

static struct paramo_request *queue_next(struct handler *h)
{
    queue_hold(h);
    struct paramo_request *q = h->first;
    assert(!h->first == !h->last);
    if (q) {
        h->first = q->next;
        if (!h->first)
            h->last = NULL;
        size_t queued = atomic_fetch_sub(&h->queued, 1);
        assert(queued > 0 && (queued == 1) == !h->first);
        (void)queued;
    }
    queue_release(h);
    return q;
}

/* ---- handler dispatches ---- */

/* Requests without a handler, in order of arrival. */
static void dispatch_check(const struct dispatch *dispatch)
{
    assert(lane_held(dispatch->lane));
    assert(!dispatch->first == !dispatch->last && (!dispatch->last || !dispatch->last->next));
}

static void refuse(struct paramo_request *q, paramo_err status, const char *text)
{
    (void)!shard_answer_error(q->request, status, text); /* fails only for PARAMO_OK */
}

static void refuse_unserved(struct paramo_request *q)
{
    char text[ERR_TEXT_MAX];
    if (q->info.table) /* the sender adds the name of this node */
        (void)snprintf(text, sizeof text,
                       "no handler serves table %s; the application must set one (paramo_serve)",
                       q->info.table);
    else
        (void)snprintf(text, sizeof text, "app %u is not served", q->info.app);
    refuse(q, PARAMO_E_HANDLER, text);
}

static bool job_is_over(paramo_node *node)
{
    return atomic_load(&node->own->state) == MEMBER_SLOT_ENDED;
}

static void queue_refuse(struct handler *h, const char *why)
{
    for (struct paramo_request *q; (q = queue_next(h));)
        refuse(q, PARAMO_E_CLOSED, why);
}

static void dispatch_wait(struct dispatch *dispatch, struct paramo_request *q)
{
    assert(q->deadline); /* it has looked for its handler */
    if (!dispatch->expiry.slot && lane_timer_arm(dispatch->lane, &dispatch->expiry, q->deadline)) {
        refuse_unserved(q);
        return;
    }
    dispatch_check(dispatch);
    assert(dispatch->expiry.slot);
    q->next = NULL;
    if (dispatch->last)
        dispatch->last->next = q;
    else
        dispatch->first = q;
    dispatch->last = q;
    dispatch_check(dispatch);
}

static void dispatch_one(struct dispatch *dispatch, struct paramo_request *q)
{
    assert(lane_held(dispatch->lane));
    struct handler *h = find_handler(dispatch->node, q);
    if (h && h->fn) {
        h->fn(h->arg, q, &q->info);
    } else if (h) {
        queue_add(h, q);
        if (job_is_over(
                dispatch->node)) /* its threads have left, or are leaving: no thread takes later requests */
            queue_refuse(h, "the job is over");
        lane_notify(dispatch->lane);
    } else {
        uint64_t now = lane_now(dispatch->lane);
        if (!q->deadline)
            q->deadline = now + dispatch->node->config.handler_wait_ms * ENV_MS;
        if (q->deadline <= now)
            refuse_unserved(q);
        else
            dispatch_wait(dispatch, q);
    }
}

/* All deferred requests look for their handler again, in order of arrival. */
static void dispatch_again(struct dispatch *dispatch)
{
    struct paramo_request *q = dispatch->first;
    dispatch_check(dispatch);
    dispatch->first = dispatch->last = NULL;
    lane_timer_cancel(dispatch->lane, &dispatch->expiry);
    assert(!dispatch->expiry.slot);
    while (q) {
        struct paramo_request *next = q->next;
        dispatch_one(dispatch, q);
        q = next;
    }
}

static void dispatch_expire(struct lane_timer *timer)
{
    dispatch_again(container_of(timer, struct dispatch, expiry));
}

static void dispatch_retry(struct lane_task *task)
{
    struct dispatch *dispatch = container_of(task, struct dispatch, retry);
    assert(atomic_load(&dispatch->retry_posted));
    dispatch_check(dispatch);
    atomic_store(&dispatch->retry_posted, false);
    dispatch_again(dispatch);
}

void dispatch_init(struct dispatch *dispatch, paramo_node *node, struct lane *lane)
{
    assert(node && lane && !dispatch->first && !dispatch->last);
    assert(!dispatch->expiry.slot && !atomic_load(&dispatch->retry_posted));
    dispatch->node = node;
    dispatch->lane = lane;
    dispatch->expiry.fire = dispatch_expire;
    dispatch->retry.run = dispatch_retry;
}

void dispatch_close(struct dispatch *dispatch)
{
    dispatch_check(dispatch);
    while (dispatch->first) {
        struct paramo_request *q = dispatch->first;
        dispatch->first = q->next;
        refuse(q, PARAMO_E_CLOSED, "the node is leaving");
    }
    assert(!dispatch->first);
    dispatch->last = NULL;
    lane_timer_cancel(dispatch->lane, &dispatch->expiry);
    assert(lane_held(dispatch->lane) && !dispatch->first);
}

size_t dispatch_room(void)
{
    return sizeof(struct paramo_request);
}

void dispatch_request(void *arg, struct shard_request *request, const struct shard_request_info *info)
{
    struct dispatch *dispatch = arg;
    dispatch_check(dispatch);
    struct paramo_request *q = shard_request_room(request);
    *q = (struct paramo_request){
        .request = request,
        .for_customer = info->for_customer,
        .info =
            {
                .size = sizeof q->info,
                .table = info->table,
                .sender = info->sender,
                .customer = info->customer,
                .ts = info->ts,
                .cmd = info->cmd,
                .push = info->push,
                .pull = info->pull,
                .keys = info->keys,
                .n = info->n,
                .vals = info->vals,
                .vals_len = info->vals_len,
                .lens = info->lens,
                .app = info->app,
                .to = info->to,
                .flags = info->flags,
            },
    };
    for (unsigned i = 0; i < PARAMO_SEGS; i++)
        q->info.seg[i] = (paramo_bytes){.data = info->seg[i].data, .len = (size_t)info->seg[i].len};
    if (dispatch->first)
        dispatch_again(dispatch); /* earlier requests go first */
    dispatch_one(dispatch, q);
}

/* ---- serving ---- */

static void dispatch_kick(struct node_shard *s)
{
    if (s->shard && !atomic_exchange(&s->dispatch.retry_posted, true))
        lane_post(s->lane, &s->dispatch.retry);
}

static void kick_all(void *arg)
{
    paramo_node *node = arg;
    assert(lane_held(node->control));
    for (unsigned i = 0; i < node->member_slots_count; i++) {
        for (unsigned k = 0; k < node->member_slots[i].shards_count; k++)
            dispatch_kick(&node->member_slots[i].shards[k]);
        dispatch_kick(&node->member_slots[i].app_endpoint);
    }
    dispatch_kick(&node->scheduler_app_endpoint);
}

static bool same(const struct handler *a, const struct handler *b)
{
    return a->app == b->app &&
           (a->app ? a->id == b->id && a->customer == b->customer : strcmp(a->table, b->table) == 0);
}

static paramo_err serve(paramo_node *node, const struct handler *wanted)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a handler cannot be set in a callback or handler");
    struct handler *place = NULL;
    bool there = false;
    handlers_hold(node);
    for (unsigned i = 0; i < HANDLERS_MAX; i++) {
        struct handler *h = &node->handlers[i];
        there |= is_open(h) && same(h, wanted);
        if (!place && atomic_load(&h->state) == HANDLER_FREE)
            place = h;
    }
    if (place && !there) {
        assert(!place->first && !atomic_load(&place->takers)); /* no thread uses it any more */
        assert(!atomic_load(&place->queued) && !place->last);
        place->app = wanted->app;
        memcpy(place->table, wanted->table, sizeof place->table);
        place->id = wanted->id;
        place->customer = wanted->customer;
        place->fn = wanted->fn;
        place->arg = wanted->arg;
        bool opens = handler_move(place, HANDLER_FREE, HANDLER_OPEN);
        assert(opens); /* under the lock */
        (void)opens;
        unsigned used = (unsigned)(place - node->handlers) + 1;
        if (used > atomic_load(&node->handlers_used))
            atomic_store(&node->handlers_used, used);
    }
    handlers_release(node);
    if (there)
        return wanted->app ? err_set(PARAMO_E_INVALID, "app %" PRIu32 " is served already; close it first",
                                     wanted->id)
                           : err_set(PARAMO_E_INVALID, "requests to %s%s are served already",
                                     *wanted->table ? "table " : "tables", wanted->table);
    if (!place)
        return err_set(PARAMO_E_TOO_LARGE, "a node has at most %d handlers", HANDLERS_MAX - 1);
    return node_run_on(node->control, kick_all, node);
}

paramo_err paramo_serve(paramo_node *node, const char *table, paramo_handler handler, void *arg)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (!handler)
        return err_set(PARAMO_E_INVALID, "handler is NULL");
    if (table && (!*table || strlen(table) >= VIEW_NAME_MAX))
        return err_set(PARAMO_E_INVALID, "a table's name has 1 to %d bytes", VIEW_NAME_MAX - 1);
    struct handler wanted = {.fn = handler, .arg = arg};
    (void)snprintf(wanted.table, sizeof wanted.table, "%s", table ? table : "");
    return serve(node, &wanted);
}

paramo_err serve_app(paramo_node *node, uint32_t app, paramo_handler handler, void *arg)
{
    struct handler wanted = {.app = true, .id = app, .customer = PARAMO_ANY, .fn = handler, .arg = arg};
    return serve(node, &wanted);
}

paramo_err paramo_app_serve(paramo_node *node, uint32_t app, uint32_t customer, paramo_handler handler,
                            void *arg)
{
    paramo_err err = app_check(node, app);
    if (err)
        return err;
    struct handler wanted = {.app = true, .id = app, .customer = customer, .fn = handler, .arg = arg};
    return serve(node, &wanted);
}

static void nothing(void *arg)
{
    (void)arg;
}

paramo_err paramo_app_close(paramo_node *node, uint32_t app, uint32_t customer)
{
    paramo_err err = app_check(node, app);
    if (err)
        return err;
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "an app cannot be closed in a callback or handler");
    struct handler *h = hold_app(node, app, customer, true);
    if (!h)
        return err_set(PARAMO_E_NOT_FOUND, "app %u is not served", app);
    assert(h->app && atomic_load(&h->takers) > 0);
    err = node_run_on(node->apps, nothing, NULL); /* no step that saw it open is running any more */
    serve_nudge(node);
    queue_refuse(h, "the app was closed");
    handler_release(node, h);
    return err;
}

void serve_close_all(paramo_node *node)
{
    for (unsigned i = 0; i < HANDLERS_MAX; i++) {
        struct handler *h = &node->handlers[i];
        if (h->app && handler_move(h, HANDLER_OPEN, HANDLER_CLOSING)) {
            (void)!node_run_on(node->apps, nothing, NULL);
            queue_refuse(h, "the app was closed");
        }
    }
    serve_nudge(node);
}

static void apps_nudge(struct lane_task *task)
{
    paramo_node *node = container_of(task, paramo_node, apps_nudge);
    atomic_store(&node->apps_nudge_posted, false);
    lane_notify(node->apps);
}

void serve_init(paramo_node *node)
{
    assert(!node->apps_nudge.run);
    node->apps_nudge.run = apps_nudge;
}

void serve_nudge(paramo_node *node)
{
    if (node->apps && !atomic_exchange(&node->apps_nudge_posted, true))
        lane_post(node->apps, &node->apps_nudge);
}

/* ---- taking ---- */

struct taker {
    paramo_node *node;
    struct handler *handler;
};

static bool next_ready(void *arg)
{
    const struct taker *t = arg;
    return atomic_load(&t->handler->queued) || !is_open(t->handler) || atomic_load(&t->node->interrupted) ||
           job_is_over(t->node);
}

static paramo_err wait_next(struct taker *t, uint64_t deadline, struct paramo_request **q)
{
    while (!(*q = queue_next(t->handler))) {
        if (!is_open(t->handler))
            return err_set(PARAMO_E_CLOSED, "app %" PRIu32 " was closed", t->handler->id);
        if (atomic_load(&t->node->interrupted))
            return err_set(PARAMO_E_CLOSED, "interrupted while waiting for a request (paramo_interrupt)");
        if (job_is_over(t->node))
            return err_set(PARAMO_E_CLOSED, "the job is over: no more requests come");
        paramo_err err = lane_wait(t->node->apps, next_ready, t, deadline);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

paramo_err paramo_app_take(paramo_node *node, uint32_t app, uint32_t customer, uint32_t timeout_ms,
                           paramo_request **request, const paramo_request_info **info)
{
    paramo_err err = app_check(node, app);
    if (err)
        return err;
    if (!request || !info)
        return err_set(PARAMO_E_INVALID, "request or info is NULL");
    if (lane_inside()) {
        lane_unborrow(); /* ps::internal uses this to ask where it runs, and then another thread may wait */
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot wait for requests");
    }
    struct handler *h = hold_app(node, app, customer, false);
    if (!h)
        return err_set(PARAMO_E_CLOSED, "app %u is not served", app);
    if (is_open(h) && h->fn)
        err = err_set(PARAMO_E_INVALID, "app %u has a handler: there is nothing to take", app);
    struct taker t = {.node = node, .handler = h};
    uint64_t deadline = timeout_ms ? env_now(node->env) + timeout_ms * ENV_MS : UINT64_MAX;
    if (!err)
        err = wait_next(&t, deadline, request);
    if (!err)
        *info = &(*request)->info;
    lane_returns(err ? NULL : node->apps); /* its answers leave together, when it takes again */
    handler_release(node, h);
    return err;
}

/* ---- answers ---- */

paramo_err paramo_answer(paramo_request *request, const void *vals, size_t vals_len, const uint32_t *lens)
{
    if (!request || (!vals && vals_len))
        return err_set(PARAMO_E_INVALID, "request or vals is NULL");
    return shard_answer(request->request, vals, vals_len, lens);
}

static paramo_err answer_segs(paramo_request *request, const struct van_seg seg[VAN_SEGS],
                              paramo_array *const array[PARAMO_SEGS])
{
    return shard_answer_segs(request->request, seg, array);
}

paramo_err paramo_answer_body(paramo_request *request, const void *body, size_t len)
{
    if (!request || (!body && len))
        return err_set(PARAMO_E_INVALID, "request or body is NULL");
    static paramo_array *const none[PARAMO_SEGS];
    struct van_seg seg[VAN_SEGS] = {{0}};
    seg[PARAMO_SEG_BODY] = (struct van_seg){.data = (void *)(uintptr_t)body, .len = len};
    return answer_segs(request, seg, none);
}

paramo_err paramo_answer_arrays(paramo_request *request, paramo_array *const seg[PARAMO_SEGS])
{
    if (!request || !seg)
        return err_set(PARAMO_E_INVALID, "request or seg is NULL");
    static const struct van_seg none[VAN_SEGS];
    return answer_segs(request, none, seg);
}

paramo_err paramo_answer_error(paramo_request *request, paramo_err status, const char *message)
{
    if (!request || status == PARAMO_OK)
        return err_set(PARAMO_E_INVALID, "request is NULL, or status is not an error");
    return shard_answer_error(request->request, status, message ? message : err_sentence(status));
}

paramo_err paramo_request_keep(paramo_request *request, unsigned i, paramo_array **array)
{
    if (!request || !array || i >= PARAMO_SEGS)
        return err_set(PARAMO_E_INVALID, "request or array is NULL, or there is no segment %u", i);
    return shard_request_keep(request->request, i, array);
}
