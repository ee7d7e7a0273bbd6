/* The admin handle. Each call is one admin query (cluster/member/admin_query.h) on the handle's lane, with a
 * connection of its own; the calling thread waits for it. */
#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/member/admin_query.h"
#include "env/lane.h"
#include "env/process.h"
#include "node/admin_impl.h"
#include "node/config.h"
#include "wire/capability.h"

/* Defaults. MORE: how much longer than its checkpoint a call waits for the scheduler's answer. Arbitrary. */
enum { ADMIN_TIMEOUT_MS = 10000, ADMIN_CKPT_MS = 60000, ADMIN_CKPT_MORE_MS = 5000 };

struct paramo_admin {
    unsigned generation; /* of the process that made it (fork) */
    struct env *env;
    struct van *van;
    struct lane *lane;
    char *scheduler, *token;
    uint32_t timeout_ms;
};

struct admin_call {
    struct lane_task task;
    struct admin_query_config config;
    struct admin_query_result result; /* moved out of the query */
    paramo_err status;
    char text[ERR_TEXT_MAX];
    atomic_bool over;
};

/* ---- the handle ---------------------------------------------------------------------------------------- */

void paramo_admin_options_init(paramo_admin_options *options)
{
    *options = (paramo_admin_options){.size = sizeof *options, .timeout_ms = ADMIN_TIMEOUT_MS};
}

static void admin_free(paramo_admin *admin)
{
    if (admin->lane)
        lane_destroy(admin->lane);
    if (admin->van)
        van_destroy(admin->van);
    free(admin->scheduler);
    free(admin->token);
    free(admin);
}

paramo_err paramo_admin_open(const paramo_admin_options *options, paramo_admin **out)
{
    paramo_admin_options whole;
    paramo_admin_options_init(&whole);
    options_complete(&whole, sizeof whole, options);
    if (!out || !whole.scheduler || !*whole.scheduler)
        return err_set(PARAMO_E_INVALID, out ? "scheduler is missing" : "admin is NULL");
    paramo_admin *admin = calloc(1, sizeof *admin);
    if (!admin)
        return err_memory(sizeof *admin);
    admin->generation = process_generation();
    admin->env = env_real();
    admin->timeout_ms = whole.timeout_ms ? whole.timeout_ms : ADMIN_TIMEOUT_MS;
    admin->scheduler = strdup(whole.scheduler);
    admin->token = strdup(whole.token ? whole.token : "");
    paramo_err err = PARAMO_OK;
    if (!admin->scheduler || !admin->token)
        err = err_memory(strlen(whole.scheduler));
    if (!err)
        err = van_tcp_create(admin->env, &(struct van_config){0}, &admin->van);
    if (!err) {
        admin->van->capabilities = CAPABILITIES;
        err = lane_create(admin->env, "pm-admin", LANE_NO_SPIN, &admin->lane);
    }
    if (err)
        admin_free(admin);
    else
        *out = admin;
    return err;
}

