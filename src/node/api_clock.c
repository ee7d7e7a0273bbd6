/* Worker clocks: the public functions over clock.h, and their waits. */
#include <inttypes.h>

#include "node/api_worker.h"
#include "node/clock.h"
#include "node/node.h"

struct clock_args {
    paramo_worker *worker;
    uint64_t clock, deadline;
    uint64_t session; /* of a join that has begun */
};

static paramo_err begin_join(struct node_call *c, struct member *m, void *arg)
{
    struct clock_args *a = arg;
    paramo_err err = member_clock_join(m, &c->call, a->worker->customer, a->deadline);
    a->session = err ? 0 : clock_session(member_id(m), c->call.call_number);
    return err;
}

static void join_taken(struct node_call *c, void *arg)
{
    const struct clock_args *a = arg;
    clock_joined(a->worker, c->call.result.session, &c->call.result.clock);
}

/* The scheduler may still have counted the worker. Without a goodbye it would wait for the worker's iterations for
 * ever. */
static void join_failed(void *arg)
{
    const struct clock_args *a = arg;
    clock_goodbye(a->worker, a->session);
}

paramo_err paramo_clock_join(paramo_worker *worker, uint64_t *clock)
{
    paramo_err err = worker_check(worker);
    if (!err && (worker->app || worker->reads || !(worker->node->config.roles & PARAMO_ROLE_WORKER)))
        err = err_set(PARAMO_E_INVALID, "only workers have clocks");
    if (!err && atomic_load(&worker->clock.session))
        err = err_set(PARAMO_E_INVALID, "this worker has a clock already");
    if (err)
        return err;
    struct clock_args args = {.worker = worker, .deadline = node_deadline(worker->node, 0)};
    err = node_call(worker->node->own, begin_join, join_taken, &args);
    if (err && args.session) {
        char text[ERR_TEXT_MAX];
        err_text_copy(text);
        (void)!node_run_on(worker->node->control, join_failed, &args);
        return err_set(err, "%s", text);
    }
    if (!err && clock)
        *clock = atomic_load(&worker->clock.issued);
    return err;
}

paramo_err paramo_clock(paramo_worker *worker, uint64_t *clock)
{
    uint64_t reached;
    paramo_err err = worker_check(worker);
    if (!err)
        err = clock_end(worker, &reached);
    if (!err && clock)
        *clock = reached;
    return err;
}

static paramo_err begin_wait(struct node_call *c, struct member *m, void *arg)
{
    const struct clock_args *a = arg;
    uint64_t session = atomic_load(&a->worker->clock.session);
    if (!session)
        return err_set(PARAMO_E_INVALID,
                       "this worker has no clock any more; paramo_clock_join counts it again");
    return member_clock_wait(m, &c->call, session, a->clock, a->deadline);
}

static void wait_taken(struct node_call *c, void *arg)
{
    const struct clock_args *a = arg;
    clock_heard(a->worker, &c->call.result.clock);
}

paramo_err paramo_clock_wait(paramo_worker *worker, uint64_t clock, uint32_t timeout_ms)
{
    paramo_err err = worker_check(worker);
    if (!err)
        err = clock_demand_check(worker, clock);
    if (err)
        return err;
    struct worker_clock *c = &worker->clock;
    if (clock <= atomic_load(&c->minimum))
        return PARAMO_OK;
    struct clock_args args = {
        .worker = worker, .clock = clock, .deadline = node_deadline(worker->node, timeout_ms)};
    uint64_t began = env_now(worker->node->env);
    err = node_call(worker->node->own, begin_wait, wait_taken, &args);
    atomic_fetch_add(&c->waits, 1);
    atomic_fetch_add(&c->waited_ns, env_now(worker->node->env) - began);
    return err;
}

static paramo_err begin_leave(struct node_call *c, struct member *m, void *arg)
{
    const struct clock_args *a = arg;
    uint64_t session = atomic_load(&a->worker->clock.session);
    if (!session)
        return err_set(PARAMO_E_INVALID,
                       "this worker has no clock any more; paramo_clock_join counts it again");
    return member_clock_leave(m, &c->call, session, a->deadline);
}

static void leave_taken(struct node_call *c, void *arg)
{
    (void)c;
    clock_left(((struct clock_args *)arg)->worker);
}

static bool all_told(void *arg)
{
    const paramo_worker *w = arg;
    return atomic_load(&w->clock.told) >= atomic_load(&w->clock.issued) || atomic_load(&w->clock.failure) ||
           atomic_load(&w->node->interrupted) || atomic_load(&w->node->own->state) == MEMBER_SLOT_ENDED;
}

static void forget(void *arg)
{
    clock_left(arg);
}

paramo_err paramo_clock_leave(paramo_worker *worker)
{
    paramo_err err = worker_check(worker);
    if (!err && !atomic_load(&worker->clock.session))
        err = clock_check(worker);
    if (err)
        return err;
    struct clock_args args = {.worker = worker, .deadline = node_deadline(worker->node, 0)};
    err = lane_wait(worker->node->control, all_told, worker, args.deadline);
    if (!err || err == PARAMO_E_TIMEOUT)
        err = node_call(worker->node->own, begin_leave, leave_taken, &args);
    if (err && err != PARAMO_E_IN_CALLBACK && atomic_load(&worker->node->own->state) == MEMBER_SLOT_ENDED) {
        char text[ERR_TEXT_MAX];
        err_text_copy(text);
        (void)!node_run_on(worker->node->control, forget, worker);
        (void)err_set(err, "%s", text);
    }
    return err;
}

void paramo_clock_get(const paramo_worker *worker, paramo_clock_info *info)
{
    paramo_clock_info own = {.size = sizeof own};
    size_t size = info ? info->size : 0;
    if (!size || worker_check(worker))
        return;
    const struct worker_clock *c = &worker->clock;
    own.counts = atomic_load(&c->session) != 0;
    own.clock = atomic_load(&c->issued);
    own.told = atomic_load(&c->told);
    own.minimum = atomic_load(&c->minimum);
    own.awaited_node = atomic_load(&c->awaited_node);
    own.awaited_customer = atomic_load(&c->awaited_customer);
    own.workers = atomic_load(&c->workers);
    own.waits = atomic_load(&c->waits);
    own.waited_ns = atomic_load(&c->waited_ns);
    own.size = size < sizeof own ? size : sizeof own;
    memcpy(info, &own, own.size);
}
