/* Workers, tables and their requests: the public functions over worker/client.h. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "env/process.h"
#include "node/api_worker.h"
#include "node/clock.h"
#include "node/config.h"
#include "node/node.h"
#include "node/task.h"
#include "paramo/app.h"
#include "table/table_options.h"
#include "wire/table_spec.h"

paramo_err worker_check(const paramo_worker *worker)
{
    if (!worker)
        return err_set(PARAMO_E_INVALID, "worker is NULL");
    return node_check(worker->node);
}

/* ---- open and close ----------------------------------------------------------------------------------- */

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
    g->view = view_ref(node_view(g->node));
}

static void enlist_worker(void *arg)
{
    struct enlist *e = arg;
    paramo_worker *w = e->worker;
    assert(lane_held(w->node->control));
    assert(w->client && !w->next);
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
        worker_node_ended(w); /* as those that were open then */
}

static void delist_worker(void *arg)
{
    paramo_worker *w = arg, **at = &w->node->workers;
    assert(lane_held(w->node->control));
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
        /* The client may have asked for a view until now: the control lane has run that, and our lane what
         * the control lane has posted, while there is a client. Its clock's iterations have ended with it. */
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
        return err_set(PARAMO_E_INVALID, "app or customer is PARAMO_ANY, which is not a number of one");
    if (!node->joined)
        return err_set(PARAMO_E_CLOSED, "the node has not joined a cluster");
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
        .connect_timeout_ms = 5000,
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
    view_feed_init(&w->feed, w->lane, worker_takes_view, w->client);
    struct enlist e = {.worker = w};
    err = node_run_on(node->control, enlist_worker, &e);
    if (!err && e.err)
        err = err_set(e.err, "customer %u of app %u is open already", customer_id, app);
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

/* ---- tables ------------------------------------------------------------------------------------------- */

void paramo_table_options_init(paramo_table_options *options)
{
    table_options_default(options);
}

struct open_args {
    const char *name;
    const paramo_table_options *options;
    uint64_t deadline;
    struct view_table found;
    bool known;
};

static paramo_err begin_table_open(struct node_call *c, struct member *m, void *arg)
{
    const struct open_args *a = arg;
    return member_table_open(m, &c->call, a->name, a->options, a->deadline);
}

static void table_taken(struct node_call *c, void *arg)
{
    struct open_args *a = arg;
    const struct view_table *t = view_table(member_view(c->member_slot->member), c->call.result.table);
    a->known = t != NULL;
    if (t)
        a->found = *t;
}

/* On a node that is no member the table is looked for in the view. If it is not there, the scheduler is asked for a newer view. */

struct table_wanted {
    paramo_node *node;
    struct open_args *args;
    uint64_t query; /* whose answer shows the table, if it exists */
};

static void table_look(void *arg)
{
    const struct table_wanted *w = arg;
    const struct view *view = node_view(w->node);
    const struct view_table *t = view ? view_table_named(view, w->args->name) : NULL;
    w->args->known = t != NULL;
    if (t)
        w->args->found = *t;
}

static void table_look_or_ask(void *arg)
{
    struct table_wanted *w = arg;
    table_look(w);
    if (!w->args->known)
        w->query = observer_ask(w->node->own->observer);
}

static bool table_told(void *arg)
{
    const struct table_wanted *w = arg;
    return observer_answered(w->node->own->observer) >= w->query || atomic_load(&w->node->interrupted) ||
           atomic_load(&w->node->own->state) == MEMBER_SLOT_ENDED;
}

static paramo_err table_observed(paramo_node *node, struct open_args *args)
{
    struct table_wanted w = {.node = node, .args = args};
    paramo_err err = node_run_on(node->control, table_look_or_ask, &w);
    if (!err && !args->known)
        err = lane_wait(node->control, table_told, &w, args->deadline);
    if (!err && !args->known)
        err = node_run_on(node->control, table_look, &w);
    if (err || args->known)
        return err;
    if (atomic_load(&node->own->state) == MEMBER_SLOT_ENDED)
        return err_set(node->own->code, "%s", node->own->text);
    if (atomic_load(&node->interrupted))
        return err_set(PARAMO_E_CLOSED,
                       "interrupted while waiting for the scheduler's answer (paramo_interrupt)");
    return err_set(PARAMO_E_NO_TABLE, "there is no table %s", args->name);
}

static paramo_table *find_table(paramo_worker *w, uint32_t id)
{
    for (paramo_table *t = atomic_load(&w->tables); t; t = t->next)
        if (t->spec.id == id)
            return t;
    return NULL;
}

paramo_table *table_by_name(const paramo_worker *w, const char *name)
{
    for (paramo_table *t = atomic_load(&w->tables); t; t = t->next)
        if (strcmp(t->spec.name, name) == 0 && atomic_load(&t->users))
            return t;
    return NULL;
}

paramo_err paramo_worker_namespace(paramo_worker *worker, const char *name)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (name &&
        (!*name || strlen(name) > VIEW_NAME_MAX - 3 || name[0] == '/' || name[strlen(name) - 1] == '/'))
        return err_set(PARAMO_E_INVALID,
                       "the namespace \"%s\" does not have 1 to %d bytes, or begins or ends with a slash",
                       name, VIEW_NAME_MAX - 3);
    (void)snprintf(worker->space, sizeof worker->space, "%s", name ? name : "");
    return PARAMO_OK;
}

