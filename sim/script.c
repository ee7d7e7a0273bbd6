/*
 * The workers' application. It opens the tables and the pool, meets the others at a barrier, issues random
 * requests while faults strike, takes work units, keeps values at the scheduler, meets again, and leaves in
 * the calm period when the pool is done. It behaves like a sensible program: it clears a lost table, and does
 * not wait at a broken barrier.
 */
#include "sim/script.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/member/member_impl.h"
#include "sim/call_ends.h"
#include "sim/cells.h"
#include "sim/ckpts.h"
#include "sim/client_tasks.h"
#include "sim/clocks.h"
#include "sim/cover.h"
#include "sim/deals.h"
#include "sim/invariants.h"
#include "sim/island.h"
#include "sim/judge.h"
#include "sim/machine.h"
#include "sim/memory.h"
#include "sim/observing.h"
#include "sim/ops.h"
#include "sim/user_tasks.h"
#include "sim/world.h"
#include "table/table_options.h"
#include "worker/carrying.h"
#include "worker/client_impl.h"

enum { CALL_SECONDS = 30, GATHER_SECONDS = 4, CALM_OPS = 6, ISLAND_OPEN = 8 };
#define IDLE_MOST (100 * ENV_MS)

static void go(struct machine *m, enum script_step step);

/* ---- calls to the scheduler ---------------------------------------------------------------------------- */

static void table_opened(struct machine *m)
{
    struct script *s = &m->script;
    const struct view_table *t = view_table(member_view(machine_member(m)), s->call.result.table);
    if (!t) {
        judge_broken(m->world, "%s: a table was opened that is not in its view", m->name);
        return;
    }
    client_table_init(&m->tables[s->tables++], t);
    go(m, s->tables < SIM_TABLES ? SCRIPT_TABLES : SCRIPT_POOL);
}

static void sum_read(struct machine *m)
{
    const struct member_call *call = &m->script.call;
    double sum = 0;
    if (call->result.value_len == sizeof sum)
        memcpy(&sum, call->result.value, sizeof sum);
    if (sum < m->script.sum_at_least || sum > (double)m->world->sums_sent)
        judge_broken(m->world, "%s: the sum at the scheduler is %g, between %g and %g was added", m->name,
                     sum, m->script.sum_at_least, (double)m->world->sums_sent);
}

static void work_unit_dealt(struct machine *m)
{
    struct script *s = &m->script;
    if (s->call.result.state == POOL_FINISHED) {
        deal_finished(m, s->pool_round++);
    } else if (s->call.result.state == POOL_NONE_NOW) {
        s->none_now = true;
    } else if (s->call.result.state == POOL_GOT) {
        s->unit = s->call.result.unit;
        s->holds = true;
        deal_got(m, s->pool_round, &s->unit);
    }
}

static void value_read(struct machine *m)
{
    struct script *s = &m->script;
    m->world->counts[PLAY_values]++;
    uint64_t value = 0;
    if (s->call.result.value_len == sizeof value)
        memcpy(&value, s->call.result.value, sizeof value);
    if (!value || !cell_may_be(&m->world->values[s->kv_of], value, s->kv_from))
        judge_broken(m->world,
                     "%s: node %u's value at the scheduler is %" PRIu64 ", which it is not any more", m->name,
                     s->kv_of, value);
}

