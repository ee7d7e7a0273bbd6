/* How a node ends: it drains if asked to, sends its goodbyes in order, closes its lanes and connections, and is
 * freed. */
#include <assert.h>
#include <stdio.h>

#include "base/log.h"
#include "node/create.h"
#include "node/member_slot.h"
#include "node/node.h"
#include "node/serve.h"
#include "node/tasks.h"

/* arg: how long, in ns. */
static paramo_err begin_leave(struct node_call *c, struct member *m, void *arg)
{
    return member_leave(m, &c->call, lane_now(c->member_slot->node->control) + *(const uint64_t *)arg);
}

static bool servers_ended(void *arg)
{
    paramo_node *node = arg;
    if (atomic_load(&node->interrupted))
        return true;
    for (unsigned i = 0; i < node->member_slots_count; i++)
        if (node->member_slots[i].role != PARAMO_ROLE_WORKER &&
            atomic_load(&node->member_slots[i].state) != MEMBER_SLOT_ENDED)
            return false;
    return true;
}

static bool scheduler_is_over(void *arg)
{
    return atomic_load(&((paramo_node *)arg)->over);
}

static void end_scheduler(void *arg)
{
    assert(lane_held(((paramo_node *)arg)->control) && ((paramo_node *)arg)->scheduler);
    scheduler_end(((paramo_node *)arg)->scheduler, PARAMO_E_SHUTDOWN, "the scheduler was interrupted");
}

/* The node stops before the job was complete: the scheduler tells the members that have registered why. */
static void end_gathering(void *arg)
{
    paramo_node *node = arg;
    assert(lane_held(node->control) && !node->joined);
    if (node->scheduler && atomic_load(&node->own->state) == MEMBER_SLOT_FAILED)
        scheduler_end(node->scheduler, node->own->code, node->own->text);
    else if (node->scheduler)
        end_scheduler(node);
}

/* The job never ran. A scheduler that keeps its state must record there that the job is over. */
static void end_early(paramo_node *node)
{
    (void)!node_run_on(node->control, end_gathering, node);
    if (node->scheduler && node_keeps_state(node))
        (void)!lane_wait(node->control, scheduler_is_over, node, env_now(node->env) + 30 * ENV_SEC);
}

static void close_control(void *arg)
{
    paramo_node *node = arg;
    assert(lane_held(node->control));
    assert(!node->workers);
    for (unsigned i = 0; i < node->member_slots_count; i++)
        member_slot_close_control(&node->member_slots[i]);
    for (unsigned i = 0; i < node->member_slots_count; i++)
        assert(!node->member_slots[i].member && !node->member_slots[i].observer &&
               !node->member_slots[i].acceptor);
    scheduler_destroy(node->scheduler);
    node->scheduler = NULL;
    store_close(node->store);
    node->store = NULL;
    if (node->interrupt.ready)
        lane_source_remove(node->control, &node->interrupt);
}

static void close_shard(void *arg)
{
    struct node_shard *s = arg;
    assert(lane_held(s->lane));
    assert(s->shard);
    dispatch_close(&s->dispatch);
    shard_close(s->shard);
    s->shard = NULL;
}

static bool answers_sent(void *arg)
{
    const paramo_node *node = arg;
    size_t unsent = node->scheduler_app_endpoint.shard ? shard_unsent(node->scheduler_app_endpoint.shard) : 0;
    for (unsigned i = 0; i < node->member_slots_count; i++)
        unsent += node->member_slots[i].app_endpoint.shard
                      ? shard_unsent(node->member_slots[i].app_endpoint.shard)
                      : 0;
    return unsent == 0;
}

/* Answers of apps leave before the node does. */
static void flush_answers(paramo_node *node)
{
    (void)!lane_wait(node->apps, answers_sent, node, env_now(node->env) + ENV_SEC);
}

static paramo_err end_shard(struct node_shard *s)
{
    return s->shard ? node_run_on(s->lane, close_shard, s) : PARAMO_OK;
}

enum { DRAIN_SECONDS = 60 }; /* arbitrary */

static paramo_err begin_drain(struct node_call *c, struct member *m, void *arg)
{
    return member_drain(m, &c->call, lane_now(c->member_slot->node->control) + *(const uint64_t *)arg);
}

