#include "sim/clocks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_roster.h"
#include "node/clock.h"
#include "sim/call_ends.h"
#include "sim/judge.h"
#include "sim/memory.h"
#include "sim/task_judge.h"
#include "sim/world.h"

enum { PATIENT_SECONDS = 60, JOIN_SECONDS = 30, DEMANDS = 4 };
/* In the calm period, until deaths are known and calls have been sent again. */
#define PATIENCE (30 * ENV_SEC)

static unsigned number_of(const struct customer *c)
{
    return (unsigned)(c - c->machine->customers);
}

/* ---- what must be true --------------------------------------------------------------------------------- */

/* The job's scheduler counts this process among the living. Without a scheduler nothing is known. */
static bool lives(const struct world *w, const struct machine *m)
{
    const struct scheduler *s = world_scheduler(w);
    if (!s || !m->up || m->declared_dead || !machine_joined(m))
        return false;
    const struct sched_node *node = sched_roster_find_incarnation(s, m->made->own->incarnation);
    return node && sched_roster_is_here(node);
}

bool clocks_lives(const struct machine *m)
{
    return lives(m->world, m);
}

/* Has the customer not reached the clock? It lacks iterations, or a request that it issued before it ended one is in
 * flight. */
static bool behind(const struct world *w, const struct customer *c, uint64_t clock, char *why, size_t size)
{
    uint64_t issued = atomic_load(&c->worker->clock.issued);
    if (clock <= c->clock.begins)
        return false;
    if (clock > issued) {
        (void)snprintf(why, size, "customer %u of %s is at clock %" PRIu64, number_of(c), c->machine->name,
                       issued);
        return true;
    }
    uint64_t end = c->clock.ends[clock % CLOCKS_KEPT];
    if (c->calls && issued - clock < CLOCKS_KEPT && task_judge_in_flight(w, c, end)) {
        (void)snprintf(why, size, "a call of a task by customer %u of %s, which came before it, is in flight",
                       number_of(c), c->machine->name);
        return true;
    }
    unsigned left = issued - clock < CLOCKS_KEPT ? c->open : 0; /* requests of it in flight */
    for (uint32_t serial = w->serial, seen = 0; left && seen < SIM_SERIALS; serial--, seen++) {
        const struct op *op = w->by_serial[serial % SIM_SERIALS];
        if (!op || !op->open || &op->machine->customers[op->customer] != c)
            continue;
        left--;
        if (!op->ts || op->ts > end)
            continue;
        (void)snprintf(why, size,
                       "request %" PRIu64 " of customer %u of %s, which came before it, is in flight", op->ts,
                       number_of(c), c->machine->name);
        return true;
    }
    return false;
}

/* Is a customer that counts, or may count, behind? */
static bool any_behind(const struct world *w, uint64_t clock, bool perhaps, char *why, size_t size)
{
    for (uint32_t k = 0; k < w->schedule->workers; k++) {
        const struct machine *m = &w->workers[k];
        if (!lives(w, m))
            continue;
        for (unsigned i = 0; i < w->schedule->customers; i++) {
            const struct customer *c = &m->customers[i];
            bool counts = c->worker && (c->clock.state == CLOCKS_IN || c->clock.state == CLOCKS_WAITING);
            if (counts && behind(w, c, clock, why, size))
                return true;
            if (perhaps && c->worker &&
                (c->clock.state == CLOCKS_JOINING || c->clock.state == CLOCKS_LEAVING))
                return true;
        }
    }
    return false;
}

/* The minimum never falls: a worker that joins begins with it, and so holds no other back. */
static void minimum_heard(const struct customer *c, uint64_t minimum)
{
    struct world *w = c->machine->world;
    if (minimum < c->clock.seen)
        judge_broken(w, "%s: the minimum of the clocks has fallen from %" PRIu64 " to %" PRIu64,
                     c->machine->name, c->clock.seen, minimum);
    w->clocks_minimum = minimum > w->clocks_minimum ? minimum : w->clocks_minimum;
}

/* ---- requests that are held ---------------------------------------------------------------------------- */