static void call_ended(struct machine *m, const struct member_call *call, paramo_err status)
{
    struct script *s = &m->script;
    struct world *w = m->world;
    if (m->dying)
        return;
    if (!s->calling)
        judge_broken(w, "%s: a call to the scheduler ended twice", m->name);
    s->calling = false;
    log_info("%s: step %d of its script: %s", m->name, (int)s->step, err_name(status));
    if (s->step == SCRIPT_LEAVE) {
        go(m, SCRIPT_GONE);
        return;
    }
    bool barrier = s->step == SCRIPT_ENTER || s->step == SCRIPT_BARRIER;
    if (barrier && status) {
        w->barrier[m->place].ghost = true;
        w->barrier[m->place].inside = false;
    }
    if (s->step == SCRIPT_DONE)
        s->holds = false;
    if (status && call_ends_with_job(m, status)) {
        w->pool_leaks = w->pool_leaks || s->step == SCRIPT_NEXT || s->step == SCRIPT_DONE;
        go(m, SCRIPT_WORK); /* its process ends, or continues without a scheduler */
        return;
    }
    bool memory = status == PARAMO_E_MEMORY && memory_failed_call(m, 0, s->kv_from);
    bool late = status == PARAMO_E_TIMEOUT && call_ends_late(m, s->asked_at, s->deadline, s->kv_from);
    bool broken = barrier && status == PARAMO_E_BARRIER && call_ends_barrier(w, s->kv_from);
    if (s->step == SCRIPT_STALE) {
        if (!memory && !late)
            deal_stale(m, status);
        go(m, SCRIPT_WORK);
        return;
    }
    if (status && !memory && !late && !broken)
        judge_broken(w, "%s: a call to the scheduler failed in step %d: %s: %s", m->name, (int)s->step,
                     err_name(status), err_text());
    if (s->step == SCRIPT_POOL || (status && s->step == SCRIPT_TABLES)) {
        bool alone = w->calm || w->gathered; /* a restarted worker does not wait for workers that are busy */
        go(m, status ? s->step : alone ? SCRIPT_WORK : SCRIPT_ENTER);
        return;
    }
    switch (s->step) {
    case SCRIPT_TABLES:
        table_opened(m);
        return;
    case SCRIPT_ENTER:
    case SCRIPT_BARRIER:
        if (!status)
            invariants_barrier(m, call->result.number);
        w->gathered = w->gathered || !status;
        break;
    case SCRIPT_NEXT:
        if (!status)
            work_unit_dealt(m);
        else
            w->pool_leaks = true;
        break;
    case SCRIPT_DONE:
        if (!memory && !late)
            deal_reported(m, &s->unit, status);
        w->pool_leaks = w->pool_leaks || status;
        break;
    case SCRIPT_PUT:
        if (!status)
            cell_written(&w->values[m->node], s->kv_value, s->kv_from, ++w->moment);
        break;
    case SCRIPT_GET:
        if (!status)
            value_read(m);
        break;
    case SCRIPT_SUM:
        w->sums_acked += !status;
        break;
    case SCRIPT_READ:
        if (!status)
            sum_read(m);
        break;
    default:
        break;
    }
    go(m, SCRIPT_WORK);
}

static void call_done(struct member_call *call, paramo_err status)
{
    memory_hold();
    call_ended(call->arg, call, status);
    memory_resume();
}