paramo_err table_name(const paramo_worker *worker, const char *name, char full[VIEW_NAME_MAX])
{
    size_t at = strlen(worker->space), len = name ? strlen(name) : 0;
    if (at && len && name[0] == '/') {
        at = 0;
        name++, len--;
    }
    if (!len || at + (at > 0) + len >= VIEW_NAME_MAX)
        return err_set(PARAMO_E_INVALID, "a table's name, with its namespace, has 1 to %d bytes",
                       VIEW_NAME_MAX - 1);
    memcpy(full, worker->space, at);
    if (at)
        full[at++] = '/';
    memcpy(full + at, name, len + 1);
    return PARAMO_OK;
}

paramo_err paramo_table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                             paramo_table **table)
{
    char full[VIEW_NAME_MAX];
    paramo_err err = worker_check(worker);
    if (!err && !table)
        err = err_set(PARAMO_E_INVALID, "table is NULL");
    if (!err)
        err = table_name(worker, name, full);
    return err ? err : table_open(worker, full, options, table);
}

paramo_err table_open(paramo_worker *worker, const char *name, const paramo_table_options *options,
                      paramo_table **table)
{
    paramo_err err = PARAMO_OK;
    paramo_table_options whole;
    if (options) {
        table_options_default(&whole);
        options_complete(&whole, sizeof whole, options);
        whole.size = sizeof whole;
        err = table_options_check(&whole);
        if (err)
            return err_prefix(err, "table %s", name);
        whole.placement = table_options_placement(&whole);
    }
    bool creates = options && !worker->reads;
    struct open_args args = {
        .name = name, .options = creates ? &whole : NULL, .deadline = node_deadline(worker->node, 0)};
    err = worker->node->own->observer ? table_observed(worker->node, &args)
                                      : node_call(worker->node->own, begin_table_open, table_taken, &args);
    if (err)
        return err;
    if (!args.known)
        return err_set(PARAMO_E_INTERNAL, "table %s was opened but is in no view", name);
    if (options && !creates)
        err = table_spec_same(name, &args.found.options, &whole);
    if (err)
        return err;
    paramo_table *t = find_table(worker, args.found.id);
    if (t) {
        atomic_fetch_add(&t->users, 1);
        *table = t;
        return PARAMO_OK;
    }
    t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    t->worker = worker;
    t->options = args.found.options;
    client_table_init(&t->spec, &args.found);
    atomic_store(&t->users, 1);
    t->next = atomic_load(&worker->tables);
    while (!atomic_compare_exchange_weak(&worker->tables, &t->next, t)) {
    }
    *table = t;
    return PARAMO_OK;
}

void paramo_table_close(paramo_table *table)
{
    if (!table || worker_check(table->worker))
        return;
    unsigned users = atomic_load(&table->users);
    while (users && !atomic_compare_exchange_weak(&table->users, &users, users - 1)) {
    }
}

void paramo_table_info(const paramo_table *table, paramo_table_options *options)
{
    options_copy_out(options, &table->options, sizeof table->options);
}

uint32_t paramo_table_state_values(const paramo_table *table)
{
    return table->spec.state_values;
}

/* ---- requests ----------------------------------------------------------------------------------------- */

void paramo_kv_init(paramo_kv *kv)
{
    *kv = (paramo_kv){.size = sizeof *kv};
}

void paramo_request_options_init(paramo_request_options *options)
{
    *options = (paramo_request_options){.size = sizeof *options};
}

paramo_err table_check(const paramo_worker *worker, const paramo_table *table)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!table)
        return err_set(PARAMO_E_NO_TABLE, "table is NULL");
    if (table->worker != worker)
        return err_set(PARAMO_E_NO_TABLE, "table %s was opened by another worker", table->spec.name);
    if (!atomic_load_explicit(&table->users, memory_order_relaxed))
        return err_set(PARAMO_E_CLOSED, "table %s is closed", table->spec.name);
    return PARAMO_OK;
}

