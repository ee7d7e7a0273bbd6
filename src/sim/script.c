/*
 * What the workers' application does: opens the tables, meets the others at a barrier, pushes, pulls and
 * clears at random while faults strike, adds to a sum at the scheduler now and then, meets again, and leaves
 * once all is calm. It behaves as a sensible program would: a lost table is cleared, a broken barrier is not
 * waited for.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "sim/world.h"
#include "table/table_options.h"

enum { CALL_SECONDS = 30, CALM_OPS = 6 };

static void go(struct machine *m, enum script_step step);

/* ---- requests ------------------------------------------------------------------------------------------ */

static struct op *op_get(struct world *w)
{
    struct op *op = w->free_ops;
    if (op)
        w->free_ops = op->next;
    else if (!(op = malloc(sizeof *op)))
        abort();
    memset(op, 0, offsetof(struct op, keys));
    return op;
}

static void op_retire(struct world *w, struct op *op)
{
    struct op **place = &w->quarantine[w->quarantine_at++ % SIM_QUARANTINE];
    if (*place) {
        ledger_poisoned(w, *place);
        (*place)->next = w->free_ops;
        w->free_ops = *place;
    }
    ledger_poison(op);
    *place = op;
    if (w->by_serial[op->serial % SIM_SERIALS] == op)
        w->by_serial[op->serial % SIM_SERIALS] = NULL;
}

static void op_done(void *arg, uint64_t ts, paramo_err status)
{
    struct op *op = arg;
    struct machine *m = op->machine;
    struct world *w = m->world;
    if (!op->open) {
        judge_broken(w, "%s: request %" PRIu64 " completed twice", m->name, ts);
        return;
    }
    op->open = false;
    m->customers[op->customer].open--;
    sim_note(w->sim, ts << 8 ^ (uint64_t)status);
    if (!m->dying)
        judge_status(op, status);
    m->script.lost = status == PARAMO_E_NODE_LOST;
    ledger_done(w, op, status);
    op_retire(w, op);
}

static enum op_kind kind_draw(struct world *w, enum sim_table table)
{
    uint64_t n = dice_draw(&w->dice, 100);
    if (table != SIM_USER && (n == 0 || (w->recovered && n < 12)))
        return OP_CLEAR;
    if (n < 50)
        return OP_PUSH;
    return n < 62 && table != SIM_VAR ? OP_PUSHPULL : OP_PULL;
}

static void op_issue(struct machine *m, unsigned customer)
{
    struct world *w = m->world;
    struct customer *c = &m->customers[customer];
    struct op *op = op_get(w);
    op->machine = m;
    op->customer = customer;
    op->serial = ++w->serial;
    op->table = (enum sim_table)dice_draw(&w->dice, SIM_TABLES);
    op->kind = kind_draw(w, op->table);
    op->priority = (int32_t)dice_draw(&w->dice, SIM_PRIORITIES);
    if (!ledger_issue(w, op, &w->dice)) {
        op->kind = OP_PULL;
        (void)ledger_issue(w, op, &w->dice);
    }
    paramo_request_options o = {.size = sizeof o,
                                .priority = op->priority,
                                .cmd = (int32_t)op->serial,
                                .callback = op_done,
                                .callback_arg = op};
    if (dice_draw(&w->dice, 12) == 0)
        o.timeout_ms = (uint32_t)dice_scale(&w->dice, 1, 1000);
    op->patient = !o.timeout_ms;
    op->deadline = lane_now(c->worker->lane) +
                   (o.timeout_ms ? o.timeout_ms : m->made->config.request_timeout_ms) * ENV_MS;
    paramo_kv kv = {.size = sizeof kv,
                    .keys = op->keys,
                    .n = op->n,
                    .vals = op->vals,
                    .vals_len = op->kind == OP_CLEAR ? 0 : op->n,
                    .lens = op->table == SIM_VAR ? op->lens : NULL};
    static const enum request_kind kinds[] = {REQUEST_PUSH, REQUEST_PULL, REQUEST_PUSHPULL, REQUEST_CLEAR};
    struct client_call call = {.kind = kinds[op->kind],
                               .table = &m->tables[op->table],
                               .kv = op->kind == OP_CLEAR ? NULL : &kv,
                               .options = &o};
    op->open = true;
    c->open++;
    w->by_serial[op->serial % SIM_SERIALS] = op;
    m->script.ops++;
    paramo_err err = client_issue(c->worker->client, &call, &op->ts);
    if (err) {
        judge_broken(w, "%s: a request was refused: %s: %s", m->name, err_name(err), err_text());
        op->open = false;
        c->open--;
    }
}

