#include "node/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "worker/fence.h"

enum { AGAIN_MS = 100 }; /* arbitrary */

/* One iteration that has been ended, until its requests have. */
struct iteration {
    struct client_fence fence;
    struct lane_task task;
    paramo_worker *worker;
    uint64_t session, clock;
};

static void raise_to(_Atomic uint64_t *number, uint64_t to)
{
    if (to > atomic_load(number))
        atomic_store(number, to);
}

static void fail(paramo_worker *w, paramo_err status)
{
    err_text_copy(w->clock.text);
    atomic_store(&w->clock.failure, (int)status);
    lane_notify(w->node->control);
}

static void tell(paramo_worker *w);

static void told(struct member_call *call, paramo_err status)
{
    paramo_worker *w = call->arg;
    struct worker_clock *c = &w->clock;
    assert(c->calling);
    c->calling = false;
    if (status) {
        fail(w, status);
        return;
    }
    raise_to(&c->told, c->telling);
    clock_heard(w, &call->result.clock);
    tell(w);
}

static void tell_again(struct lane_timer *timer)
{
    tell(container_of(timer, paramo_worker, clock.again));
}

static bool may_tell_later(paramo_worker *w, paramo_err err)
{
    struct lane *control = w->node->control;
    w->clock.again.fire = tell_again;
    return (err == PARAMO_E_MEMORY || err == PARAMO_E_AGAIN) &&
           lane_timer_arm(control, &w->clock.again, lane_now(control) + AGAIN_MS * ENV_MS) == PARAMO_OK;
}

static void tell(paramo_worker *w)
{
    struct worker_clock *c = &w->clock;
    struct member *member = w->node->own->member;
    uint64_t session = atomic_load(&c->session);
    if (!session || c->calling || atomic_load(&c->failure) ||
        atomic_load(&c->reached) <= atomic_load(&c->told))
        return;
    c->tell = (struct member_call){.done = told, .arg = w};
    c->telling = atomic_load(&c->reached);
    c->calling = true;
    paramo_err err = member ? member_clock_tell(member, &c->tell, session, c->telling, UINT64_MAX)
                            : err_set(PARAMO_E_CLOSED, "the node has not joined a cluster");
    if (err) {
        c->calling = false;
        if (!may_tell_later(w, err))
            fail(w, err);
    }
}

static void iteration_over(struct lane_task *task)
{
    struct iteration *i = container_of(task, struct iteration, task);
    paramo_worker *w = i->worker;
    assert(lane_held(w->node->control));
    if (i->session == atomic_load(&w->clock.session)) {
        raise_to(&w->clock.reached, i->clock);
        tell(w);
    }
    free(i);
}

static void requests_over(struct client_fence *fence)
{
    struct iteration *i = container_of(fence, struct iteration, fence);
    lane_post(i->worker->node->control, &i->task);
}

paramo_err clock_check(const paramo_worker *w)
{
    paramo_err failure = (paramo_err)atomic_load(&w->clock.failure);
    if (failure)
        return err_set(failure, "%s", w->clock.text);
    if (!atomic_load(&w->clock.session))
        return err_set(PARAMO_E_INVALID, "this worker has no clock: paramo_clock_join comes first");
    return PARAMO_OK;
}

paramo_err clock_end(paramo_worker *w, uint64_t *clock)
{
    struct worker_clock *c = &w->clock;
    paramo_err err = clock_check(w);
    if (err)
        return err;
    if (atomic_load(&c->issued) - atomic_load(&c->reached) >= CLOCK_AHEAD_MAX)
        return err_set(PARAMO_E_AGAIN, "the requests of %d iterations that have been ended are in flight",
                       CLOCK_AHEAD_MAX);
    struct iteration *i = calloc(1, sizeof *i);
    if (!i)
        return err_memory(sizeof *i);
    i->worker = w;
    i->session = atomic_load(&c->session);
    i->clock = atomic_fetch_add(&c->issued, 1) + 1;
    i->fence.passed = requests_over;
    i->task.run = iteration_over;
    *clock = i->clock; /* before the fence, which may pass at once */
    client_fence(w->client, &i->fence);
    return PARAMO_OK;
}

void clock_joined(paramo_worker *w, uint64_t session, uint64_t minimum)
{
    struct worker_clock *c = &w->clock;
    if (atomic_load(&c->session)) /* two threads have joined: the scheduler counts the last */
        clock_left(w);
    assert(lane_held(w->node->control) && !c->calling);
    atomic_store(&c->reached, minimum);
    atomic_store(&c->told, minimum);
    atomic_store(&c->issued, minimum);
    raise_to(&c->minimum, minimum);
    atomic_store(&c->failure, PARAMO_OK);
    atomic_store(&c->session, session);
}

void clock_left(paramo_worker *w)
{
    struct worker_clock *c = &w->clock;
    assert(lane_held(w->node->control));
    atomic_store(&c->session, 0);
    lane_timer_cancel(w->node->control, &c->again);
    if (c->calling)
        member_cancel(w->node->own->member, &c->tell); /* told() marks a failure ... */
    atomic_store(&c->failure, PARAMO_OK);              /* ... which is none */
    lane_notify(w->node->control);
}

void clock_heard(paramo_worker *w, const struct clock_result *result)
{
    assert(lane_held(w->node->control));
    raise_to(&w->clock.minimum, result->minimum);
    atomic_store(&w->clock.awaited_node, result->node);
    atomic_store(&w->clock.awaited_who, result->who);
    lane_notify(w->node->control);
}

/* ---- a worker that is closed ---- */

static void goodbye_said(struct member_call *call, paramo_err status)
{
    (void)status; /* a node that is gone does not count either */
    free(call);
}

void clock_goodbye(paramo_worker *w, uint64_t session)
{
    struct member *member = w->node->own ? w->node->own->member : NULL;
    assert(lane_held(w->node->control));
    struct member_call *call = member ? calloc(1, sizeof *call) : NULL;
    if (!call)
        return; /* it stops counting when the node leaves */
    call->done = goodbye_said;
    if (member_clock_leave(member, call, session, UINT64_MAX))
        free(call); /* the node is not part of the job any more */
}

void clock_close(paramo_worker *w)
{
    uint64_t session = atomic_load(&w->clock.session);
    if (!session)
        return;
    clock_left(w);
    clock_goodbye(w, session);
}
