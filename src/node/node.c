#include "node/node.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "env/process.h"
#include "post/store_dir.h"
#include "post/store_etcd.h"

/* ---- errands: from any thread to a lane and back
 * ---------------------------------------------------------------------- */

struct errand {
    struct lane_task task;
    struct lane *lane;
    void (*fn)(void *arg);
    void *arg;
    atomic_bool done;
};

static void errand_run(struct lane_task *task)
{
    struct errand *errand = container_of(task, struct errand, task);
    errand->fn(errand->arg);
    lane_notify(errand->lane);
    atomic_store(&errand->done, true); /* last: the waiter's stack may go */
}

static bool errand_done(void *arg)
{
    return atomic_load(&((struct errand *)arg)->done);
}

paramo_err node_run_on(struct lane *lane, void (*fn)(void *arg), void *arg)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "this cannot be done in a callback or handler");
    struct errand errand = {.task.run = errand_run, .lane = lane, .fn = fn, .arg = arg};
    lane_post(lane, &errand.task);
    return lane_wait(lane, errand_done, &errand, UINT64_MAX);
}

paramo_err node_check(const paramo_node *node)
{
    if (!node)
        return err_set(PARAMO_E_INVALID, "node is NULL");
    if (node->generation != process_generation())
        return err_set(PARAMO_E_FORKED, "the node belongs to the process that this one was forked from");
    return PARAMO_OK;
}

uint64_t node_deadline(const paramo_node *node, uint32_t ms)
{
    return env_now(node->env) + (ms ? ms : 60000) * ENV_MS;
}

/* ---- calls to the scheduler
 * ------------------------------------------------------------------------------------------------ */

static void call_finish(struct node_call *c, paramo_err status)
{
    c->status = status;
    if (status)
        err_text_copy(c->text);
    else if (c->taken)
        c->taken(c, c->arg);
    lane_notify(c->seat->node->control);
    atomic_store(&c->done, true);
}

static void call_done(struct member_call *call, paramo_err status)
{
    call_finish(call->arg, status);
}

static void call_begin(struct lane_task *task)
{
    struct node_call *c = container_of(task, struct node_call, task);
    c->call.done = call_done;
    c->call.arg = c;
    paramo_err err = c->seat->member ? c->begin(c, c->seat->member, c->arg)
                                     : err_set(PARAMO_E_CLOSED, "the node has not joined a cluster");
    if (err)
        call_finish(c, err);
}

static void call_cancel(struct lane_task *task)
{
    struct node_call *c = container_of(task, struct node_call, cancel);
    if (!atomic_load(&c->done))
        member_cancel(c->seat->member, &c->call);
    /* The waiter waits for this task to have run, not only for done. */
    lane_notify(c->seat->node->control);
}

static bool call_is_done(void *arg)
{
    return atomic_load(&((struct node_call *)arg)->done);
}

static bool call_is_done_or_interrupted(void *arg)
{
    struct node_call *c = arg;
    return atomic_load(&c->done) || atomic_load(&c->seat->node->interrupted);
}

static void nothing(void *arg)
{
    (void)arg;
}

paramo_err node_call(struct seat *seat, paramo_err (*begin)(struct node_call *c, struct member *m, void *arg),
                     void (*taken)(struct node_call *c, void *arg), void *arg)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "this cannot be done in a callback or handler");
    struct lane *control = seat->node->control;
    struct node_call c = {.task.run = call_begin,
                          .cancel.run = call_cancel,
                          .seat = seat,
                          .begin = begin,
                          .taken = taken,
                          .arg = arg};
    lane_post(control, &c.task);
    paramo_err err = lane_wait(control, call_is_done_or_interrupted, &c, UINT64_MAX);
    if (!err && !atomic_load(&c.done)) {
        lane_post(control, &c.cancel);
        err = lane_wait(control, call_is_done, &c, UINT64_MAX);
        if (!err)
            err = node_run_on(control, nothing, NULL); /* the cancel task has run, too */
        if (!err)
            err = err_set(PARAMO_E_CLOSED, "interrupted");
        return err;
    }
    if (!err && c.status)
        err = err_set(c.status, "%s", c.text);
    return err;
}

