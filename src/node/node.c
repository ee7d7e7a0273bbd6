#include "node/node.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#include "base/log.h"
#include "env/process.h"
#include "node/api_worker.h"
#include "node/config.h"
#include "node/member_slot.h"
#include "node/serve.h"
#include "wire/capability.h"

/* ---- errands: from any thread to a lane and back ------------------------------------------------------ */

struct lane_call {
    struct lane_task task;
    struct lane *lane;
    void (*fn)(void *arg);
    void *arg;
    atomic_bool done;
};

static void lane_call_run(struct lane_task *task)
{
    struct lane_call *lane_call = container_of(task, struct lane_call, task);
    lane_call->fn(lane_call->arg);
    lane_notify(lane_call->lane);
    atomic_store(&lane_call->done, true); /* last: the waiter's stack may go */
}

static bool lane_call_done(void *arg)
{
    return atomic_load(&((struct lane_call *)arg)->done);
}

paramo_err node_run_on(struct lane *lane, void (*fn)(void *arg), void *arg)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "this cannot be done in a callback or handler");
    struct lane_call lane_call = {.task.run = lane_call_run, .lane = lane, .fn = fn, .arg = arg};
    lane_post(lane, &lane_call.task);
    return lane_wait(lane, lane_call_done, &lane_call, UINT64_MAX);
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

/* ---- calls to the scheduler --------------------------------------------------------------------------- */

static void call_finish(struct node_call *c, paramo_err status)
{
    c->status = status;
    if (status)
        err_text_copy(c->text);
    else if (c->taken)
        c->taken(c, c->arg);
    lane_notify(c->member_slot->node->control);
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
    paramo_err err = c->member_slot->member ? c->begin(c, c->member_slot->member, c->arg)
                                            : err_set(PARAMO_E_CLOSED, "the node has not joined a cluster");
    if (err)
        call_finish(c, err);
}

static void call_cancel(struct lane_task *task)
{
    struct node_call *c = container_of(task, struct node_call, cancel);
    if (!atomic_load(&c->done))
        member_cancel(c->member_slot->member, &c->call);
    /* Waits until this task has run, not only until it is done. */
    lane_notify(c->member_slot->node->control);
}

static bool call_is_done(void *arg)
{
    return atomic_load(&((struct node_call *)arg)->done);
}

static bool call_is_done_or_interrupted(void *arg)
{
    struct node_call *c = arg;
    return atomic_load(&c->done) || atomic_load(&c->member_slot->node->interrupted);
}

static void nothing(void *arg)
{
    (void)arg;
}