/* Cancels the newest request, if it is this customer's. */
static void op_cancel(struct machine *m)
{
    struct world *w = m->world;
    struct op *op = w->by_serial[w->serial % SIM_SERIALS];
    if (!op || op->machine != m || !op->open)
        return;
    op->cancelled = true;
    paramo_err err = client_cancel(m->customers[op->customer].worker->client, op->ts);
    if ((err && err != PARAMO_E_NOT_FOUND) || op->open)
        judge_broken(w, "%s: request %" PRIu64 " was cancelled: %s", m->name, op->ts,
                     err ? err_text() : "it lives on");
}

/* ---- the server's handler: adds, and answers now or later ---------------------------------------------- */

static void answer(struct machine *m, paramo_request *request, const paramo_request_info *info)
{
    uint64_t vals[SIM_OP_KEYS];
    for (size_t i = 0; i < info->n && i < SIM_OP_KEYS; i++)
        vals[i] = m->sums[ledger_index(m->world, info->keys[i])];
    sim_must(paramo_answer(request, vals, info->pull ? info->n : 0, NULL));
}

static void answer_late(struct sim_event *event)
{
    struct late_answer *late = container_of(event, struct late_answer, event);
    struct machine *m = late->machine;
    for (struct late_answer **at = &m->late; *at; at = &(*at)->next) {
        if (*at == late) {
            *at = late->next;
            break;
        }
    }
    answer(m, late->request, late->info);
    free(late);
}

void script_handler(void *arg, paramo_request *request, const paramo_request_info *info)
{
    struct machine *m = arg;
    struct world *w = m->world;
    const uint64_t *vals = info->vals;
    for (size_t i = 0; i < info->n; i++) {
        unsigned at = ledger_index(w, info->keys[i]);
        if (at == SIM_KEYS || info->n > SIM_OP_KEYS) {
            judge_broken(w, "%s: a handler was given key %" PRIu64 ", which nobody sent", m->name,
                         info->keys[i]);
            sim_must(paramo_answer_error(request, PARAMO_E_HANDLER, "no such key"));
            return;
        }
        if (info->push)
            m->sums[at] += vals[i];
    }
    judge_handled(w, m, info);
    if (dice_draw(&w->dice, 3)) {
        answer(m, request, info);
        return;
    }
    struct late_answer *late = malloc(sizeof *late);
    if (!late)
        abort();
    *late = (struct late_answer){
        .next = m->late, .event.fire = answer_late, .machine = m, .request = request, .info = info};
    m->late = late;
    sim_must(
        sim_schedule(w->sim, &late->event, sim_now(w->sim) + dice_scale(&w->dice, ENV_US, 400 * ENV_MS)));
}

/* ---- calls to the scheduler ---------------------------------------------------------------------------- */

static bool no_job(paramo_err status)
{
    return status == PARAMO_E_CLOSED || status == PARAMO_E_FENCED || status == PARAMO_E_SHUTDOWN ||
           status == PARAMO_E_NO_SCHEDULER || status == PARAMO_E_NODE_LOST;
}