static paramo_err call_begin(struct machine *m)
{
    static const paramo_table_kind kinds[SIM_TABLES] = {
        PARAMO_TABLE_DENSE, PARAMO_TABLE_SPARSE, PARAMO_TABLE_VAR,    PARAMO_TABLE_USER,
        PARAMO_TABLE_DENSE, PARAMO_TABLE_SPARSE, PARAMO_TABLE_SPARSE, PARAMO_TABLE_SPARSE};
    static const double one = 1;
    struct world *w = m->world;
    struct script *s = &m->script;
    struct member *member = machine_member(m);
    char key[24];
    uint32_t customer, patience;
    uint64_t deadline = lane_now(m->made->control) + CALL_SECONDS * ENV_SEC;
    paramo_table_options options;
    s->call = (struct member_call){.done = call_done, .arg = m};
    s->asked_at = lane_now(m->made->control);
    if (s->step == SCRIPT_GET)
        deadline = s->asked_at + ENV_SEC;
    else if (s->step == SCRIPT_BARRIER)
        deadline = s->asked_at + GATHER_SECONDS * ENV_SEC;
    s->deadline = deadline;
    switch (s->step) {
    case SCRIPT_TABLES:
        table_options_default(&options);
        options.kind = kinds[s->tables];
        options.dtype = reals_has((enum sim_table)s->tables) ? PARAMO_F64 : PARAMO_I64;
        options.aggregate = s->tables == SIM_SUMS ? PARAMO_AGGREGATE_SUM : PARAMO_AGGREGATE_NONE;
        options.rows = options.kind == PARAMO_TABLE_DENSE ? SIM_KEYS : 0;
        options.dim = s->tables == SIM_VAR ? 1 : sim_row_values((enum sim_table)s->tables, 0);
        if (judge_replicas(w, (enum sim_table)s->tables) < w->schedule->replicas)
            options.replicas = judge_replicas(w, (enum sim_table)s->tables);
        if (s->tables == SIM_CELLS)
            options.optimizer = PARAMO_OPT_ASSIGN;
        return member_table_open(member, &s->call, sim_table_names[s->tables], &options, deadline);
    case SCRIPT_POOL:
        return member_pool_open(member, &s->call, "pool", SIM_STREAMS, SIM_ROUNDS, deadline);
    case SCRIPT_NEXT:
        customer = (uint32_t)dice_draw(&w->dice, 2);
        patience = 200 * (uint32_t)dice_draw(&w->dice, 2);
        return member_pool_next(member, &s->call, "pool", customer, s->pool_round, patience, deadline);
    case SCRIPT_DONE:
        if (!deal_exists(&s->unit))
            return member_pool_end(member, &s->call, "pool", &s->unit, deadline);
        w->deals[s->unit.stream][s->unit.index].sent[s->unit.round]++;
        return member_pool_done(member, &s->call, "pool", &s->unit, deadline);
    case SCRIPT_STALE:
        m->has_stale = false;
        return member_pool_done(member, &s->call, "pool", &m->stale, deadline);
    case SCRIPT_PUT:
        (void)snprintf(key, sizeof key, "value-%u", m->node);
        s->kv_value = ++w->values_put;
        cell_write(&w->values[m->node], s->kv_value, s->kv_from);
        return member_kv_put(member, &s->call, key, &s->kv_value, sizeof s->kv_value, deadline);
    case SCRIPT_GET:
        (void)snprintf(key, sizeof key, "value-%u", s->kv_of);
        return member_kv_get(member, &s->call, key, deadline);
    case SCRIPT_ENTER:
    case SCRIPT_BARRIER:
        w->barrier[m->place].inside = true;
        return member_barrier(member, &s->call, PARAMO_GROUP_WORKERS, 0, deadline);
    case SCRIPT_SUM:
        w->sums_sent++;
        return member_kv_add(member, &s->call, "sum", &one, 1, deadline);
    case SCRIPT_READ:
        s->sum_at_least = (double)w->sums_acked;
        return member_kv_get(member, &s->call, "sum", deadline);
    default:
        return member_leave(member, &s->call, deadline);
    }
}

/* Does not wait for the answer: requests are issued in the same time. */
static bool beside(enum script_step step)
{
    return step == SCRIPT_SUM || step == SCRIPT_NEXT || step == SCRIPT_DONE || step == SCRIPT_STALE ||
           step == SCRIPT_PUT || step == SCRIPT_GET;
}

static void tick_in(struct machine *m, uint64_t ns)
{
    sim_must(sim_schedule(m->world->sim, &m->script.tick, sim_now(m->world->sim) + ns));
}

/* A call begins on the control lane. The caller may be on it already (an answer) or not (a tick). */
static void go(struct machine *m, enum script_step step)
{
    struct script *s = &m->script;
    struct lane *control = m->made->control;
    s->step = step;
    if (step == SCRIPT_GONE)
        return;
    if (step == SCRIPT_WORK) {
        tick_in(m, 0);
        return;
    }
    if (beside(step) && !m->world->calm)
        tick_in(m, 0);
    bool enter = !lane_held(control);
    if (enter && !lane_enter(control))
        abort();
    /* The tasks in the lane's inbox may have changed everything. */
    if (s->step == step && !s->calling) {
        s->calling = true;
        s->kv_from = ++m->world->moment;
        if (call_begin(m)) {
            s->calling = false;
            if (step == SCRIPT_ENTER || step == SCRIPT_BARRIER)
                m->world->barrier[m->place].inside = false;
            s->step = step == SCRIPT_LEAVE ? SCRIPT_GONE : SCRIPT_WORK;
            if (s->step == SCRIPT_WORK)
                tick_in(m, 10 * ENV_MS);
        }
    }
    if (enter)
        lane_leave(control);
}