const paramo_request_options *request_options(const paramo_request_options *options,
                                              paramo_request_options *whole)
{
    if (!options || options->size >= sizeof *whole)
        return options;
    paramo_request_options_init(whole);
    options_complete(whole, sizeof *whole, options);
    whole->size = sizeof *whole;
    return whole;
}

static void count_age(const struct client_table *spec, uint64_t age)
{
    struct paramo_table *table = container_of(spec, struct paramo_table, spec);
    if (age != CLOCK_AGELESS)
        atomic_fetch_add_explicit(&table->ages[age < PARAMO_CLOCK_AGES ? age : PARAMO_CLOCK_AGES - 1], 1,
                                  memory_order_relaxed);
}

paramo_err paramo_table_clock_ages(const paramo_table *table, uint64_t ages[PARAMO_CLOCK_AGES])
{
    if (!table || !ages)
        return err_set(PARAMO_E_INVALID, "table or ages is NULL");
    for (unsigned i = 0; i < PARAMO_CLOCK_AGES; i++)
        ages[i] = atomic_load_explicit(&table->ages[i], memory_order_relaxed);
    return PARAMO_OK;
}

/* With call->options, which are whole. */
static paramo_err issue(paramo_worker *worker, struct client_call *call, uint64_t *ts)
{
    if (!ts && !(call->options && call->options->callback))
        return err_set(PARAMO_E_INVALID,
                       "ts is NULL and there is no callback: the end of the request would not be known");
    paramo_err err = PARAMO_OK;
    uint64_t given;
    if (call->options && call->options->at_clock)
        err = clock_demand_check(worker, call->options->at_clock);
    if (!err && call->table && call->table->options.aggregate)
        clock_of_call(worker, call);
    uint64_t age = clock_age(worker, call->options ? call->options->at_clock : 0);
    if (!err)
        err = client_issue(worker->client, call, ts ? ts : &given);
    if (!err && (call->kind == REQUEST_PULL || call->kind == REQUEST_PUSHPULL))
        count_age(call->table, age);
    return err;
}

paramo_err request_issue(paramo_worker *worker, struct client_call *call,
                         const paramo_request_options *options, uint64_t *ts)
{
    paramo_request_options whole, own;
    call->options = request_options(options, &whole);
    bool sub = call->options && call->options->task;
    paramo_err err = sub ? subtask_begin(call->options, &own) : PARAMO_OK;
    if (err)
        return err;
    if (sub)
        call->options = &own;
    err = issue(worker, call, ts);
    if (err && sub)
        subtask_drop(&own);
    call->options = NULL; /* they were those of this function */
    return err;
}

static paramo_err request(enum request_kind kind, paramo_worker *worker, paramo_table *table,
                          const paramo_kv *kv, const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!kv || kv->size < sizeof *kv)
        return err_set(PARAMO_E_INVALID, "kv is NULL, or its size was not set (paramo_kv_init)");
    struct client_call call = {.kind = kind, .table = &table->spec, .kv = kv};
    return request_issue(worker, &call, options, ts);
}

paramo_err paramo_push(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                       const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSH, worker, table, kv, options, ts);
}

paramo_err paramo_pull(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                       const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PULL, worker, table, kv, options, ts);
}

paramo_err paramo_pushpull(paramo_worker *worker, paramo_table *table, const paramo_kv *kv,
                           const paramo_request_options *options, uint64_t *ts)
{
    return request(REQUEST_PUSHPULL, worker, table, kv, options, ts);
}

/* A request that ended because the whole node did is told so. */
static paramo_err with_cause(const paramo_worker *worker, paramo_err err)
{
    const struct member_slot *own = worker->node->own;
    if (err == PARAMO_E_CLOSED && atomic_load(&own->state) == MEMBER_SLOT_ENDED && own->code)
        return err_set(own->code, "%s", own->text);
    return err;
}

paramo_err paramo_wait(paramo_worker *worker, uint64_t ts, uint32_t timeout_ms)
{
    paramo_err err = worker_check(worker);
    return err ? err : with_cause(worker, client_wait(worker->client, ts, timeout_ms));
}

paramo_err paramo_wait_all(paramo_worker *worker, uint32_t timeout_ms)
{
    paramo_err err = worker_check(worker);
    return err ? err : with_cause(worker, client_wait_all(worker->client, timeout_ms));
}

paramo_err paramo_test(paramo_worker *worker, uint64_t ts, int *done)
{
    paramo_err err = worker_check(worker);
    if (!err && !done)
        err = err_set(PARAMO_E_INVALID, "done is NULL");
    return err ? err : client_test(worker->client, ts, done);
}

paramo_err paramo_cancel(paramo_worker *worker, uint64_t ts)
{
    paramo_err err = worker_check(worker);
    return err ? err : client_cancel(worker->client, ts);
}

