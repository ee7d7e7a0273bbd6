#include "sim/user_tasks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/user_task.h"
#include "node/serve.h"
#include "node/tasks.h"
#include "sim/cover.h"
#include "sim/judge.h"
#include "sim/memory.h"
#include "sim/ops.h"
#include "sim/task_judge.h"
#include "sim/world.h"
#include "worker/client_impl.h"

enum {
    TURNS = 24, /* one turn of the application in this many calls a task */
    /* A call that comes after one that is lost ends then. It holds back its customer's clock, for which others wait. */
    HELD_MS = 8000,
    OPEN_MOST = 3, /* calls in flight of a customer */
    TASK_PARTS = 2 /* pushes at once */
};

#define FUNCTION "sim.task"
#define UNKNOWN  "sim.unknown"

/* ---- calling ------------------------------------------------------------------------------------------- */

static void call_ended(void *arg, uint64_t ts, paramo_err status);
static void nested_ended(void *arg, uint64_t ts, paramo_err status);

static void answered(void *arg, uint64_t ts, uint32_t node, const void *answer, size_t bytes)
{
    (void)ts;
    memory_hold();
    task_judge_answered(arg, node, answer, bytes);
    memory_resume();
}

/* The call before it, or another recent one that has a name; NULL: there is none. */
static struct task_call *recent(struct user_tasks *t, const struct task_call *call)
{
    struct task_call *found = NULL;
    uint32_t back = 1 + (uint32_t)dice_draw(&t->dice, TASK_RECENT);
    for (uint32_t i = call->index; i && back && call->index - i < 4 * TASK_RECENT; i--) {
        struct task_call *before = t->calls[i - 1];
        if (!before->ordered || !before->name.session)
            continue;
        found = before;
        back--;
    }
    return found;
}

static void order_draw(struct user_tasks *t, struct task_call *call)
{
    if (!call->ordered || dice_draw(&t->dice, 4) == 0)
        return;
    unsigned want = 1 + (unsigned)dice_draw(&t->dice, TASK_AFTER);
    for (unsigned i = 0; i < want; i++) {
        struct task_call *before = recent(t, call);
        if (before)
            call->after[call->after_n++] = before;
    }
    if (call->after_n && dice_draw(&t->dice, 2)) /* elsewhere it may have nothing to wait for */
        call->to = call->after[0]->to;
}

static void target_draw(struct user_tasks *t, struct task_call *call, const struct view *view)
{
    static const uint32_t groups[] = {PARAMO_GROUP_SERVERS, PARAMO_GROUP_WORKERS,
                                      PARAMO_GROUP_SERVERS | PARAMO_GROUP_WORKERS};
    uint64_t n = dice_draw(&t->dice, 12);
    if (n < 3 && (!call->parent || n == 0))
        call->to = groups[n];
    while (!call->to) {
        const struct view_node *node = &view->nodes[dice_draw(&t->dice, view->nodes_count)];
        call->to = node->role == PARAMO_ROLE_SERVER || node->role == PARAMO_ROLE_WORKER ? node->id : 0;
    }
}

static void targets_note(struct task_call *call, const struct view *view)
{
    for (uint32_t i = 0; i < view->nodes_count && call->targets_count < SCHEDULE_NODES_MAX; i++) {
        const struct view_node *node = &view->nodes[i];
        if (call->to <= PARAMO_GROUP_ALL ? node->role & call->to : node->id == call->to)
            call->targets[call->targets_count++] = node->incarnation;
    }
}

/* Whether calls that call again go on is drawn, so a circle may come of it. */
static void work_draw(struct user_tasks *t, struct task_call *call)
{
    static const uint8_t works[] = {TASK_ANSWERS,      TASK_ANSWERS, TASK_PUSHES,     TASK_PUSHES,
                                    TASK_PUSHES_PULLS, TASK_FAILS,   TASK_FAILS_LATE, TASK_CALLS_OTHER,
                                    TASK_CALLS_OTHER,  TASK_PUSHES};
    call->work = (enum task_work)works[dice_draw(&t->dice, sizeof works)];
    call->unknown = dice_draw(&t->dice, 32) == 0;
    call->unwatched = dice_draw(&t->dice, 8) == 0;
    call->ordered = dice_draw(&t->dice, 3) > 0;
    call->words = dice_draw(&t->dice, 4) ? 1 : 1 + (unsigned)dice_draw(&t->dice, TASK_WORDS);
    for (unsigned i = 0; i < call->words; i++)
        call->payload[i] = task_calls_word(call, i);
}