static void table_opened(struct machine *m)
{
    struct script *s = &m->script;
    const struct view_table *t = view_table(member_view(machine_member(m)), s->call.result.table);
    if (!t) {
        judge_broken(m->world, "%s: a table was opened that is not in its view", m->name);
        return;
    }
    client_table_init(&m->tables[s->tables++], t);
    go(m, s->tables < SIM_TABLES ? SCRIPT_TABLES : SCRIPT_ENTER);
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

static void call_done(struct member_call *call, paramo_err status)
{
    struct machine *m = call->arg;
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
    if (no_job(status)) {
        go(m, SCRIPT_WORK); /* its process ends, or goes on without a scheduler */
        return;
    }
    if (status && status != PARAMO_E_TIMEOUT && !(barrier && status == PARAMO_E_BARRIER))
        judge_broken(w, "%s: a call to the scheduler failed in step %d: %s: %s", m->name, (int)s->step,
                     err_name(status), err_text());
    if (status && s->step == SCRIPT_TABLES) {
        go(m, SCRIPT_TABLES);
        return;
    }
    switch (s->step) {
    case SCRIPT_TABLES:
        table_opened(m);
        return;
    case SCRIPT_ENTER:
    case SCRIPT_BARRIER:
        if (!status)
            judge_barrier(m, call->result.number);
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

static paramo_err call_begin(struct machine *m)
{
    static const char *const names[SIM_TABLES] = {"dense", "sparse", "var", "user"};
    static const paramo_table_kind kinds[SIM_TABLES] = {PARAMO_TABLE_DENSE, PARAMO_TABLE_SPARSE,
                                                        PARAMO_TABLE_VAR, PARAMO_TABLE_USER};
    static const double one = 1;
    struct script *s = &m->script;
    struct member *member = machine_member(m);
    uint64_t deadline = lane_now(m->made->control) + CALL_SECONDS * ENV_SEC;
    paramo_table_options options;
    s->call = (struct member_call){.done = call_done, .arg = m};
    switch (s->step) {
    case SCRIPT_TABLES:
        table_options_default(&options);
        options.kind = kinds[s->tables];
        options.dtype = PARAMO_I64;
        options.rows = s->tables == SIM_DENSE ? SIM_KEYS : 0;
        return member_table_open(member, &s->call, names[s->tables], &options, deadline);
    case SCRIPT_ENTER:
    case SCRIPT_BARRIER:
        m->world->barrier[m->place].inside = true;
        return member_barrier(member, &s->call, PARAMO_GROUP_WORKERS, 0, deadline);
    case SCRIPT_SUM:
        m->world->sums_sent++;
        return member_kv_add(member, &s->call, "sum", &one, 1, deadline);
    case SCRIPT_READ:
        s->sum_at_least = (double)m->world->sums_acked;
        return member_kv_get(member, &s->call, "sum", deadline);
    default:
        return member_leave(member, &s->call, deadline);
    }
}

static void tick_in(struct machine *m, uint64_t ns)
{
    sim_must(sim_schedule(m->world->sim, &m->script.tick, sim_now(m->world->sim) + ns));
}

/* A call is begun on the control lane; who asks may be on it already (an answer) or not (a tick). */
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
    bool enter = !lane_held(control);
    if (enter && !lane_enter(control))
        abort();
    /* What was in the lane's inbox may have changed everything. */
    if (s->step == step && !s->calling) {
        s->calling = true;
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

/* ---- the tick: what the application does next -----------------------------------------------------------
 */

static void tick(struct sim_event *event)
{
    struct machine *m = container_of(container_of(event, struct script, tick), struct machine, script);
    struct world *w = m->world;
    struct script *s = &m->script;
    uint64_t paused = sim_host_paused_until(m->host);
    if (s->step != SCRIPT_WORK)
        return;
    if (paused > sim_now(w->sim)) {
        sim_must(sim_schedule(w->sim, event, paused));
        return;
    }
    if (s->tables < SIM_TABLES) { /* its job ended before it began */
        if (w->scheduler_lost)
            go(m, SCRIPT_GONE);
        return;
    }
    unsigned open = 0;
    for (unsigned i = 0; i < w->schedule->customers; i++)
        open += m->customers[i].open;
    if (w->calm && s->calm_ops >= CALM_OPS * w->schedule->customers) {
        if (!open && s->calm_ops == CALM_OPS * w->schedule->customers) {
            s->calm_ops++;
            go(m, SCRIPT_READ);
        } else if (!open) {
            go(m, SCRIPT_LEAVE);
        } else {
            tick_in(m, 5 * ENV_MS);
        }
        return;
    }
    uint64_t what = dice_draw(&w->dice, 60);
    if (what < 2 && !s->calling) {
        go(m, what ? SCRIPT_SUM : SCRIPT_BARRIER);
        return;
    }
    unsigned customer = (unsigned)dice_draw(&w->dice, w->schedule->customers);
    if (what == 3) {
        op_cancel(m);
    } else if (m->customers[customer].open < SIM_OPEN) {
        op_issue(m, customer);
        s->calm_ops += w->calm;
    }
    if (s->lost)
        tick_in(m, 100 * ENV_MS);
    else
        tick_in(m, dice_draw(&w->dice, 4) ? dice_scale(&w->dice, 10 * ENV_US, 4 * ENV_MS) : 0);
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
    s->step = SCRIPT_GONE;
}

bool script_over(const struct machine *m)
{
    return m->gone || (m->up && m->script.step == SCRIPT_GONE);
}