paramo_err node_call(struct member_slot *member_slot,
                     paramo_err (*begin)(struct node_call *c, struct member *m, void *arg),
                     void (*taken)(struct node_call *c, void *arg), void *arg)
{
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "this cannot be done in a callback or handler");
    struct lane *control = member_slot->node->control;
    struct node_call c = {.task.run = call_begin,
                          .cancel.run = call_cancel,
                          .member_slot = member_slot,
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

/* ---- interrupt ---------------------------------------------------------------------------------------- */

static void interrupt_ready(struct lane_source *source, uint32_t events)
{
    (void)events;
    paramo_node *node = container_of(source, paramo_node, interrupt);
    event_drain(node->interrupt_fd);
    for (paramo_worker *w = node->workers; w; w = w->next) {
        client_interrupt(w->client);
        worker_nudge(w);
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

/* ---- create ------------------------------------------------------------------------------------------- */

struct last_words {
    struct van *van;
    struct lane *lane;
};

static bool all_sent(void *arg)
{
    const struct last_words *w = arg;
    return van_flushing(w->van, w->lane) == 0;
}

static void close_app(void *arg)
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
        (void)!lane_wait(lane, all_sent, &w, env_now(node->env) + ENV_SEC);
        (void)!node_run_on(lane, close_app, &w);
    }
    lane_destroy(lane);
}

void node_free(paramo_node *node)
{
    blocking_jobs_destroy(node->blocking_jobs); /* before the lanes to which their ends go */
    for (unsigned i = 0; i < node->member_slots_count; i++) {
        struct member_slot *member_slot = &node->member_slots[i];
        for (unsigned k = 0; k < member_slot->shards_count; k++) {
            node_lane_end(node, member_slot->shards[k].lane);
            view_feed_fini(&member_slot->shards[k].feed);
        }
        free(member_slot->shards);
    }
    node_lane_end(node, node->apps);
    for (unsigned i = 0; i < node->member_slots_count; i++)
        view_feed_fini(&node->member_slots[i].app_endpoint.feed);
    view_feed_fini(&node->scheduler_app_endpoint.feed);
    blocking_jobs_destroy(node->files); /* before the lane to which their ends go */
    node_lane_end(node, node->control);
    if (node->van)
        van_destroy(node->van);
    if (node->interrupt_fd >= 0)
        event_close(node->interrupt_fd);
    free(node->member_slots);
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

static paramo_err member_slot_prepare(paramo_node *node, struct member_slot *member_slot, uint32_t role,
                                      int32_t rank)
{
    *member_slot = (struct member_slot){
        .node = node, .role = role, .rank = rank, .incarnation = random_nonzero(node->env)};
    if (role != PARAMO_ROLE_SERVER)
        return PARAMO_OK;
    unsigned n = node->config.shards;
    member_slot->shards = calloc(n, sizeof *member_slot->shards);
    if (!member_slot->shards)
        return err_memory(n * sizeof *member_slot->shards);
    member_slot->shards_count = n;
    /* The threads that post to embedded shards run them; threads of their own would only be in the way. */
    unsigned flags = node->config.roles == PARAMO_ROLE_ALL ? LANE_NO_SPIN : 0;
    for (unsigned i = 0; i < n; i++) {
        char name[24];
        (void)snprintf(name, sizeof name, "pm-shard%u", i);
        paramo_err err = lane_create(node->env, name, flags, &member_slot->shards[i].lane);
        if (err)
            return err;
    }
    return PARAMO_OK;
}

/* auto is ucx where its library is installed; the van decides which connections use it. */
static paramo_err node_van(paramo_node *node)
{
    const char *name = node->config.van ? node->config.van : "auto";
    struct van_config config = {.trusted_fabric = node->config.trusted_fabric != 0};
    if (strcmp(name, "auto") != 0) {
        config.required = true;
        return van_create(node->env, name, &config, &node->van);
    }
    paramo_err err = van_ucx_create(node->env, &config, &node->van);
    if (err != PARAMO_E_UNSUPPORTED)
        return err;
    log_info("van: tcp: %s", err_text());
    return van_tcp_create(node->env, &config, &node->van);
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
        err = blocking_jobs_create(node->env, "pm-files", &node->blocking_jobs);
    node->apps_nudge.run = apps_nudge;
    node->fs = fs_real();
    if (!err && node_keeps_state(node))
        err = blocking_jobs_create(node->env, "pm-state", &node->files);
    if (!err)
        err = embedded ? van_inproc_create(node->env, &node->van) : node_van(node);
    if (err)
        return err;
    node->van->capabilities = CAPABILITIES;
    unsigned member_slots = embedded ? node->config.num_servers + 1 : 1;
    node->member_slots = calloc(member_slots, sizeof *node->member_slots);
    if (!node->member_slots)
        return err_memory(member_slots * sizeof *node->member_slots);
    for (unsigned i = 0; i < member_slots && !err; i++) {
        uint32_t role = !embedded              ? node->config.roles
                        : i + 1 < member_slots ? PARAMO_ROLE_SERVER
                                               : PARAMO_ROLE_WORKER;
        int32_t rank = !embedded ? node->config.rank : i + 1 < member_slots ? (int32_t)i : 0;
        node->member_slots_count = i + 1; /* node_free frees what a failed member slot holds */
        err = member_slot_prepare(node, &node->member_slots[i], role, rank);
    }
    if (!err)
        node->own = &node->member_slots[member_slots - 1];
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
