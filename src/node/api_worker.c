#include "node/api_worker.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#include "env/process.h"
#include "node/clock.h"
#include "node/config.h"
#include "paramo/app.h"

paramo_err worker_check(const paramo_worker *worker)
{
    if (!worker)
        return err_set(PARAMO_E_INVALID, "worker is NULL");
    return node_check(worker->node);
}

static void worker_takes_view(void *target, struct view *view)
{
    client_set_view(target, view);
}

static void need_run(struct lane_task *task)
{
    paramo_worker *w = container_of(task, paramo_worker, need);
    assert(lane_held(w->node->control));
    assert(atomic_load(&w->need_posted));
    atomic_store(&w->need_posted, false);
    struct view *view = node_view(w->node);
    if (view)
        view_feed_offer(&w->feed, view);
    if (w->node->own->observer)
        observer_need(w->node->own->observer, atomic_load(&w->needed));
}

/* The scheduler sends a member each new view unasked: the client can only have missed views from before the worker was
 * opened. A node of readers asks for it. */
static void client_needs_view(void *arg, uint64_t number)
{
    paramo_worker *w = arg;
    atomic_store(&w->needed, number);
    if (!atomic_exchange(&w->need_posted, true))
        lane_post(w->node->control, &w->need);
}

static void nudge_run(struct lane_task *task)
{
    paramo_worker *w = container_of(task, paramo_worker, nudge);
    const struct member_slot *own = w->node->own;
    assert(lane_held(w->lane));
    assert(atomic_load(&w->nudge_posted));
    atomic_store(&w->nudge_posted, false);
    if (w->client && atomic_load(&own->state) == MEMBER_SLOT_ENDED && own->code == PARAMO_E_FENCED)
        client_fail(w->client, own->code, own->text);
    lane_notify(w->lane);
}

void worker_nudge(paramo_worker *w)
{
    if (!atomic_exchange(&w->nudge_posted, true))
        lane_post(w->lane, &w->nudge);
}

/* No server answers a fenced node. Without a scheduler, and after the job's end, servers may still answer
 * requests that nothing waits for. */
void worker_node_ended(paramo_worker *w)
{
    assert(lane_held(w->node->control) && w->client);
    if (w->node->own->code != PARAMO_E_FENCED)
        client_interrupt(w->client);
    worker_nudge(w);
}

static void callbacks_wait(void *arg)
{
    event_signal(atomic_load(&((paramo_worker *)arg)->event_fd));
}

struct enlist {
    paramo_worker *worker;
    paramo_err err;
};

struct glance {
    paramo_node *node;
    struct view *view; /* with a reference of ours */
};

static void glance_at_view(void *arg)
{
    struct glance *g = arg;
    assert(lane_held(g->node->control));
    assert(!g->view);
    g->view = view_ref(node_view(g->node));
}

static void enlist_worker(void *arg)
{
    struct enlist *e = arg;
    paramo_worker *w = e->worker;
    assert(lane_held(w->node->control));
    assert(w->client && !w->next);
    assert(w->session && !w->clock.waiting && !w->clock.calling);
    for (const paramo_worker *other = w->node->workers; other; other = other->next)
        if (other->app == w->app && other->customer == w->customer)
            e->err = PARAMO_E_INVALID;
    if (e->err)
        return;
    w->next = w->node->workers;
    w->node->workers = w;
    const struct member_slot *own = w->node->own;
    struct view *view = node_view(w->node);
    if (view)
        view_feed_offer(&w->feed, view);
    if (atomic_load(&own->state) == MEMBER_SLOT_ENDED && own->code)
        worker_node_ended(w); /* as for the workers that were open when it ended */
}

static void delist_worker(void *arg)
{
    paramo_worker *w = arg, **at = &w->node->workers;
    assert(lane_held(w->node->control));
    assert(w->client && w->session);
    while (*at != w) {
        assert(*at); /* it is in the list until it is closed */
        at = &(*at)->next;
    }
    *at = w->next;
}

static void nothing(void *arg)
{
    (void)arg;
}

static void close_clock(void *arg)
{
    clock_close(arg);
}

static void worker_free(paramo_worker *w)
{
    if (w->client) {
        filters_close(w);
        client_close(w->client);
        /* The client may have asked for a view until now. So the control lane runs that, and then our lane runs what
         * the control lane has posted, before the client is freed. The iterations of its clock have ended with it. */
        (void)!node_run_on(w->node->control, close_clock, w);
        (void)!node_run_on(w->lane, nothing, NULL);
        client_free(w->client);
    }
    node_lane_end(w->node, w->lane);
    view_feed_fini(&w->feed);
    for (paramo_table *t = atomic_load(&w->tables); t;) {
        paramo_table *next = t->next;
        free(t);
        t = next;
    }
    int fd = atomic_load(&w->event_fd);
    if (fd >= 0)
        event_close(fd);
    free(w);
}