void clocks_draw(struct machine *m, struct op *op, paramo_request_options *o)
{
    struct world *w = m->world;
    const struct customer *c = &m->customers[op->customer];
    bool counts = c->clock.state == CLOCKS_IN || c->clock.state == CLOCKS_WAITING;
    if (!w->clocks || w->calm || !counts || clock_check(c->worker) || dice_draw(&w->clocks_dice, 4))
        return;
    uint64_t issued = atomic_load(&c->worker->clock.issued), slack = dice_draw(&w->clocks_dice, DEMANDS);
    op->at_clock = o->at_clock = issued > slack ? issued - slack : issued;
    w->counts[PLAY_clock_requests] += op->at_clock > atomic_load(&c->worker->clock.minimum);
}

void clocks_request(const struct op *op, const char *what)
{
    struct world *w = op->machine->world;
    char why[128] = "";
    if (op->at_clock && any_behind(w, op->at_clock, false, why, sizeof why))
        judge_broken(w, "%s: request %" PRIu64 " %s before all workers have reached clock %" PRIu64 ": %s",
                     op->machine->name, op->ts, what, op->at_clock, why);
}

static bool is_held(const struct op *op)
{
    char why[128] = "";
    return op->at_clock && any_behind(op->machine->world, op->at_clock, true, why, sizeof why);
}

bool clocks_hold(const struct op *op)
{
    const struct world *w = op->machine->world;
    const struct customer *c = &op->machine->customers[op->customer];
    /* It left when its clock was there, and then its deadline was near: a server collects pushes for a second. */
    bool held = is_held(op) || (op->at_clock && op->left_at + 3 * ENV_SEC / 2 > op->deadline);
    /* What it comes after has ended in the same step, and was judged itself. */
    for (unsigned i = 0; op->after_n && !held && i < SIM_RECENT; i++)
        held = c->failed[i] && (c->failed[i] == op->after[0] || c->failed[i] == op->after[1] ||
                                c->failed[i] <= op->after_all);
    for (unsigned i = 0; op->after_n && !held && i < SIM_SERIALS; i++) {
        const struct op *first = w->by_serial[i]; /* perhaps what it comes after */
        held = first && first->open && first->machine == op->machine && first->customer == op->customer &&
               first->ts < op->ts && is_held(first);
    }
    return held;
}

bool clocks_lost(const struct op *op, paramo_err status)
{
    const struct customer *c = &op->machine->customers[op->customer];
    paramo_err failure = (paramo_err)atomic_load(&c->worker->clock.failure);
    bool left = c->clock.left_at >= op->from; /* since then */
    bool lost = (failure && status == failure) ||
                (left && (status == PARAMO_E_INVALID || (c->clock.left_by && status == c->clock.left_by)));
    return op->at_clock && lost;
}