/* ---- interrupt
 * --------------------------------------------------------------------------------------------------------------
 */

static void interrupt_ready(struct lane_source *source, uint32_t events)
{
    (void)events;
    paramo_node *node = container_of(source, paramo_node, interrupt);
    event_drain(node->interrupt_fd);
    for (paramo_worker *w = node->workers; w; w = w->next) {
        client_interrupt(w->client);
        if (!atomic_exchange(&w->nudge_posted, true))
            lane_post(w->lane, &w->nudge);
    }
    serve_nudge(node);
    lane_notify(node->control);
}

void paramo_drain(paramo_node *node)
{
    if (node)
        atomic_store(&node->draining, true);
    paramo_interrupt(node);
}

void paramo_interrupt(paramo_node *node)
{
    if (!node)
        return;
    atomic_store(&node->interrupted, true);
    event_signal(node->interrupt_fd);
}

/* ---- create
 * ------------------------------------------------------------------------------------------------------------------
 */

struct last_words {
    struct van *van;
    struct lane *lane;
};

static bool all_said(void *arg)
{
    const struct last_words *w = arg;
    return van_flushing(w->van, w->lane) == 0;
}

static void give_up(void *arg)
{
    const struct last_words *w = arg;
    van_abandon(w->van, w->lane);
}

void node_lane_end(paramo_node *node, struct lane *lane)
{
    if (!lane)
        return;
    struct last_words w = {node->van, lane};
    if (node->van) {
        (void)!lane_wait(lane, all_said, &w, env_now(node->env) + ENV_SEC);
        (void)!node_run_on(lane, give_up, &w);
    }
    lane_destroy(lane);
}

static void node_free(paramo_node *node)
{
    chores_destroy(node->chores); /* before the lanes that their ends go to */
    for (unsigned i = 0; i < node->seats_count; i++) {
        struct seat *seat = &node->seats[i];
        for (unsigned k = 0; k < seat->shards_count; k++) {
            node_lane_end(node, seat->shards[k].lane);
            view_feed_fini(&seat->shards[k].feed);
        }
        free(seat->shards);
    }
    node_lane_end(node, node->apps);
    for (unsigned i = 0; i < node->seats_count; i++)
        view_feed_fini(&node->seats[i].host.feed);
    view_feed_fini(&node->scheduler_host.feed);
    chores_destroy(node->files); /* before the lane that their ends go to */
    node_lane_end(node, node->control);
    if (node->van)
        van_destroy(node->van);
    if (node->interrupt_fd >= 0)
        event_close(node->interrupt_fd);
    free(node->seats);
    free(node->ranges);
    config_free(&node->config);
    free(node);
}

static uint64_t random_nonzero(struct env *env)
{
    uint64_t random;
    do {
        random = env_random(env);
    } while (!random);
    return random;
}