paramo_err paramo_worker_open(paramo_node *node, uint32_t customer_id, paramo_worker **worker)
{
    paramo_err err = node_check(node);
    if (!err && !(node->config.roles & PARAMO_ROLE_WORKER))
        err = err_set(
            PARAMO_E_INVALID,
            "only a worker node can open a worker; any node can open a customer (paramo_customer_open)");
    return err ? err : paramo_customer_open(node, 0, customer_id, worker);
}

paramo_err customer_open(paramo_node *node, uint32_t app, uint32_t customer_id, bool reads,
                         paramo_worker **worker)
{
    paramo_err err = PARAMO_OK;
    if (!worker)
        return err_set(PARAMO_E_INVALID, "worker is NULL");
    if (app == PARAMO_ANY || customer_id == PARAMO_ANY)
        return err_set(PARAMO_E_INVALID, "app or customer is PARAMO_ANY, which names none; use a number");
    if (!node->joined)
        return err_set(PARAMO_E_CLOSED,
                       "the node has not joined a cluster; paramo_join or paramo_start comes first");
    if (!reads && node->own->observer)
        return err_set(PARAMO_E_INVALID, "a node of readers is no member of the job: it opens readers only");
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a worker cannot be opened in a callback or handler");
    paramo_worker *w = calloc(1, sizeof *w);
    if (!w)
        return err_memory(sizeof *w);
    w->node = node;
    w->app = app;
    w->customer = customer_id;
    w->session = env_random(node->env) | 1;
    w->reads = reads;
    w->need.run = need_run;
    w->nudge.run = nudge_run;
    atomic_store(&w->event_fd, -1);
    char name[24];
    (void)snprintf(name, sizeof name, "pm-worker%u", customer_id);
    err = lane_create(node->env, name, 0, &w->lane);
    if (err) {
        free(w);
        return err;
    }
    struct glance glance = {.node = node};
    err = node_run_on(node->control, glance_at_view, &glance);
    if (err) {
        worker_free(w);
        return err;
    }
    struct client_config config = {
        .lane = w->lane,
        .view = glance.view,
        .van = node->van,
        .node = reads ? 0 : node->id,
        .incarnation = node->own->incarnation,
        .app = app,
        .customer = customer_id,
        .scheduler = node->scheduler_address_used,
        .token = node->config.token ? node->config.token : "",
        .frame_bytes = node->config.max_message_bytes,
        .request_timeout_ms = node->config.request_timeout_ms,
        .connect_timeout_ms = 5000, /* arbitrary */
        .drop_percent = node->config.drop_percent,
        .retry_ms = node->config.retry_ms,
        .need_view = client_needs_view,
        .need_clock = clock_needed,
        .callbacks_pending = callbacks_wait,
        .arg = w,
    };
    err = config_filters(&node->config, config.filters);
    if (!err)
        err = client_create(&config, &w->client);
    view_unref(glance.view);
    if (err) {
        worker_free(w);
        return err;
    }
    assert(w->session && !atomic_load(&w->clock.session));
    assert(!atomic_load(&w->tables));
    view_feed_init(&w->feed, w->lane, worker_takes_view, w->client);
    struct enlist e = {.worker = w};
    err = node_run_on(node->control, enlist_worker, &e);
    if (!err && e.err)
        err = err_set(e.err, "customer %u of app %u is open already; close it first, or open another number",
                      customer_id, app);
    if (err) {
        char text[ERR_TEXT_MAX];
        err_text_copy(text);
        worker_free(w);
        return err_set(err, "%s", text);
    }
    *worker = w;
    return PARAMO_OK;
}

paramo_err paramo_customer_open(paramo_node *node, uint32_t app, uint32_t customer_id, paramo_worker **worker)
{
    paramo_err err = app_check(node, app);
    return err ? err : customer_open(node, app, customer_id, false, worker);
}

paramo_err paramo_reader_open(paramo_node *node, uint32_t customer, paramo_worker **reader)
{
    paramo_err err = app_check(node, 0);
    return err ? err : customer_open(node, 0, customer, true, reader);
}

void paramo_worker_close(paramo_worker *worker)
{
    if (worker_check(worker) || lane_inside())
        return;
    if (node_run_on(worker->node->control, delist_worker, worker))
        return;
    worker_free(worker);
}