void paramo_admin_close(paramo_admin *admin)
{
    if (admin && admin->generation == process_generation() && !lane_inside())
        admin_free(admin);
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void call_done(void *arg, paramo_err status, struct admin_query_result *result)
{
    struct admin_call *call = arg;
    struct lane *lane = call->config.lane; /* call may be gone once it is over */
    assert(!atomic_load(&call->over));
    assert(lane_held(lane));
    call->status = status;
    err_text_copy(call->text);
    call->result = *result;
    *result = (struct admin_query_result){0};
    atomic_store(&call->over, true);
    lane_notify(lane);
}

static void call_begin(struct lane_task *task)
{
    struct admin_call *call = container_of(task, struct admin_call, task);
    struct admin_query *query;
    paramo_err err = admin_query_start(&call->config, &query);
    if (err)
        call_done(call, err, &(struct admin_query_result){0});
}

static bool call_is_over(void *arg)
{
    return atomic_load(&((struct admin_call *)arg)->over);
}

/* Sets the other fields of call->config than those of the question, and waits for the end of the query. */
static paramo_err admin_ask(paramo_admin *admin, uint32_t timeout_ms, struct admin_call *call)
{
    if (!admin)
        return err_set(PARAMO_E_INVALID, "admin is NULL");
    if (admin->generation != process_generation())
        return err_set(PARAMO_E_FORKED,
                       "the admin handle belongs to the process that this one was forked from");
    if (lane_inside())
        return err_set(PARAMO_E_IN_CALLBACK, "an admin call cannot wait in a callback or handler");
    assert(!atomic_load(&call->over) && admin->van);
    assert(admin->lane);
    call->task.run = call_begin;
    call->config.van = admin->van;
    call->config.lane = admin->lane;
    call->config.scheduler = admin->scheduler;
    call->config.token = admin->token;
    call->config.incarnation = env_random(admin->env) | 1;
    call->config.deadline = env_now(admin->env) + timeout_ms * ENV_MS;
    call->config.done = call_done;
    call->config.arg = call;
    lane_post(admin->lane, &call->task);
    paramo_err err = lane_wait(admin->lane, call_is_over, call, UINT64_MAX);
    return err ? err : call->status ? err_set(call->status, "%s", call->text) : PARAMO_OK;
}

static paramo_err admin_snapshot(paramo_admin *admin, bool status, paramo_cluster **cluster)
{
    struct admin_call call = {.config.status = status};
    if (!cluster)
        return err_set(PARAMO_E_INVALID, "cluster is NULL");
    paramo_err err = admin_ask(admin, admin ? admin->timeout_ms : 0, &call);
    return err ? err : cluster_create(call.result.view, call.result.status, cluster);
}

paramo_err paramo_admin_cluster(paramo_admin *admin, paramo_cluster **cluster)
{
    return admin_snapshot(admin, false, cluster);
}

paramo_err paramo_admin_status(paramo_admin *admin, paramo_cluster **cluster)
{
    return admin_snapshot(admin, true, cluster);
}

paramo_err paramo_admin_drain(paramo_admin *admin, uint32_t node)
{
    struct admin_call call = {.config.drain = node};
    if (!node)
        return err_set(PARAMO_E_INVALID, "node is 0, which is not a node's id");
    return admin_ask(admin, admin ? admin->timeout_ms : 0, &call);
}

static paramo_err admin_checkpoint(paramo_admin *admin, const char *dir, struct ckpt_order *order, bool load,
                                   uint32_t timeout_ms, uint64_t *number)
{
    if (!dir || !*dir)
        return err_set(PARAMO_E_INVALID, "the folder's name is empty");
    paramo_err err = process_path(dir, order->dir, sizeof order->dir);
    if (err)
        return err;
    order->timeout_ms = timeout_ms ? timeout_ms : ADMIN_CKPT_MS;
    if (order->timeout_ms > UINT32_MAX - ADMIN_CKPT_MORE_MS)
        order->timeout_ms = UINT32_MAX - ADMIN_CKPT_MORE_MS;
    assert(order->timeout_ms > 0);
    assert(order->timeout_ms <= UINT32_MAX - ADMIN_CKPT_MORE_MS);
    struct admin_call call = {.config.ckpt = order, .config.load = load};
    err = admin_ask(admin, order->timeout_ms + ADMIN_CKPT_MORE_MS, &call);
    if (!err && number)
        *number = call.result.number;
    return err;
}

paramo_err paramo_admin_checkpoint_save(paramo_admin *admin, const char *dir, uint32_t flags,
                                        uint32_t timeout_ms, uint64_t *number)
{
    struct ckpt_order order = {.changes = flags == PARAMO_CHECKPOINT_INCREMENTAL};
    if (flags > PARAMO_CHECKPOINT_INCREMENTAL)
        return err_set(PARAMO_E_INVALID, "flags is %u: the only flag is PARAMO_CHECKPOINT_INCREMENTAL",
                       flags);
    return admin_checkpoint(admin, dir, &order, false, timeout_ms, number);
}

paramo_err paramo_admin_checkpoint_load(paramo_admin *admin, const char *dir, uint64_t number,
                                        uint32_t timeout_ms, uint64_t *loaded)
{
    struct ckpt_order order = {.number = number};
    return admin_checkpoint(admin, dir, &order, true, timeout_ms, loaded);
}