static bool member_slots_ended(void *arg)
{
    const paramo_node *node = arg;
    for (unsigned i = 0; i < node->member_slots_count; i++)
        if (atomic_load(&node->member_slots[i].state) != MEMBER_SLOT_ENDED)
            return false;
    return true;
}

/* Other servers take this server's partitions; the scheduler ends its membership when that is done. */
static void drain(paramo_node *node)
{
    uint64_t patience = 10 * ENV_SEC;
    if (member_slots_ended(node))
        return; /* the job is over, or this server has left it */
    paramo_err err = node_call(node->own, begin_drain, NULL, &patience);
    if (!err)
        err =
            lane_wait(node->control, member_slots_ended, node, env_now(node->env) + DRAIN_SECONDS * ENV_SEC);
    if (err && err != PARAMO_E_SHUTDOWN && !member_slots_ended(node)) /* the job has not ended in between */
        log_warn("this server leaves without draining: %s", err_text());
}

static void member_slot_leave(struct member_slot *member_slot, bool now)
{
    /* Goodbyes are optional: without one the scheduler sees the connection end. */
    uint64_t patience = now ? ENV_SEC : 5 * ENV_SEC;
    paramo_err err = node_call(member_slot, begin_leave, NULL, &patience);
    if (err)
        log_info("leaving: %s", err_text());
}

/* Says goodbye in order: workers; then, when the job is over, servers and the scheduler's own member; then
 * the scheduler. */
static void leave_all(paramo_node *node, bool now)
{
    if (node->own->role == PARAMO_ROLE_WORKER)
        member_slot_leave(node->own, now);
    if (!now && lane_wait(node->control, servers_ended, node, UINT64_MAX))
        return;
    /* The remaining waits are bounded and must not be cut short. */
    bool interrupted = atomic_exchange(&node->interrupted, false);
    if (interrupted && atomic_load(&node->draining) && node->config.roles == PARAMO_ROLE_SERVER)
        drain(node);
    if (interrupted && node->scheduler)
        (void)!node_run_on(node->control, end_scheduler, node);
    for (unsigned i = 0; i < node->member_slots_count; i++)
        if (node->member_slots[i].role != PARAMO_ROLE_WORKER)
            member_slot_leave(&node->member_slots[i], now);
    if (node->scheduler && !now)
        (void)!lane_wait(node->control, scheduler_is_over, node, env_now(node->env) + 30 * ENV_SEC);
}

/* All but the customer of tasks: those of a server run until the job is over. No other thread opens or closes a worker
 * any more. */
static void close_workers(paramo_node *node)
{
    for (paramo_worker *w = node->workers, *next; w; w = next) {
        next = w->next;
        assert(w->node == node && w->client);
        if (w != tasks_worker(node))
            paramo_worker_close(w);
    }
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
    close_workers(node);
    if (now || node->own->role == PARAMO_ROLE_WORKER) {
        serve_close_all(node); /* threads that wait for requests return */
        tasks_end(node);
    }
    flush_answers(node);
    if (node->joined && node->own->observer)
        log_info("this node of readers leaves; the job does not count it");
    else if (node->joined)
        leave_all(node, now);
    else
        end_early(node);
    serve_close_all(node);
    tasks_end(node);
    flush_answers(node);
    paramo_err code = PARAMO_OK;
    char text[ERR_TEXT_MAX] = "";
    if (node->joined && node->scheduler && atomic_load(&node->over)) {
        code = node->over_code;
        (void)snprintf(text, sizeof text, "%s", node->over_text);
    } else if (node->joined && atomic_load(&node->own->state) == MEMBER_SLOT_ENDED) {
        code = node->own->code;
        (void)snprintf(text, sizeof text, "%s", node->own->text);
    }
    err = node_run_on(node->control, close_control, node);
    for (unsigned i = 0; i < node->member_slots_count && !err; i++) {
        for (unsigned k = 0; k < node->member_slots[i].shards_count && !err; k++)
            err = end_shard(&node->member_slots[i].shards[k]);
        if (!err)
            err = end_shard(&node->member_slots[i].app_endpoint);
    }
    if (!err)
        err = end_shard(&node->scheduler_app_endpoint);
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
