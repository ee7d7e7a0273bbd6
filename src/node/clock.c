#include "node/clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "worker/client.h"
#include "worker/fence.h"

enum {
    AGAIN_MS = 100, /* arbitrary */
    WAIT_MS = 250   /* then the scheduler names the workers behind, and is asked again; arbitrary */
};

/* An iteration that the worker has ended, until its requests have ended, too. */
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

static void news(paramo_worker *w);

/* Control lane. For a worker that counts: told <= reached <= issued. */
static void worker_clock_check(const paramo_worker *w)
{
    const struct worker_clock *c = &w->clock;
    assert(lane_held(w->node->control));
    assert(atomic_load(&c->reached) <= atomic_load(&c->issued));
    assert(!c->calling || c->telling <= atomic_load(&c->issued) || !atomic_load(&c->session));
}

static void fail(paramo_worker *w, paramo_err status)
{
    worker_clock_check(w);
    assert(status);
    err_text_copy(w->clock.text);
    atomic_store(&w->clock.failure, (int)status);
    news(w);
    lane_notify(w->node->control);
}

static void tell(paramo_worker *w);

static void told(struct member_call *call, paramo_err status)
{
    paramo_worker *w = call->arg;
    struct worker_clock *c = &w->clock;
    assert(c->calling);
    worker_clock_check(w);
    c->calling = false;
    if (status) {
        fail(w, status);
        return;
    }
    raise_to(&c->told, c->telling);
    clock_heard(w, &call->result.clock);
    tell(w);
}

static void demand(paramo_worker *w);
static void wait_cancel(paramo_worker *w);

static void call_again(struct lane_timer *timer)
{
    paramo_worker *w = container_of(timer, paramo_worker, clock.again);
    assert(lane_held(w->node->control) && !w->clock.again.slot);
    tell(w);
    demand(w);
}

static bool may_call_later(paramo_worker *w, paramo_err err)
{
    struct lane *control = w->node->control;
    assert(lane_held(control));
    assert(err);
    w->clock.again.fire = call_again;
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
    worker_clock_check(w);
    c->tell = (struct member_call){.done = told, .arg = w};
    c->telling = atomic_load(&c->reached);
    c->calling = true;
    paramo_err err =
        member ? member_clock_tell(member, &c->tell, session, c->telling, UINT64_MAX)
               : err_set(PARAMO_E_CLOSED,
                         "the node has not joined a cluster; paramo_join or paramo_start comes first");
    if (err) {
        c->calling = false;
        if (!may_call_later(w, err))
            fail(w, err);
    }
}