/* ---- the tick: what the application does next ---------------------------------------------------------- */

/* Makes a call to the scheduler, or works on a unit. */
static void call_draw(struct machine *m, uint64_t what)
{
    struct world *w = m->world;
    struct script *s = &m->script;
    if (what < 2)
        go(m, what ? SCRIPT_SUM : SCRIPT_BARRIER);
    else if (m->has_stale)
        go(m, SCRIPT_STALE);
    else if (s->holds)
        go(m, SCRIPT_DONE);
    else if (what < 53 && s->pool_round < SIM_ROUNDS)
        go(m, SCRIPT_NEXT);
    else if (what < 55 && cell_room(w, &w->values[m->node]))
        go(m, SCRIPT_PUT);
    else {
        s->kv_of = 1 + w->schedule->servers + (unsigned)dice_draw(&w->dice, w->schedule->workers);
        go(m, SCRIPT_GET);
    }
}

/* All units of the pool must be done at the end, unless one was lost with a failed call. */
static bool pool_continues(const struct machine *m)
{
    const struct world *w = m->world;
    return m->script.pool_round < SIM_ROUNDS && !w->pool_leaks && !w->scheduler_lost && !m->declared_dead &&
           machine_joined(m);
}

/* Issues requests of one customer in a row; none if as many are in flight as may be. */
static void issue(struct machine *m)
{
    struct world *w = m->world;
    struct script *s = &m->script;
    unsigned customer = (unsigned)dice_draw(&w->dice, w->schedule->customers);
    uint64_t n = 1 + dice_draw(&w->dice, w->calm || s->lost ? 1 : w->schedule->at_once);
    s->idle = !s->idle ? ENV_MS : s->idle < IDLE_MOST ? 2 * s->idle : IDLE_MOST;
    while (n-- && m->customers[customer].worker && m->customers[customer].open < w->schedule->open_most) {
        s->idle = 0;
        s->calm_ops += w->calm;
        op_issue(m, customer);
    }
}

/* Continues although requests to the other side hang. */
static void issue_on_island(struct machine *m)
{
    struct world *w = m->world;
    struct customer *c = &m->customers[dice_draw(&w->dice, w->schedule->customers)];
    if (c->worker && c->open < w->schedule->open_most + ISLAND_OPEN)
        op_issue(m, (unsigned)(c - m->customers));
    tick_in(m, dice_scale(&w->dice, 10 * ENV_MS, 200 * ENV_MS));
}

static void work(struct machine *m)
{
    struct world *w = m->world;
    struct script *s = &m->script;
    uint64_t what = dice_draw(&w->dice, 60);
    uint64_t now = sim_now(w->sim);
    if (now < s->silent_until && !w->calm) {
        tick_in(m, s->silent_until - now);
        return;
    }
    if (island_needs(w)) {
        m->script.idle = 0;
        issue_on_island(m);
        return;
    }
    bool call = (what == 0 && dice_draw(&w->dice, 6) == 0) || what == 1 || (what >= 50 && what < 56);
    if (call && !s->calling && s->step == SCRIPT_WORK && !s->idle) {
        call_draw(m, what);
        return;
    }
    unsigned client_task = (unsigned)(what == 57 ? dice_draw(&w->dice, w->schedule->customers) : 0);
    if (what == 57 && !m->client_task && !w->calm && m->customers[client_task].worker)
        client_task_start(m, client_task, dice_draw(&w->dice, 15));
    else if (what == 3)
        op_cancel(m);
    clocks_turn(m);
    user_tasks_turn(m);
    issue(m);
    if (s->lost)
        tick_in(m, 100 * ENV_MS);
    else if (s->idle)
        tick_in(m, s->idle);
    else
        tick_in(m, dice_draw(&w->dice, 4) ? dice_scale(&w->dice, 10 * ENV_US, 4 * ENV_MS) : 0);
}