static paramo_err seat_prepare(paramo_node *node, struct seat *seat, uint32_t role, int32_t rank)
{
    *seat = (struct seat){.node = node, .role = role, .rank = rank, .incarnation = random_nonzero(node->env)};
    if (role != PARAMO_ROLE_SERVER)
        return PARAMO_OK;
    unsigned n = node->config.shards;
    seat->shards = calloc(n, sizeof *seat->shards);
    if (!seat->shards)
        return err_memory(n * sizeof *seat->shards);
    seat->shards_count = n;
    /* Embedded shards are run by whoever posts to them; their own threads would only be in the way. */
    unsigned flags = node->config.roles == PARAMO_ROLE_ALL ? LANE_NO_SPIN : 0;
    for (unsigned i = 0; i < n; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "pm-shard%u", i);
        paramo_err err = lane_create(node->env, name, flags, &seat->shards[i].lane);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

/* auto is ucx where the library is there; which connections use it, the van decides. */
static paramo_err node_van(paramo_node *node)
{
    const char *name = node->config.van ? node->config.van : "auto";
    if (strcmp(name, "tcp") == 0)
        return van_tcp_create(node->env, &node->van);
    struct van_ucx_config config = {.required = strcmp(name, "ucx") == 0,
                                    .trusted_fabric = node->config.trusted_fabric != 0};
    paramo_err err = van_ucx_create(node->env, &config, &node->van);
    if (err != PARAMO_E_UNSUPPORTED || config.required)
        return err;
    log_info("van: tcp: %s", err_text());
    return van_tcp_create(node->env, &node->van);
}

static void apps_nudge(struct lane_task *task)
{
    paramo_node *node = container_of(task, paramo_node, apps_nudge);
    atomic_store(&node->apps_nudge_posted, false);
    lane_notify(node->apps);
}

static bool keeps_state(const paramo_node *node)
{
    return node->config.state || node->config.meta;
}

static paramo_err node_prepare(paramo_node *node)
{
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    paramo_err err = event_create(&node->interrupt_fd);
    if (!err)
        err = lane_create(node->env, "pm-control", LANE_NO_BORROW | LANE_NO_SPIN, &node->control);
    if (!err) /* a server's apps are as busy as its tables */
        err = lane_create(node->env, "pm-apps", node->config.roles == PARAMO_ROLE_SERVER ? 0 : LANE_NO_SPIN,
                          &node->apps);
    if (!err && node->config.roles != PARAMO_ROLE_WORKER)
        err = chores_create(node->env, "pm-files", &node->chores);
    node->apps_nudge.run = apps_nudge;
    if (!err && keeps_state(node))
        err = chores_create(node->env, "pm-state", &node->files);
    if (!err)
        err = embedded ? van_inproc_create(node->env, &node->van) : node_van(node);
    if (err)
        return err;
    unsigned seats = embedded ? node->config.num_servers + 1 : 1;
    node->seats = calloc(seats, sizeof *node->seats);
    if (!node->seats)
        return err_memory(seats * sizeof *node->seats);
    for (unsigned i = 0; i < seats && !err; i++) {
        uint32_t role = !embedded       ? node->config.roles
                        : i + 1 < seats ? PARAMO_ROLE_SERVER
                                        : PARAMO_ROLE_WORKER;
        int32_t rank = !embedded ? node->config.rank : i + 1 < seats ? (int32_t)i : 0;
        node->seats_count = i + 1; /* node_free frees what a failed seat holds */
        err = seat_prepare(node, &node->seats[i], role, rank);
    }
    if (!err)
        node->own = &node->seats[seats - 1];
    return err;
}

paramo_err paramo_create(const paramo_config *config, paramo_node **node)
{
    if (!config || !node)
        return err_set(PARAMO_E_INVALID, "config or node is NULL");
    paramo_node *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->generation = process_generation();
    made->env = env_real();
    made->interrupt_fd = -1;
    paramo_err err = config_copy(config, &made->config);
    if (!err)
        err = config_check(&made->config);
    if (!err)
        err = node_prepare(made);
    if (err) {
        node_free(made);
        return err;
    }
    *node = made;
    return PARAMO_OK;
}

/* ---- join
 * --------------------------------------------------------------------------------------------------------------------
 */

struct joining {
    paramo_node *node;
    paramo_err err;
    char text[ERR_TEXT_MAX];
    atomic_bool begun; /* seats are dialling, or err says why not */
};

static void scheduler_over(void *arg, paramo_err status, const char *text)
{
    paramo_node *node = arg;
    node->over_code = status;
    (void)snprintf(node->over_text, sizeof node->over_text, "%s", text ? text : "");
    atomic_store(&node->over, true);
    lane_notify(node->control);
}

/* A connection to the scheduler's apps. */
static void scheduler_accept(void *arg, struct van_conn *conn, const struct hello *hello)
{
    paramo_node *node = arg;
    struct seat_shard *host = node->scheduler_host.shard ? &node->scheduler_host : &node->own->host;
    seat_take(hello->shard == HELLO_HOST ? host : NULL, conn, hello);
}

/* What this process itself dials, where the scheduler listens on all addresses. */
static void scheduler_dialled(paramo_node *node, const char *address)
{
    char host[VIEW_HOST_MAX];
    uint16_t port;
    (void)snprintf(node->scheduler_dial, sizeof node->scheduler_dial, "%s", address);
    if (address_split(address, host, sizeof host, &port) == PARAMO_OK && config_host_is_any(host))
        address_join(strcmp(host, "::") == 0 ? "::1" : "127.0.0.1", port, node->scheduler_dial);
}

static paramo_err place_of_files(const char *dir, char path[FS_PATH_MAX])
{
    return dir && *dir ? process_path(dir, path, FS_PATH_MAX) : PARAMO_OK;
}

static paramo_err join_scheduler(paramo_node *node, const struct store_state *found)
{
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    const char *address = embedded ? "scheduler:1" : node->place.listen;
    struct scheduler_config config = {
        .van = node->van,
        .lane = node->control,
        .address = address,
        .token = node->config.token ? node->config.token : "",
        .num_servers = node->config.num_servers,
        .num_workers = embedded ? 1 : node->config.num_workers,
        .replicas = node->config.replicas,
        .own_member = !embedded,
        .heartbeat_ms = node->config.heartbeat_ms,
        .heartbeat_timeout_ms = node->config.heartbeat_timeout_ms,
        .store = node->store,
        .found = found,
        .fs = fs_real(),
        .chores = node->chores,
        .unix_time = process_unix_time,
        .checkpoint_every_ms = node->config.checkpoint_every_s * 1000,
        .arg = node,
        .accept_data = scheduler_accept,
        .over = scheduler_over,
    };
    paramo_err err = place_of_files(node->config.checkpoint_dir, config.checkpoint_dir);
    if (!err)
        err = place_of_files(node->config.restore_dir, config.restore_dir);
    if (!err)
        err = scheduler_create(&config, &node->scheduler);
    if (!err)
        node->store = NULL; /* the scheduler's */
    if (!err && embedded)
        err = seat_make_shard(node, &node->scheduler_host, node->apps, scheduler_incarnation(node->scheduler),
                              HELLO_HOST);
    return err;
}

/* found: what the store has; NULL without one. */
static void join_with(struct joining *j, const struct store_state *found)
{
    paramo_node *node = j->node;
    bool embedded = node->config.roles == PARAMO_ROLE_ALL;
    if (!j->err && (node->config.roles & PARAMO_ROLE_SCHEDULER)) {
        j->err = join_scheduler(node, found);
        if (!j->err)
            process_say(node->config.notify_fd, "listening\n");
    }
    const char *scheduler = node->scheduler ? scheduler_address(node->scheduler) : node->config.scheduler;
    for (unsigned i = 0; i < node->seats_count && !j->err; i++) {
        char listen[ADDRESS_MAX];
        (void)snprintf(listen, sizeof listen, "node:%u", i + 1);
        j->err = seat_open(&node->seats[i], scheduler, embedded ? listen : NULL);
    }
    if (j->err)
        err_text_copy(j->text);
    lane_notify(node->control);
    atomic_store(&j->begun, true); /* last: the waiter's stack may go */
}

static void store_started(void *arg, paramo_err status, const struct store_state *state)
{
    struct joining *j = arg;
    j->err = status;
    join_with(j, state);
}

static paramo_err store_open_etcd(paramo_node *node)
{
    struct store_etcd_config config = {.lane = node->control,
                                       .chores = node->files,
                                       .meta = node->config.meta,
                                       .name = node->place.listen,
                                       .patience_ms = node->config.connect_timeout_ms};
    paramo_err err = http_create(&config.http);
    if (!err)
        err = store_etcd_open(&config, &node->store);
    if (err)
        http_destroy(config.http);
    return err;
}

static paramo_err store_open(struct joining *j)
{
    paramo_node *node = j->node;
    struct store_dir_config config = {
        .lane = node->control, .chores = node->files, .fs = fs_real(), .dir = node->config.state};
    paramo_err err = node->config.meta ? store_open_etcd(node) : store_dir_open(&config, &node->store);
    return err ? err : store_start(node->store, store_started, j);
}

static void join_on_control(void *arg)
{
    struct joining *j = arg;
    paramo_node *node = j->node;
    node->interrupt =
        (struct lane_source){.fd = node->interrupt_fd, .events = EPOLLIN, .ready = interrupt_ready};
    j->err = lane_source_add(node->control, &node->interrupt);
    if (!j->err && keeps_state(node)) {
        j->err = store_open(j);
        if (!j->err)
            return;
    }
    join_with(j, NULL);
}

static bool join_begun(void *arg)
{
    const struct joining *j = arg;
    return atomic_load(&j->begun) || atomic_load(&j->node->interrupted);
}

/* A scheduler that stands by may do so for long: who waits for it has been interrupted. */
static void join_give_up(void *arg)
{
    struct joining *j = arg;
    if (atomic_load(&j->begun))
        return;
    store_close(j->node->store);
    j->node->store = NULL;
    j->err = err_set(PARAMO_E_CLOSED, "interrupted");
    err_text_copy(j->text);
}

/* All seats have joined, or one has failed. */
static bool joined_or_failed(void *arg)
{
    paramo_node *node = arg;
    if (atomic_load(&node->interrupted))
        return true;
    unsigned joined = 0;
    for (unsigned i = 0; i < node->seats_count; i++) {
        int state = atomic_load(&node->seats[i].state);
        if (state == SEAT_FAILED || state == SEAT_ENDED)
            return true;
        joined += state == SEAT_JOINED;
    }
    return joined == node->seats_count;
}

/* The ring as it was first dealt out: tables placed by range keep to it. */
static paramo_err learn_ranges(paramo_node *node, const struct view *view)
{
    struct ring *ring = malloc(sizeof *ring);
    uint32_t *weights = malloc((view->shards_count + 1) * sizeof *weights);
    node->ranges = calloc(view->num_servers + 1, sizeof *node->ranges);
    paramo_err err = ring && weights && node->ranges ? PARAMO_OK : err_memory(sizeof *ring);
    for (uint32_t i = 0; !err && i < view->shards_count; i++)
        weights[i] = view_node(view, view->shards[i].node)->weight;
    if (!err && view->shards_count)
        err = ring_assign(weights, view->shards_count, NULL, ring);
    for (unsigned a = 0; !err && view->shards_count && a < RING_ARCS; a++) {
        uint32_t rank = (view->shards[ring->owner[a]].node - PARAMO_ID_SERVER(0)) / 2;
        if (rank >= view->num_servers)
            continue;
        if (!node->ranges[rank].arcs++)
            node->ranges[rank].first_arc = a;
    }
    free(weights);
    free(ring);
    return err;
}

static void learn_self(void *arg)
{
    struct joining *j = arg;
    paramo_node *node = j->node;
    struct member *member = node->own->member;
    const struct view *view = member_view(member);
    scheduler_dialled(node, member_scheduler(member));
    node->id = member_id(member);
    node->rank = member_rank(member);
    node->recovered = member_recovered(member);
    node->num_servers = view->num_servers;
    node->num_workers = view->num_workers;
    j->err = learn_ranges(node, view);
    if (j->err)
        err_text_copy(j->text);
}

paramo_err paramo_join(paramo_node *node)
{
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (node->join_begun)
        return err_set(PARAMO_E_INVALID, "the node has joined already");
    node->join_begun = true;
    struct joining j = {.node = node};
    err = config_place(&node->config, &node->place);
    if (err)
        return err;
    err = node_run_on(node->control, join_on_control, &j);
    if (!err) /* bounded: by the disk, if anything; or a scheduler that stands by */
        err = lane_wait(node->control, join_begun, &j, UINT64_MAX);
    if (!err)
        err = node_run_on(node->control, join_give_up, &j);
    if (err)
        return err;
    if (j.err)
        return err_set(j.err, "%s", j.text);
    /* The members keep the deadline themselves and know who is missing; ours is only a net. */
    uint64_t deadline = env_now(node->env) + (node->config.connect_timeout_ms + 10000) * ENV_MS;
    err = lane_wait(node->control, joined_or_failed, node, deadline);
    if (err)
        return err;
    for (unsigned i = 0; i < node->seats_count; i++) {
        struct seat *seat = &node->seats[i];
        int state = atomic_load(&seat->state);
        if (state == SEAT_FAILED || (state == SEAT_ENDED && seat->code))
            return err_set(seat->code, "%s", seat->text);
    }
    if (atomic_load(&node->interrupted))
        return err_set(PARAMO_E_CLOSED, "interrupted");
    err = node_run_on(node->control, learn_self, &j);
    if (!err && j.err)
        err = err_set(j.err, "%s", j.text);
    if (!err)
        node->joined = true;
    if (node->scheduler && node->joined)
        process_say(node->config.notify_fd, "complete\n");
    return err;
}

paramo_err paramo_start(const paramo_config *config, paramo_node **node)
{
    paramo_node *made;
    paramo_err err = paramo_create(config, &made);
    if (err)
        return err;
    err = paramo_join(made);
    if (err) {
        char text[ERR_TEXT_MAX];
        err_text_copy(text);
        (void)paramo_stop(made);
        return err_set(err, "%s", text);
    }
    *node = made;
    return PARAMO_OK;
}

/* ---- stop
 * --------------------------------------------------------------------------------------------------------------------
 */

/* arg: how long, in ns. */
static paramo_err begin_leave(struct node_call *c, struct member *m, void *arg)
{
    return member_leave(m, &c->call, lane_now(c->seat->node->control) + *(const uint64_t *)arg);
}

static bool servers_ended(void *arg)
{
    paramo_node *node = arg;
    if (atomic_load(&node->interrupted))
        return true;
    for (unsigned i = 0; i < node->seats_count; i++)
        if (node->seats[i].role != PARAMO_ROLE_WORKER && atomic_load(&node->seats[i].state) != SEAT_ENDED)
            return false;
    return true;
}

static bool scheduler_is_over(void *arg)
{
    return atomic_load(&((paramo_node *)arg)->over);
}

static void end_scheduler(void *arg)
{
    scheduler_end(((paramo_node *)arg)->scheduler, PARAMO_E_SHUTDOWN, "the scheduler was interrupted");
}

/* It stops before the job was complete: those that have come are told why. */
static void end_gathering(void *arg)
{
    paramo_node *node = arg;
    if (node->scheduler && atomic_load(&node->own->state) == SEAT_FAILED)
        scheduler_end(node->scheduler, node->own->code, node->own->text);
    else if (node->scheduler)
        end_scheduler(node);
}

/* It never ran. A scheduler that keeps its state has to say there that the job is over. */
static void end_early(paramo_node *node)
{
    (void)!node_run_on(node->control, end_gathering, node);
    if (node->scheduler && keeps_state(node))
        (void)!lane_wait(node->control, scheduler_is_over, node, env_now(node->env) + 30 * ENV_SEC);
}

static void close_control(void *arg)
{
    paramo_node *node = arg;
    for (unsigned i = 0; i < node->seats_count; i++)
        seat_close_control(&node->seats[i]);
    scheduler_destroy(node->scheduler);
    node->scheduler = NULL;
    store_close(node->store);
    node->store = NULL;
    if (node->interrupt.ready)
        lane_source_remove(node->control, &node->interrupt);
}

static void close_shard(void *arg)
{
    struct seat_shard *s = arg;
    desk_close(&s->desk);
    shard_close(s->shard);
    s->shard = NULL;
}

static bool answers_said(void *arg)
{
    const paramo_node *node = arg;
    size_t unsent = node->scheduler_host.shard ? shard_unsent(node->scheduler_host.shard) : 0;
    for (unsigned i = 0; i < node->seats_count; i++)
        unsent += node->seats[i].host.shard ? shard_unsent(node->seats[i].host.shard) : 0;
    return unsent == 0;
}

/* What apps have answered leaves before the node does. */
static void say_answers(paramo_node *node)
{
    (void)!lane_wait(node->apps, answers_said, node, env_now(node->env) + ENV_SEC);
}

static paramo_err end_shard(struct seat_shard *s)
{
    return s->shard ? node_run_on(s->lane, close_shard, s) : PARAMO_OK;
}

enum { DRAIN_SECONDS = 60 };

static paramo_err begin_drain(struct node_call *c, struct member *m, void *arg)
{
    return member_drain(m, &c->call, lane_now(c->seat->node->control) + *(const uint64_t *)arg);
}

static bool seats_ended(void *arg)
{
    const paramo_node *node = arg;
    for (unsigned i = 0; i < node->seats_count; i++)
        if (atomic_load(&node->seats[i].state) != SEAT_ENDED)
            return false;
    return true;
}

/* What this server has goes to others; the scheduler ends it when that is done. */
static void drain(paramo_node *node)
{
    uint64_t patience = 10 * ENV_SEC;
    paramo_err err = node_call(node->own, begin_drain, NULL, &patience);
    if (!err)
        err = lane_wait(node->control, seats_ended, node, env_now(node->env) + DRAIN_SECONDS * ENV_SEC);
    if (err)
        log_warn("this server leaves with what it has: %s", err_text());
}

static void seat_leave(struct seat *seat, bool now)
{
    /* Goodbyes are a courtesy: without one the scheduler sees the connection end. */
    uint64_t patience = now ? ENV_SEC : 5 * ENV_SEC;
    paramo_err err = node_call(seat, begin_leave, NULL, &patience);
    if (err)
        log_info("leaving: %s", err_text());
}

/* Says goodbye in order: workers, then, when the job is over, servers and the scheduler's own member; then
 * the scheduler. */
static void leave_all(paramo_node *node, bool now)
{
    if (node->own->role == PARAMO_ROLE_WORKER)
        seat_leave(node->own, now);
    if (!now && lane_wait(node->control, servers_ended, node, UINT64_MAX))
        return;
    bool interrupted = atomic_exchange(&node->interrupted, false); /* the rest is bounded and must be done */
    if (interrupted && atomic_load(&node->draining) && node->config.roles == PARAMO_ROLE_SERVER)
        drain(node);
    if (interrupted && node->scheduler)
        (void)!node_run_on(node->control, end_scheduler, node);
    for (unsigned i = 0; i < node->seats_count; i++)
        if (node->seats[i].role != PARAMO_ROLE_WORKER)
            seat_leave(&node->seats[i], now);
    if (node->scheduler && !now)
        (void)!lane_wait(node->control, scheduler_is_over, node, env_now(node->env) + 30 * ENV_SEC);
}

static paramo_err stop(paramo_node *node, bool now)
{
    if (!node)
        return PARAMO_OK;
    paramo_err err = node_check(node);
    if (err)
        return err;
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "a node cannot be stopped in a callback or handler");
    while (node->workers) /* nobody else opens or closes one any more */
        paramo_worker_close(node->workers);
    if (now || node->own->role == PARAMO_ROLE_WORKER)
        serve_close_all(node); /* who waits for them is told before the node is gone */
    say_answers(node);
    if (node->joined)
        leave_all(node, now);
    else
        end_early(node);
    serve_close_all(node);
    say_answers(node);
    paramo_err code = PARAMO_OK;
    char text[ERR_TEXT_MAX] = "";
    if (node->joined && node->scheduler && atomic_load(&node->over)) {
        code = node->over_code;
        (void)snprintf(text, sizeof text, "%s", node->over_text);
    } else if (node->joined && atomic_load(&node->own->state) == SEAT_ENDED) {
        code = node->own->code;
        (void)snprintf(text, sizeof text, "%s", node->own->text);
    }
    err = node_run_on(node->control, close_control, node);
    for (unsigned i = 0; i < node->seats_count && !err; i++) {
        for (unsigned k = 0; k < node->seats[i].shards_count && !err; k++)
            err = end_shard(&node->seats[i].shards[k]);
        if (!err)
            err = end_shard(&node->seats[i].host);
    }
    if (!err)
        err = end_shard(&node->scheduler_host);
    if (err)
        return err;
    for (unsigned i = 0; i < atomic_load(&node->exits_count); i++)
        node->exits[i].fn(node->exits[i].arg);
    node_free(node);
    return code ? err_set(code, "%s", text) : PARAMO_OK;
}

paramo_err paramo_stop(paramo_node *node)
{
    return stop(node, false);
}

paramo_err paramo_stop_now(paramo_node *node)
{
    return stop(node, true);
}
