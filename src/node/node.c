#include "node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "env/process.h"

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

paramo_err node_watch_interrupts(paramo_node *node)
{
    node->interrupt =
        (struct lane_source){.fd = node->interrupt_fd, .events = EPOLLIN, .ready = interrupt_ready};
    return lane_source_add(node->control, &node->interrupt);
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

void node_free(paramo_node *node)
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
    node->fs = fs_real();
    if (!err && node_keeps_state(node))
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