static void iteration_over(struct lane_task *task)
{
    struct iteration *i = container_of(task, struct iteration, task);
    paramo_worker *w = i->worker;
    assert(lane_held(w->node->control));
    assert(i->session && i->clock);
    /* A scheduler may give a session twice. Then an iteration of an earlier join is above those of this one, and
     * ignored. */
    if (i->session == atomic_load(&w->clock.session) && i->clock <= atomic_load(&w->clock.issued)) {
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
        return err_set(PARAMO_E_AGAIN,
                       "the requests of %d ended iterations are in flight; wait for some of them",
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

void clock_joined(paramo_worker *w, uint64_t session, const struct clock_result *result)
{
    uint64_t minimum = result->minimum;
    struct worker_clock *c = &w->clock;
    if (atomic_load(&c->session)) /* two threads have joined: the scheduler counts the last */
        clock_left(w);
    assert(lane_held(w->node->control) && !c->calling);
    atomic_store(&c->reached, minimum);
    atomic_store(&c->told, minimum);
    atomic_store(&c->issued, minimum);
    atomic_store(&c->workers, result->workers);
    raise_to(&c->minimum, minimum);
    atomic_store(&c->failure, PARAMO_OK);
    atomic_store(&c->session, session);
    worker_clock_check(w);
}

void clock_left(paramo_worker *w)
{
    struct worker_clock *c = &w->clock;
    assert(lane_held(w->node->control));
    assert(!c->again.slot || c->again.fire == call_again);
    atomic_store(&c->session, 0);
    lane_timer_cancel(w->node->control, &c->again);
    if (c->calling)
        member_cancel(w->node->own->member, &c->tell); /* told() marks a failure ... */
    atomic_store(&c->failure, PARAMO_OK);              /* ... which is none */
    wait_cancel(w);
    assert(!c->calling && !c->waiting && !c->again.slot);
    atomic_store(&c->left, true);
    news(w);
    lane_notify(w->node->control);
}

void clock_heard(paramo_worker *w, const struct clock_result *result)
{
    assert(lane_held(w->node->control));
    worker_clock_check(w);
    if (result->workers && result->minimum >= atomic_load(&w->clock.minimum))
        atomic_store(&w->clock.workers,
                     result->workers); /* before the minimum: clock_of_call reads them after it */
    raise_to(&w->clock.minimum, result->minimum);
    atomic_store(&w->clock.awaited_node, result->node);
    atomic_store(&w->clock.awaited_customer, result->customer);
    uint64_t wanted = atomic_load(&w->clock.demand);
    if (wanted && wanted <= result->minimum)
        news(w);
    lane_notify(w->node->control);
}

/* ---- requests that are held ---- */

static void news_run(struct lane_task *task)
{
    paramo_worker *w = container_of(task, paramo_worker, clock.news_task);
    struct worker_clock *c = &w->clock;
    paramo_err failure = (paramo_err)atomic_load(&c->failure);
    assert(lane_held(w->lane) && atomic_load(&c->news_posted));
    atomic_store(&c->news_posted, false);
    atomic_store(&c->demand, 0); /* the client names another one if it still holds requests */
    if (atomic_exchange(&c->left, false) || (!failure && !atomic_load(&c->session)))
        client_clock_lost(w->client, PARAMO_E_INVALID,
                          "this worker has no clock any more; paramo_clock_join counts it again");
    else if (failure)
        client_clock_lost(w->client, failure, c->text);
    else
        client_clock_reached(w->client, atomic_load(&c->minimum), atomic_load(&c->workers));
}

static void news(paramo_worker *w)
{
    struct worker_clock *c = &w->clock;
    assert(lane_held(w->node->control));
    if (!(atomic_load(&c->demand) || atomic_load(&c->left)) || atomic_exchange(&c->news_posted, true))
        return;
    c->news_task.run = news_run; /* the task is ours from here on */
    lane_post(w->lane, &c->news_task);
}

struct behind {
    struct lane_task task;
    paramo_worker *worker;
    char text[ERR_TEXT_MAX];
};

static void behind_run(struct lane_task *task)
{
    struct behind *b = container_of(task, struct behind, task);
    assert(lane_held(b->worker->lane) && b->worker->client);
    client_clock_behind(b->worker->client, b->text);
    free(b);
}

/* Passes the scheduler's message to the client, without the time of that wait. Without memory the client does not
 * learn which workers are behind. */
static void behind(paramo_worker *w)
{
    worker_clock_check(w);
    assert(!w->clock.waiting);
    struct behind *b = malloc(sizeof *b);
    if (!b)
        return;
    *b = (struct behind){.task.run = behind_run, .worker = w};
    err_text_copy(b->text);
    char *time = strstr(b->text, "; waited ");
    if (time)
        *time = '\0';
    lane_post(w->lane, &b->task);
}

static void waited(struct member_call *call, paramo_err status)
{
    paramo_worker *w = call->arg;
    assert(w->clock.waiting);
    worker_clock_check(w);
    w->clock.waiting = false;
    if (!w->clock.awaited)
        return; /* cancelled */
    if (!status) {
        clock_heard(w, &call->result.clock);
        demand(w); /* it may be another one by now */
    } else if (status == PARAMO_E_TIMEOUT) {
        behind(w);
        demand(w);
    } else if (!may_call_later(w, status)) {
        fail(w, status);
    }
}

static void wait_cancel(paramo_worker *w)
{
    if (!w->clock.waiting)
        return;
    assert(lane_held(w->node->control) && w->clock.wait.arg == w);
    assert(w->clock.awaited);
    w->clock.awaited = 0;
    member_cancel(w->node->own->member, &w->clock.wait);
}

/* Asks the scheduler so that the client learns when its demand is met, or cannot be. */
static void demand(paramo_worker *w)
{
    struct worker_clock *c = &w->clock;
    struct member *member = w->node->own->member;
    uint64_t wanted = atomic_load(&c->demand), session = atomic_load(&c->session);
    assert(lane_held(w->node->control) && (!c->waiting || c->wait.arg == w));
    if (!wanted || (c->waiting && c->awaited <= wanted))
        return;
    if (!session || atomic_load(&c->failure) || wanted <= atomic_load(&c->minimum)) {
        news(w);
        return;
    }
    wait_cancel(w); /* for a higher one */
    worker_clock_check(w);
    c->wait = (struct member_call){.done = waited, .arg = w};
    c->awaited = wanted;
    c->waiting = true;
    uint64_t deadline = lane_now(w->node->control) + WAIT_MS * ENV_MS;
    paramo_err err =
        member ? member_clock_wait(member, &c->wait, session, wanted, deadline)
               : err_set(PARAMO_E_CLOSED,
                         "the node has not joined a cluster; paramo_join or paramo_start comes first");
    if (err) {
        c->waiting = false;
        if (!may_call_later(w, err))
            fail(w, err);
    }
}

static void demand_run(struct lane_task *task)
{
    paramo_worker *w = container_of(task, paramo_worker, clock.demand_task);
    assert(lane_held(w->node->control) && atomic_load(&w->clock.demand_posted));
    atomic_store(&w->clock.demand_posted, false);
    demand(w);
}

void clock_needed(void *worker, uint64_t clock)
{
    paramo_worker *w = worker;
    struct worker_clock *c = &w->clock;
    assert(lane_held(w->lane));
    assert(clock);
    atomic_store(&c->demand, clock);
    if (atomic_exchange(&c->demand_posted, true))
        return;
    c->demand_task.run = demand_run;
    lane_post(w->node->control, &c->demand_task);
}

paramo_err clock_demand_check(const paramo_worker *w, uint64_t clock)
{
    paramo_err err = clock_check(w);
    uint64_t issued = atomic_load(&w->clock.issued);
    if (!err && clock > issued)
        err = err_set(PARAMO_E_INVALID,
                      "clock %" PRIu64
                      " cannot be waited for: this worker itself has ended iterations up to %" PRIu64,
                      clock, issued);
    return err;
}

uint64_t clock_age(const paramo_worker *w, uint64_t demanded)
{
    const struct worker_clock *c = &w->clock;
    if (!atomic_load_explicit(&c->session, memory_order_relaxed))
        return CLOCK_AGELESS;
    uint64_t issued = atomic_load(&c->issued), seen = atomic_load(&c->minimum);
    seen = demanded > seen ? demanded : seen;
    return issued > seen ? issued - seen : 0;
}

void clock_of_call(const paramo_worker *w, struct client_call *call)
{
    const struct worker_clock *c = &w->clock;
    if ((call->kind != REQUEST_PUSH && call->kind != REQUEST_PULL) || !atomic_load(&c->session) ||
        atomic_load(&c->failure))
        return;
    call->clocked = true;
    call->clock = atomic_load(&c->issued);
    call->workers = atomic_load(&c->minimum) >= call->clock ? atomic_load(&c->workers) : 0;
}

/* ---- a worker that is closed ---- */

struct goodbye {
    struct member_call call;
    struct member *member;
    uint64_t session;
};

static paramo_err goodbye_say(struct goodbye *g);

/* After other errors the node is gone, and no longer counts either. */
static void goodbye_said(struct member_call *call, paramo_err status)
{
    struct goodbye *g = container_of(call, struct goodbye, call);
    assert(g->member && g->session);
    if (status != PARAMO_E_MEMORY || goodbye_say(g))
        free(g);
}

static paramo_err goodbye_say(struct goodbye *g)
{
    g->call = (struct member_call){.done = goodbye_said};
    return member_clock_leave(g->member, &g->call, g->session, UINT64_MAX);
}

void clock_goodbye(paramo_worker *w, uint64_t session)
{
    struct member *member = w->node->own ? w->node->own->member : NULL;
    assert(lane_held(w->node->control));
    assert(session);
    struct goodbye *g = member ? calloc(1, sizeof *g) : NULL;
    if (!g)
        return; /* it stops counting when the node leaves */
    g->member = member;
    g->session = session;
    if (goodbye_say(g))
        free(g); /* the node is not part of the job any more */
}

void clock_close(paramo_worker *w)
{
    uint64_t session = atomic_load(&w->clock.session);
    if (!session)
        return;
    clock_left(w);
    assert(!atomic_load(&w->clock.session) && !w->clock.again.slot);
    clock_goodbye(w, session);
}
