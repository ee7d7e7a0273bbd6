#include "node/node.h"

#include <assert.h>
#include <inttypes.h>

#include "env/process.h"
#include "paramo/task.h"

/* ---- calls: from any thread to a lane and back ------------------------------------------------------ */

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
    assert(lane_held(lane_call->lane));
    assert(!atomic_load(&lane_call->done));
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
        return err_set(PARAMO_E_IN_CALLBACK,
                       "a callback or handler cannot make a call that waits; make it in another thread");
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

paramo_err app_check(const paramo_node *node, uint32_t app)
{
    paramo_err err = node_check(node);
    if (!err && app == PARAMO_TASKS_APP)
        err = err_set(PARAMO_E_INVALID, "app %" PRIu32 " is that of tasks (paramo/task.h)", app);
    return err;
}

struct view *node_view(const paramo_node *node)
{
    const struct member_slot *own = node->own;
    assert(lane_held(node->control) && !(own->observer && own->member));
    return own->observer ? observer_view(own->observer) : own->member ? member_view(own->member) : NULL;
}

uint64_t node_deadline(const paramo_node *node, uint32_t ms)
{
    return env_now(node->env) + (ms ? ms : 60000) * ENV_MS;
}

/* ---- the end of a lane -------------------------------------------------------------------------------- */

struct lane_flush {
    struct van *van;
    struct lane *lane;
};

static bool all_sent(void *arg)
{
    const struct lane_flush *w = arg;
    return van_flushing(w->van, w->lane) == 0;
}

static void flush_abandon(void *arg)
{
    const struct lane_flush *w = arg;
    assert(lane_held(w->lane));
    van_abandon(w->van, w->lane);
}

void node_lane_end(paramo_node *node, struct lane *lane)
{
    if (!lane)
        return;
    struct lane_flush w = {node->van, lane};
    if (node->van) {
        (void)!lane_wait(lane, all_sent, &w, env_now(node->env) + ENV_SEC);
        (void)!node_run_on(lane, flush_abandon, &w);
    }
    lane_destroy(lane);
}

/* ---- calls to the scheduler --------------------------------------------------------------------------- */

static void call_finish(struct node_call *c, paramo_err status)
{
    assert(lane_held(c->member_slot->node->control));
    assert(!atomic_load(&c->done)); /* a call ends once */
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
    assert(!atomic_load(&c->done) && lane_held(c->member_slot->node->control));
    assert(!(c->member_slot->member && c->member_slot->observer));
    c->call.done = call_done;
    c->call.arg = c;
    paramo_err err =
        c->member_slot->member ? c->begin(c, c->member_slot->member, c->arg)
        : c->member_slot->observer
            ? err_set(PARAMO_E_INVALID, "a node of readers is no member of the job, as this call requires")
            : err_set(PARAMO_E_CLOSED,
                      "the node has not joined a cluster; paramo_join or paramo_start comes first");
    if (err)
        call_finish(c, err);
}

static void call_cancel(struct lane_task *task)
{
    struct node_call *c = container_of(task, struct node_call, cancel);
    assert(lane_held(c->member_slot->node->control));
    assert(c->call.arg == c); /* it has begun */
    if (!atomic_load(&c->done))
        member_cancel(c->member_slot->member, &c->call);
    /* node_call runs one more task here before it returns: its stack holds this one. */
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
        return err_set(PARAMO_E_IN_CALLBACK,
                       "a callback or handler cannot make a call that waits; make it in another thread");
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
            err = err_set(PARAMO_E_CLOSED,
                          "interrupted while waiting for the scheduler's answer (paramo_interrupt)");
        return err;
    }
    assert(err || atomic_load(&c.done)); /* its task has run: our stack may go */
    if (!err && c.status)
        err = err_set(c.status, "%s", c.text);
    return err;
}