static paramo_err call_issue(struct task_call *call, paramo_request_options *o)
{
    paramo_task_name names[TASK_AFTER];
    paramo_task_order order;
    paramo_worker *worker = call->machine->customers[call->customer].worker;
    paramo_task_answer_fn on_answer = call->unwatched ? NULL : answered;
    size_t bytes = call->words * sizeof *call->payload;
    const char *name = call->unknown ? UNKNOWN : FUNCTION;
    for (unsigned i = 0; i < call->after_n; i++)
        names[i] = call->after[i]->name;
    paramo_task_order_init(&order);
    order.after = names;
    order.after_count = call->after_n;
    order.name = &call->name;
    return call->ordered ? paramo_task_call_after(worker, call->to, name, call->payload, bytes, &order,
                                                  on_answer, call, o, &call->ts)
                         : paramo_task_call(worker, call->to, name, call->payload, bytes, on_answer, call, o,
                                            &call->ts);
}

/* parent NULL: the application calls. OK: the callback comes, or has come. */
static paramo_err call_make(struct machine *m, unsigned customer, struct task_run *parent, paramo_task *task)
{
    struct world *w = m->world;
    struct customer *c = &m->customers[customer];
    struct task_call *call = task_calls_add(m, customer, parent);
    if (!call)
        return err_set(PARAMO_E_FULL, "the simulator has no room for more calls of tasks");
    call->parent_task = task;
    work_draw(w->tasks, call);
    order_draw(w->tasks, call);
    const struct view *view = c->worker->client->view;
    if (call->to > PARAMO_GROUP_ALL && !view_node(view, call->to))
        call->to = 0; /* the caller does not know that node yet */
    if (!call->to)
        target_draw(w->tasks, call, view);
    targets_note(call, view);
    bool copy = dice_draw(&w->tasks->dice, 3) == 0;
    paramo_request_options o = {.size = sizeof o,
                                .flags = copy ? PARAMO_COPY : 0,
                                .priority = (int32_t)dice_draw(&w->tasks->dice, SIM_PRIORITIES),
                                .task = task,
                                .callback = parent ? nested_ended : call_ended,
                                .callback_arg = call};
    bool hasty = !parent && dice_draw(&w->tasks->dice, 8) == 0;
    if (hasty)
        o.timeout_ms = (uint32_t)dice_scale(&w->tasks->dice, 1, 1000);
    else if (call->after_n)
        o.timeout_ms = HELD_MS;
    call->patient = !hasty;
    call->from = ++w->moment;
    call->issued_at = lane_now(c->worker->lane);
    call->deadline =
        call->issued_at + (o.timeout_ms ? o.timeout_ms : m->made->config.request_timeout_ms) * ENV_MS;
    call->open = true;
    c->calls++;
    if (!parent)
        memory_of(m);
    else
        memory_resume();
    paramo_err err = call_issue(call, &o);
    if (!parent)
        memory_of(NULL);
    else
        memory_hold();
    if (err)
        task_judge_ended(call, err);
    else if (copy)
        memset(call->payload, 0x50, sizeof call->payload); /* the caller's again */
    return err;
}

static void call_ended(void *arg, uint64_t ts, paramo_err status)
{
    struct task_call *call = arg;
    struct machine *m = call->machine;
    (void)ts;
    memory_hold();
    task_judge_ended(call, status);
    if (!m->dying)
        m->world->app->wake(m);
    memory_resume();
}

static void call_cancel(struct machine *m)
{
    struct user_tasks *t = m->world->tasks;
    for (uint32_t i = t->count; i && t->count - i < TASK_RECENT; i--) {
        struct task_call *call = t->calls[i - 1];
        const struct customer *c = &m->customers[call->customer];
        if (call->machine != m || !call->open || call->parent || !c->worker)
            continue;
        call->cancelled = true;
        paramo_err err = client_cancel(c->worker->client, call->ts);
        if ((err && err != PARAMO_E_NOT_FOUND) || call->open)
            judge_broken(m->world, "%s: task %" PRIu32 " was cancelled: %s", m->name, call->index,
                         err ? err_text() : "it lives on");
        return;
    }
}

void user_tasks_turn(struct machine *m)
{
    struct world *w = m->world;
    struct user_tasks *t = w->tasks;
    if (!t || dice_draw(&t->dice, TURNS))
        return;
    unsigned customer = (unsigned)dice_draw(&t->dice, w->schedule->customers);
    const struct customer *c = &m->customers[customer];
    if (dice_draw(&t->dice, 12) == 0)
        call_cancel(m);
    else if (c->worker && !c->reads && machine_joined(m) && c->calls < OPEN_MOST)
        (void)!call_make(m, customer, NULL, NULL);
}

/* ---- what a function does ------------------------------------------------------------------------------ */

/* A callback of the task, or its function, has an error. */
static void fails(struct task_run *run, paramo_task *task, paramo_err status)
{
    task_judge_fails(run, status);
    paramo_task_fail(task, status, "the simulator's function has failed");
}

static paramo_err answer(struct task_run *run, paramo_task *task)
{
    const uint64_t words[TASK_ANSWER] = {run->call->index, run->node};
    memory_resume();
    paramo_err err = paramo_task_answer(task, words, sizeof words);
    memory_hold();
    return err;
}