paramo_err paramo_worker_fd(paramo_worker *worker, int *fd)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!fd)
        return err_set(PARAMO_E_INVALID, "fd is NULL");
    int have = atomic_load(&worker->event_fd);
    if (have < 0) {
        int made;
        err = event_create(&made);
        if (err)
            return err;
        if (!atomic_compare_exchange_strong(&worker->event_fd, &have, made)) {
            event_close(made); /* another thread was first */
        } else {
            have = made;
            client_defer_callbacks(worker->client);
        }
    }
    *fd = have;
    return PARAMO_OK;
}

paramo_err paramo_worker_poll(paramo_worker *worker)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    int fd = atomic_load(&worker->event_fd);
    if (fd < 0)
        return err_set(PARAMO_E_INVALID, "paramo_worker_poll needs paramo_worker_fd first");
    event_drain(fd);
    client_run_callbacks(worker->client);
    return PARAMO_OK;
}

void paramo_worker_counters(paramo_worker *worker, paramo_counters *counters)
{
    struct client_counters c = {0};
    if (!worker_check(worker))
        client_get_counters(worker->client, &c);
    paramo_counters found = {
        .size = sizeof *counters,
        .bytes_sent = c.bytes_sent,
        .bytes_received = c.bytes_received,
        .frames_sent = c.frames_sent,
        .frames_received = c.frames_received,
        .requests = c.requests,
        .retries = c.retries,
        .moved = c.moved,
        .in_flight = c.in_flight,
    };
    options_copy_out(counters, &found, sizeof found);
}

/* ---- whole tables ------------------------------------------------------------------------------------- */

static paramo_err whole_request(paramo_worker *worker, struct client_call *call)
{
    if (lane_inside()) /* it could not wait, and the request would outlive what it was lent */
        return err_set(PARAMO_E_IN_CALLBACK, "a callback or handler cannot wait for a whole table");
    uint64_t ts;
    paramo_err err = client_issue(worker->client, call, &ts);
    if (err)
        return err;
    return with_cause(worker, client_wait(worker->client, ts, 0));
}

paramo_err paramo_table_stat(paramo_worker *worker, paramo_table *table, paramo_table_stats *stats)
{
    paramo_err err = table_check(worker, table);
    if (!err && !stats)
        err = err_set(PARAMO_E_INVALID, "stats is NULL");
    if (err)
        return err;
    struct client_stats found = {0};
    struct client_call call = {.kind = REQUEST_STAT, .table = &table->spec, .stats = &found};
    err = whole_request(worker, &call);
    if (err)
        return err;
    paramo_table_stats sum = {.rows = found.rows,
                              .nonzero = found.nonzero,
                              .bytes = found.bytes,
                              .pushes = found.pushes,
                              .pulls = found.pulls};
    options_copy_out(stats, &sum, sizeof sum);
    return PARAMO_OK;
}

paramo_err paramo_table_clear(paramo_worker *worker, paramo_table *table)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    struct client_call call = {.kind = REQUEST_CLEAR, .table = &table->spec};
    return whole_request(worker, &call);
}

paramo_err paramo_table_delete(paramo_worker *worker, paramo_table *table, const uint64_t *keys, size_t n)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    paramo_kv kv = {.size = sizeof kv, .keys = keys, .n = n};
    struct client_call call = {.kind = REQUEST_DELETE, .table = &table->spec, .kv = &kv};
    return whole_request(worker, &call);
}

paramo_err paramo_table_put(paramo_worker *worker, paramo_table *table, int with_state,
                            const paramo_rows *rows)
{
    paramo_err err = table_check(worker, table);
    if (err)
        return err;
    if (!rows || rows->size < sizeof *rows)
        return err_set(PARAMO_E_INVALID, "rows is NULL, or its size was not set");
    uint32_t row_values = table->spec.row_values + (with_state ? table->spec.state_values : 0);
    if (rows->row_values != (rows->lens ? 0 : row_values))
        return err_set(PARAMO_E_SIZE_MISMATCH, "rows of %u values given, table %s takes %u", rows->row_values,
                       table->spec.name, row_values);
    size_t vals_len = rows->n * row_values;
    if (rows->lens) {
        vals_len = 0;
        for (size_t i = 0; i < rows->n; i++)
            vals_len += rows->lens[i];
    }
    paramo_kv kv = {.size = sizeof kv,
                    .keys = rows->keys,
                    .n = rows->n,
                    .vals = (void *)(uintptr_t)rows->vals,
                    .vals_len = vals_len,
                    .lens = (uint32_t *)(uintptr_t)rows->lens};
    struct client_call call = {
        .kind = REQUEST_PUT, .table = &table->spec, .kv = &kv, .with_state = with_state != 0};
    return whole_request(worker, &call);
}