/* Customers that are open, or will be opened again. A customer that was closed when its node lost its
 * scheduler for good stays closed and issues no more requests. */
static unsigned customers(const struct machine *m)
{
    unsigned n = 0;
    for (unsigned i = 0; i < m->world->schedule->customers; i++)
        n += m->customers[i].worker || m->customers[i].reopen.slot;
    return n + observing_continues(m);
}

/* Flushes of the customers that hold anything back. False: none does. */
static bool flush_held(struct machine *m)
{
    bool any = false;
    for (unsigned i = 0; i < m->world->schedule->customers; i++) {
        struct customer *c = &m->customers[i];
        if (!c->worker || c->worker->client->life->failure || c->held.gave_up ||
            !carrying_any(c->worker->client))
            continue;
        op_flush(m, i);
        any = true;
    }
    return any;
}

static void turn(struct machine *m)
{
    struct world *w = m->world;
    struct script *s = &m->script;
    uint64_t paused = sim_host_paused_until(m->host);
    if (s->step != SCRIPT_WORK && (w->calm || !beside(s->step)))
        return;
    if (paused > sim_now(w->sim)) {
        sim_must(sim_schedule(w->sim, &s->tick, paused));
        return;
    }
    if (s->tables < SIM_TABLES) { /* the job ended before this worker began */
        if (w->scheduler_lost)
            go(m, SCRIPT_GONE);
        return;
    }
    unsigned open = 0;
    for (unsigned i = 0; i < w->schedule->customers; i++)
        open += m->customers[i].open + m->customers[i].calls;
    bool due = ckpts_turn(m, false), clocks_over = !w->calm || clocks_calm(m);
    unsigned last = CALM_OPS * customers(m);
    if (w->calm && s->calm_ops >= last) {
        if (!open && s->calm_ops == last) {
            s->calm_ops++;
            go(m, SCRIPT_READ);
        } else if (!open && pool_continues(m) && s->none_now) {
            s->none_now = false;
            tick_in(m, 20 * ENV_MS);
        } else if (!open && pool_continues(m)) {
            go(m, s->holds ? SCRIPT_DONE : SCRIPT_NEXT);
        } else if (!open && flush_held(m)) {
            tick_in(m, 5 * ENV_MS);
        } else if (!open && !m->client_task && !due && clocks_over && !ckpts_turn(m, true)) {
            user_tasks_leave(m);
            go(m, SCRIPT_LEAVE);
        } else {
            tick_in(m, 5 * ENV_MS);
        }
        return;
    }
    work(m);
}

static void tick(struct sim_event *event)
{
    struct machine *m = container_of(container_of(event, struct script, tick), struct machine, script);
    turn(m);
    cover_watch(m); /* a request may have started a connection */
}

void script_wake(struct machine *m)
{
    struct script *s = &m->script;
    if (s->idle && s->tick.slot) {
        s->idle = 0;
        tick_in(m, 0);
    }
}

void script_start(struct machine *m)
{
    m->script = (struct script){.step = SCRIPT_JOIN, .tick.fire = tick};
}

void script_joined(struct machine *m)
{
    machine_open_customers(m);
    go(m, SCRIPT_TABLES);
}

void script_stop(struct machine *m)
{
    struct script *s = &m->script;
    sim_cancel(m->world->sim, &s->tick);
    if (s->calling && (s->step == SCRIPT_ENTER || s->step == SCRIPT_BARRIER)) {
        m->world->barrier[m->place].ghost = true;
        m->world->barrier[m->place].inside = false;
    }
    m->has_stale = m->has_stale || s->holds;
    if (s->holds)
        m->stale = s->unit;
    s->step = SCRIPT_GONE;
}

bool script_works(const struct machine *m)
{
    return m->script.step == SCRIPT_WORK || beside(m->script.step);
}

bool script_over(const struct machine *m)
{
    return m->gone || (m->up && m->script.step == SCRIPT_GONE);
}