static void part_ended(void *arg, uint64_t ts, paramo_err status);

static paramo_err part(struct task_run *run, paramo_task *task, bool push)
{
    run->open++;
    paramo_err err = op_subtask(run, run->machine, task, push, &run->machine->world->tasks->dice, part_ended);
    run->open -= err != PARAMO_OK;
    return err;
}

/* The second half of a task: after its push. */
static paramo_err continue_run(struct task_run *run, paramo_task *task)
{
    enum task_work work = run->call->work;
    if (work == TASK_FAILS_LATE)
        return err_set(PARAMO_E_HANDLER, "the simulator's function has failed");
    if (work != TASK_PUSHES_PULLS)
        return PARAMO_OK;
    if (run->pulls)
        return answer(run, task);
    run->pulls = true;
    return part(run, task, false);
}

static void part_ended(void *arg, uint64_t ts, paramo_err status)
{
    struct op *op = arg;
    struct task_run *run = op->run;
    paramo_task *task = op->task;
    memory_hold();
    op_done(op, ts, status);
    if (status)
        task_judge_fails(run, status);
    paramo_err err = status ? PARAMO_OK : continue_run(run, task);
    if (err)
        fails(run, task, err);
    task_judge_part_ends(run);
    memory_resume();
}

static void nested_ended(void *arg, uint64_t ts, paramo_err status)
{
    struct task_call *call = arg;
    struct task_run *run = call->parent;
    (void)ts;
    memory_hold();
    task_judge_ended(call, status);
    if (status)
        task_judge_fails(run, status);
    paramo_err err = status ? PARAMO_OK : answer(run, call->parent_task);
    if (err)
        fails(run, call->parent_task, err);
    task_judge_part_ends(run);
    memory_resume();
}

static paramo_err work(struct task_run *run, paramo_task *task)
{
    struct machine *m = run->machine;
    struct dice *dice = &m->world->tasks->dice;
    void *room;
    memory_resume();
    paramo_err err = paramo_task_alloc(task, 1 + run->call->index % 100, &room);
    memory_hold();
    if (err)
        return err;
    switch (run->call->work) {
    case TASK_FAILS:
        return err_set(PARAMO_E_HANDLER, "the simulator's function has failed");
    case TASK_PUSHES:
        for (uint64_t n = 1 + dice_draw(dice, TASK_PARTS); n && !err; n--)
            err = part(run, task, true);
        return err ? err : answer(run, task);
    case TASK_PUSHES_PULLS:
    case TASK_FAILS_LATE:
        return part(run, task, true);
    case TASK_CALLS_OTHER:
        run->open++;
        err = call_make(m, SIM_TASKS_CUSTOMER, run, task);
        run->open -= err != PARAMO_OK;
        return err;
    default:
        return answer(run, task);
    }
}

static paramo_err run(void *user, paramo_task *task, const paramo_task_info *info)
{
    struct machine *m = paramo_task_node(task)->handlers[0].arg; /* machine_start */
    (void)user;
    memory_hold();
    struct task_run *begun = task_judge_begins(m, info);
    paramo_err err = begun ? work(begun, task) : PARAMO_OK;
    if (begun) {
        task_judge_fails(begun, err);
        task_judge_returns(begun);
    }
    cover_watch(m); /* a request may have started a connection */
    memory_resume();
    return err;
}

/* ---- the node's part ----------------------------------------------------------------------------------- */

void user_tasks_start(struct machine *m)
{
    static const paramo_task_function function = {.size = sizeof function, .name = FUNCTION, .run = run};
    paramo_node *node = m->made;
    m->tasks_ended = false;
    if (!m->world->tasks)
        return;
    if (!user_task_find(FUNCTION, strlen(FUNCTION)))
        sim_must(paramo_task_register(&function));
    sim_must(lane_create(node->env, "apps", 0, &node->apps));
    serve_init(node);
    sim_must(tasks_create(node));
}

void user_tasks_join(struct machine *m)
{
    paramo_node *node = m->made;
    if (!m->world->tasks)
        return;
    node->joined = true;
    node->id = member_id(machine_member(m));
    sim_must(tasks_begin(node));
    m->customers[SIM_TASKS_CUSTOMER] = (struct customer){.worker = tasks_worker(node), .machine = m};
}

void user_tasks_end(struct machine *m)
{
    struct customer *c = &m->customers[SIM_TASKS_CUSTOMER];
    if (!m->made->tasks)
        return;
    c->closing = true;
    tasks_end(m->made);
    c->worker = NULL;
    c->closing = false;
    if (c->open || c->calls)
        judge_broken(m->world, "%s: %u requests of its tasks had no end when they ended", m->name,
                     c->open + c->calls);
}

void user_tasks_leave(struct machine *m)
{
    if (!m->made->tasks || m->tasks_ended)
        return;
    m->tasks_ended = true;
    serve_close_all(m->made);
    user_tasks_end(m);
}