static void leave(struct customer *c)
{
    c->clock.left_by = (paramo_err)atomic_load(&c->worker->clock.failure);
    clock_left(c->worker);
    c->clock.left_at = ++c->machine->world->moment;
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static void wait_over(struct customer *c, paramo_err status)
{
    struct machine *m = c->machine;
    struct world *w = m->world;
    char why[128] = "";
    uint64_t since = w->calm_since > c->clock.waits_since ? w->calm_since : c->clock.waits_since;
    if (!status) {
        minimum_heard(c, c->clock.call.result.clock.minimum);
        if (any_behind(w, c->clock.demand, false, why, sizeof why))
            judge_broken(w, "%s was told that all workers have reached clock %" PRIu64 ", but %s", m->name,
                         c->clock.demand, why);
        clock_heard(c->worker, &c->clock.call.result.clock);
        w->counts[PLAY_clock_waits]++;
    } else if (status == PARAMO_E_TIMEOUT && c->clock.patient && w->calm && !w->scheduler_lost &&
               sim_now(w->sim) > since + PATIENCE && !any_behind(w, c->clock.demand, true, why, sizeof why)) {
        judge_broken(w, "%s: no worker is behind clock %" PRIu64 ", and the wait for it has no end: %s",
                     m->name, c->clock.demand, err_text());
    }
}

/* May the call end with this status? */
static bool has_cause(const struct customer *c, enum clocks_state was, paramo_err status)
{
    const struct machine *m = c->machine;
    const struct customer_clock *k = &c->clock;
    switch (status) {
    case PARAMO_OK:
        return true;
    case PARAMO_E_TIMEOUT:
        return call_ends_late(m, k->asked_at, k->deadline, k->asked_from) || call_ends_with_job(m, status);
    case PARAMO_E_MEMORY:
        return memory_failed_call(m, 0, k->asked_from);
    case PARAMO_E_NOT_FOUND: /* the scheduler has declared its process dead, and does not count it */
        return was != CLOCKS_JOINING && !lives(m->world, m);
    default:
        return call_ends_with_job(m, status);
    }
}

static void call_over(struct customer *c, paramo_err status)
{
    struct machine *m = c->machine;
    struct customer_clock *k = &c->clock;
    enum clocks_state was = k->state;
    k->state = was == CLOCKS_WAITING ? CLOCKS_IN : was == CLOCKS_JOINING && !status ? CLOCKS_IN : CLOCKS_OUT;
    if (c->closing && was == CLOCKS_JOINING && !status && !m->dying) { /* no worker will end it */
        k->state = CLOCKS_OUT;
        clock_goodbye(c->worker, k->call.result.session);
    }
    if (m->dying || c->closing)
        return;
    if (!has_cause(c, was, status))
        judge_broken(m->world, "%s: a call for the clock of customer %u ended with %s, without a cause: %s",
                     m->name, number_of(c), err_name(status), err_text());
    if (was == CLOCKS_WAITING) {
        wait_over(c, status);
    } else if (was == CLOCKS_JOINING && status) {
        clock_goodbye(c->worker, clock_session(member_id(machine_member(m)), k->call.call_number));
    } else if (was == CLOCKS_JOINING) {
        minimum_heard(c, k->call.result.clock.minimum);
        k->begins = k->call.result.clock.minimum;
        clock_joined(c->worker, k->call.result.session, &k->call.result.clock);
        m->world->counts[PLAY_clock_joins]++;
    }
    if (k->state == CLOCKS_OUT && atomic_load(&c->worker->clock.session))
        leave(c);
}

static void call_done(struct member_call *call, paramo_err status)
{
    memory_hold();
    call_over(call->arg, status);
    memory_resume();
}

static void begin(struct customer *c, enum clocks_state state)
{
    struct machine *m = c->machine;
    struct customer_clock *k = &c->clock;
    struct lane *control = m->made->control;
    struct member *member = machine_member(m);
    paramo_err err;
    bool enter = !lane_held(control);
    if (enter && !lane_enter(control))
        abort();
    uint64_t now = lane_now(control);
    /* The tasks in the lane's inbox may have changed everything. */
    uint64_t session = c->worker ? atomic_load(&c->worker->clock.session) : 0;
    if (c->worker && (state == CLOCKS_JOINING ? k->state == CLOCKS_OUT : k->state == CLOCKS_IN)) {
        k->call = (struct member_call){.done = call_done, .arg = c};
        k->seen = m->world->clocks_minimum;
        k->waits_since = sim_now(m->world->sim);
        enum clocks_state before = k->state;
        k->state = state;
        uint64_t wait = k->patient ? PATIENT_SECONDS * ENV_SEC : 50 * ENV_MS;
        k->asked_at = now;
        k->asked_from = m->world->moment;
        k->deadline = now + (state == CLOCKS_WAITING ? wait : JOIN_SECONDS * ENV_SEC);
        if (state == CLOCKS_JOINING)
            err = member_clock_join(member, &k->call, number_of(c), k->deadline);
        else if (state == CLOCKS_WAITING)
            err = member_clock_wait(member, &k->call, session, k->demand, k->deadline);
        else
            err = member_clock_leave(member, &k->call, session, k->deadline);
        k->state = err ? before : k->state;
    }
    if (enter)
        lane_leave(control);
}

/* ---- the application ----------------------------------------------------------------------------------- */

static void iteration_ends(struct customer *c)
{
    uint64_t clock;
    uint64_t last = c->last_ts;
    if (clock_end(c->worker, &clock))
        return; /* its membership has ended, or there is no memory */
    c->clock.ends[clock % CLOCKS_KEPT] = last;
    c->machine->world->counts[PLAY_clocks]++;
}

static void turn(struct customer *c)
{
    struct world *w = c->machine->world;
    struct customer_clock *k = &c->clock;
    uint64_t draw = dice_draw(&w->clocks_dice, 32);
    int failure = atomic_load(&c->worker->clock.failure);
    if (failure == PARAMO_E_NOT_FOUND && k->state != CLOCKS_LEAVING && lives(w, c->machine))
        judge_broken(w, "%s: the scheduler does not count customer %u any more, which has not left",
                     c->machine->name, number_of(c));
    if (failure) {
        begin(c, CLOCKS_LEAVING);
    } else if (k->state == CLOCKS_OUT) {
        k->stays = dice_draw(&w->clocks_dice, 2);
        begin(c, CLOCKS_JOINING);
    } else if ((k->state == CLOCKS_IN || k->state == CLOCKS_WAITING) && draw < 16) {
        iteration_ends(c); /* another thread of the application may do so while one waits */
    } else if (k->state == CLOCKS_IN && draw < 31) {
        uint64_t issued = atomic_load(&c->worker->clock.issued), slack = draw % DEMANDS;
        k->demand = issued > slack ? issued - slack : issued;
        k->patient = dice_draw(&w->clocks_dice, 4);
        begin(c, CLOCKS_WAITING);
    } else if (k->state == CLOCKS_IN) {
        begin(c, CLOCKS_LEAVING);
    }
}

static uint64_t highest_clock(const struct world *w)
{
    uint64_t highest = 0;
    for (uint32_t k = 0; k < w->schedule->workers; k++)
        for (unsigned i = 0; i < w->schedule->customers; i++) {
            const struct customer *c = &w->workers[k].customers[i];
            uint64_t issued = c->worker ? atomic_load(&c->worker->clock.issued) : 0;
            highest = issued > highest ? issued : highest;
        }
    return highest;
}

void clocks_turn(struct machine *m)
{
    struct world *w = m->world;
    if (!w->clocks || w->calm || dice_draw(&w->clocks_dice, 4))
        return;
    struct customer *c = &m->customers[dice_draw(&w->clocks_dice, w->schedule->customers)];
    if (c->worker && !c->reads && machine_joined(m) &&
        !(m->client_task && m->client_task_customer == number_of(c)))
        turn(c);
}

bool clocks_calm(struct machine *m)
{
    bool over = true;
    for (unsigned i = 0; i < m->world->schedule->customers; i++) {
        struct customer *c = &m->customers[i];
        if (!c->worker || !machine_joined(m) || m->world->scheduler_lost)
            continue;
        if (c->clock.state == CLOCKS_IN && !c->clock.stays)
            begin(c, CLOCKS_LEAVING);
        if (c->clock.state == CLOCKS_IN && c->clock.stays && !clock_check(c->worker) &&
            atomic_load(&c->worker->clock.issued) < highest_clock(m->world))
            iteration_ends(c); /* requests of others are held for it */
        over = over && (c->clock.state == CLOCKS_OUT || (c->clock.state == CLOCKS_IN && c->clock.stays));
    }
    return over;
}

void clocks_close(struct customer *c)
{
    if (!lane_held(c->machine->made->control))
        abort();
    if (c->clock.state != CLOCKS_OUT && c->clock.state != CLOCKS_IN) {
        bool joins = c->clock.state == CLOCKS_JOINING;
        uint64_t session =
            joins ? clock_session(member_id(machine_member(c->machine)), c->clock.call.call_number) : 0;
        member_cancel(machine_member(c->machine), &c->clock.call);
        if (joins && !c->machine->dying)
            clock_goodbye(c->worker, session);
    }
    if (!c->machine->dying)
        clock_close(c->worker);
    else if (atomic_load(&c->worker->clock.session))
        clock_left(c->worker);
    c->clock.state = CLOCKS_OUT;
}

void clocks_check(struct world *w)
{
    const struct scheduler *s = world_scheduler(w);
    const char *fault = s ? sched_clock_fault(s) : NULL;
    if (fault)
        judge_broken(w, "the scheduler's clocks: %s", fault);
}

void clocks_forget(struct world *w)
{
    w->clocks_minimum = 0;
}
