#include "node/tasks.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/user_function.h"
#include "base/user_task.h"
#include "node/api_worker.h"
#include "node/serve.h"
#include "node/task.h"
#include "node/task_order.h"

_Static_assert(ORDER_NAMES_MAX == PARAMO_TASK_AFTER_MAX, "an order has room for all names");

/* A call that has an order, until it has ended. On the lane of apps. */
struct ordered {
    struct order_call call;
    struct tasks *tasks;
    paramo_task *task;
    uint64_t deadline;           /* by which it must have begun */
    struct ordered *prev, *next; /* of those that are held */
    bool held;
    struct lane_task end; /* posted when its task is over */
    bool failed;
};

struct tasks {
    paramo_node *node;
    struct blocking_jobs *thread; /* NULL: the process has no functions */
    paramo_worker *worker;        /* NULL: the node has not joined, or is leaving */
    paramo_task *first, *last;    /* lane of apps: they have come before the node had joined */
    bool begun;                   /* lane of apps */
    struct task_order *order;     /* lane of apps; NULL: no call has had an order */
    struct ordered *held;         /* lane of apps: they wait for others */
    struct lane_timer expiry;     /* the earliest deadline of those, or an earlier time */
    atomic_bool closing;
    atomic_uint open; /* tasks */
};

/* The tasks of which this thread runs a function; NULL: it runs none. */
static _Thread_local const struct tasks *inside;

/* ---- on their thread ---- */

static paramo_err run(struct tasks *tasks, paramo_task *task)
{
    if (atomic_load(&tasks->closing))
        return err_set(PARAMO_E_CLOSED, "the node is leaving");
    (void)err_set(PARAMO_E_HANDLER, "the function has failed"); /* unless the function sets a text */
    return task->function->run(task->function->user, task, &task->info);
}

static void job_work(struct blocking_job *job)
{
    paramo_task *task = container_of(job, paramo_task, job);
    struct tasks *tasks = task->arg;
    assert(!inside && !lane_inside());
    assert(atomic_load(&tasks->open) > 0 && task->function);
    inside = tasks;
    lane_callbacks_begin();
    task_fail(task, run(tasks, task), err_text());
    lane_callbacks_end();
    inside = NULL;
}

static void job_done(struct blocking_job *job)
{
    assert(!inside);
    task_ended(container_of(job, paramo_task, job));
}

static void post(struct tasks *tasks, paramo_task *task)
{
    assert(tasks->begun);
    assert(task->arg == tasks);
    task->job.lane = NULL;
    task->job.work = job_work;
    task->job.done = job_done;
    blocking_jobs_post(tasks->thread, &task->job);
}

/* ---- on the lane of apps ---- */

/* Tasks that came early wait for the node to join. */
static void tasks_check(const struct tasks *tasks)
{
    assert(!tasks->first == !tasks->last && (!tasks->first || !tasks->begun));
    assert(!tasks->held || (!tasks->held->prev && tasks->held->held));
}

static void start(struct tasks *tasks, paramo_task *task)
{
    tasks_check(tasks);
    assert(!task->next);
    if (tasks->begun) {
        post(tasks, task);
        return;
    }
    if (tasks->last)
        tasks->last->next = task;
    else
        tasks->first = task;
    tasks->last = task;
}

/* ---- calls that have an order ---- */

static void unhold(struct ordered *o)
{
    if (!o->held)
        return;
    tasks_check(o->tasks);
    assert(o->prev ? o->prev->next == o : o->tasks->held == o);
    *(o->prev ? &o->prev->next : &o->tasks->held) = o->next;
    if (o->next)
        o->next->prev = o->prev;
    o->prev = o->next = NULL;
    o->held = false;
}

/* Ends a call that does not run. */
static void refuse(struct ordered *o, paramo_err status, const char *text)
{
    assert(order_may_begin(&o->call));
    assert(o->task && lane_held(o->tasks->node->apps));
    unhold(o);
    task_fail(o->task, status, text);
    task_ended(o->task);
}

static void go(struct ordered *o)
{
    assert(order_may_begin(&o->call) && o->task);
    assert(lane_held(o->tasks->node->apps));
    if (o->call.failed) {
        refuse(o, PARAMO_E_CANCELLED, "a call that it comes after has failed");
        return;
    }
    unhold(o);
    start(o->tasks, o->task);
}

/* The call has ended: those that waited only for it may begin. */
static void ordered_end(struct ordered *o, bool failed)
{
    assert(!o->held && order_may_begin(&o->call));
    struct order_call *ready = order_end(o->tasks->order, &o->call, failed);
    free(o);
    for (struct order_call *next; ready; ready = next) {
        next = ready->next;
        go(container_of(ready, struct ordered, call));
    }
}

static void ordered_end_run(struct lane_task *task)
{
    struct ordered *o = container_of(task, struct ordered, end);
    assert(lane_held(o->tasks->node->apps) && !o->held);
    ordered_end(o, o->failed);
}

static void expire(struct lane_timer *timer)
{
    struct tasks *tasks = container_of(timer, struct tasks, expiry);
    tasks_check(tasks);
    assert(!tasks->held || tasks->order);
    uint64_t now = lane_now(tasks->node->apps), earliest = UINT64_MAX;
    for (struct ordered *o = tasks->held, *next; o; o = next) {
        next = o->next;
        assert(o->held && o->tasks == tasks);
        if (o->deadline > now) {
            earliest = o->deadline < earliest ? o->deadline : earliest;
            continue;
        }
        order_withdraw(tasks->order, &o->call);
        refuse(o, PARAMO_E_TIMEOUT, "a call that it comes after has not ended here in time");
    }
    if (tasks->held && lane_timer_arm(tasks->node->apps, &tasks->expiry, earliest))
        log_error("no memory for a timer: tasks that wait for others end late");
}

static void hold(struct ordered *o)
{
    struct tasks *tasks = o->tasks;
    tasks_check(tasks);
    assert(!o->held && !order_may_begin(&o->call));
    bool arm = !tasks->expiry.slot || o->deadline < tasks->expiry.at;
    if (arm && lane_timer_arm(tasks->node->apps, &tasks->expiry, o->deadline)) {
        order_withdraw(tasks->order, &o->call);
        refuse(o, PARAMO_E_MEMORY, err_text());
        return;
    }
    o->held = true;
    o->next = tasks->held;
    if (o->next)
        o->next->prev = o;
    tasks->held = o;
}

/* *ordered NULL: the call has no order. */
static paramo_err ordered_arrive(struct tasks *tasks, const paramo_request_info *info,
                                 struct ordered **ordered)
{
    uint64_t words[3 + 3 * ORDER_NAMES_MAX];
    struct order_name names[ORDER_NAMES_MAX];
    const paramo_bytes *keys = &info->seg[PARAMO_SEG_KEYS];
    size_t count = keys->len / sizeof *words;
    assert(lane_held(tasks->node->apps));
    *ordered = NULL;
    if (info->flags & ~(uint32_t)TASKS_IN_ORDER || info->seg[PARAMO_SEG_LENS].len)
        return err_set(PARAMO_E_UNSUPPORTED, "a call of a task has unknown flags (%" PRIu32 "), or lens",
                       info->flags);
    if (!info->flags && !keys->len)
        return PARAMO_OK;
    if (!info->flags || keys->len > sizeof words || keys->len % sizeof *words || count < 3 || count % 3)
        return err_set(PARAMO_E_INVALID, "the order of a call of a task is not valid: it has %zu bytes",
                       keys->len);
    memcpy(words, keys->data, keys->len);
    size_t n = count / 3 - 1;
    for (size_t i = 0; i < n; i++)
        names[i] = (struct order_name){
            .session = words[3 * i + 3], .number = words[3 * i + 4], .to = (uint32_t)words[3 * i + 5]};
    paramo_err err = tasks->order ? PARAMO_OK : order_create(ORDER_CALLERS_MAX, &tasks->order);
    struct ordered *o = err ? NULL : calloc(1, sizeof *o);
    if (!o)
        return err ? err : err_memory(sizeof *o);
    uint64_t wait_ms = words[0] < UINT32_MAX ? words[0] : UINT32_MAX;
    o->tasks = tasks;
    o->deadline = lane_now(tasks->node->apps) + wait_ms * ENV_MS;
    o->end.run = ordered_end_run;
    o->call.at = info->to;
    o->call.session = words[1];
    o->call.number = words[2];
    err = order_arrive(tasks->order, &o->call, names, n);
    if (err) {
        free(o);
        return err;
    }
    assert(!o->held && !o->task);
    *ordered = o;
    return PARAMO_OK;
}

/* Any thread. The order learns of the end on its lane. */
static void task_over(void *arg, struct ordered *o, paramo_err status)
{
    struct tasks *tasks = arg;
    if (o) {
        o->failed = status != PARAMO_OK;
        assert(o->tasks == tasks && !o->held);
        lane_post(tasks->node->apps, &o->end);
    }
    unsigned open = atomic_fetch_sub(&tasks->open, 1);
    assert(open > 0);
    (void)open;
}

/* ---- calls ---- */

static paramo_err find(const struct tasks *tasks, const paramo_request_info *info,
                       const paramo_task_function **function)
{
    const paramo_bytes *name = &info->seg[PARAMO_SEG_BODY];
    if (!name->len || name->len >= USER_FUNCTION_NAME_MAX)
        return err_set(PARAMO_E_INVALID,
                       "the name in a call of a task is empty or too long: it has %zu bytes", name->len);
    *function = tasks->thread ? user_task_find(name->data, name->len) : NULL;
    if (!*function)
        return err_set(PARAMO_E_UNSUPPORTED,
                       "this process has no task \"%.*s\"; it must be registered before the node starts, or "
                       "come from a plugin (--plugin)",
                       (int)name->len, (const char *)name->data);
    return PARAMO_OK;
}

static void take(void *arg, paramo_request *request, const paramo_request_info *info)
{
    struct tasks *tasks = arg;
    const paramo_task_function *function = NULL;
    paramo_task *task = NULL;
    struct ordered *o = NULL;
    assert(lane_held(tasks->node->apps));
    paramo_err err = ordered_arrive(tasks, info, &o);
    if (!err)
        err = find(tasks, info, &function);
    if (!err && atomic_load(&tasks->open) >= PARAMO_TASKS_MAX)
        err = err_set(PARAMO_E_FULL, "the node has %d tasks that have not ended: call again when some have",
                      PARAMO_TASKS_MAX);
    if (!err)
        err = task_create(function, request, info, &task);
    if (err) {
        (void)!paramo_answer_error(request, err, err_text());
        if (o) {
            order_withdraw(tasks->order, &o->call);
            ordered_end(o, true);
        }
        return;
    }
    atomic_fetch_add(&tasks->open, 1);
    task->over = task_over;
    task->arg = tasks;
    task->ordered = o;
    if (!o) {
        start(tasks, task);
        return;
    }
    assert(o->tasks == tasks && !o->task && !o->held);
    o->task = task;
    if (order_may_begin(&o->call))
        go(o);
    else
        hold(o);
}

/* Starts the tasks that came early. With `closing` these, and those that are held, end. */
static void begin(void *arg)
{
    struct tasks *tasks = arg;
    tasks_check(tasks);
    tasks->begun = true;
    for (paramo_task *task = tasks->first, *next; task; task = next) {
        next = task->next;
        post(tasks, task);
    }
    tasks->first = tasks->last = NULL;
    assert(lane_held(tasks->node->apps));
    if (!atomic_load(&tasks->closing))
        return;
    lane_timer_cancel(tasks->node->apps, &tasks->expiry);
    while (tasks->held) {
        struct ordered *o = tasks->held;
        order_withdraw(tasks->order, &o->call);
        unhold(o);
        post(tasks, o->task);
    }
}

static void nothing(void *arg)
{
    (void)arg;
}

/* ---- life ---- */

paramo_err tasks_create(paramo_node *node)
{
    assert(!node->tasks);
    struct tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return err_memory(sizeof *tasks);
    tasks->node = node;
    tasks->expiry.fire = expire;
    assert(!node->joined && !tasks->begun);
    node->tasks = tasks;
    paramo_err err =
        user_tasks_any() ? blocking_jobs_create(node->env, "pm-tasks", &tasks->thread) : PARAMO_OK;
    return err ? err : serve_app(node, PARAMO_TASKS_APP, take, tasks);
}

paramo_err tasks_begin(paramo_node *node)
{
    struct tasks *tasks = node->tasks;
    assert(node->joined && !tasks->worker);
    if (!tasks->thread)
        return PARAMO_OK;
    paramo_err err = customer_open(node, PARAMO_TASKS_APP, 0, false, &tasks->worker);
    return err ? err : tasks_run(node);
}

paramo_err tasks_run(paramo_node *node)
{
    assert(node->tasks);
    return node_run_on(node->apps, begin, node->tasks);
}

void tasks_end(paramo_node *node)
{
    struct tasks *tasks = node->tasks;
    if (!tasks->thread)
        return;
    atomic_store(&tasks->closing, true);
    (void)!node_run_on(node->apps, begin, tasks);
    blocking_jobs_destroy(tasks->thread); /* its queued tasks are answered */
    tasks->thread = NULL;
    paramo_worker_close(tasks->worker); /* tasks that wait for subtasks are answered */
    tasks->worker = NULL;
    assert(atomic_load(&tasks->open) == 0);
    (void)!node_run_on(node->apps, nothing, NULL); /* the order has learnt of all ends */
}

void tasks_free(paramo_node *node)
{
    if (!node->tasks)
        return;
    blocking_jobs_destroy(node->tasks->thread);
    order_destroy(node->tasks->order);
    free(node->tasks);
    node->tasks = NULL;
}

size_t tasks_held(const paramo_node *node, const paramo_task_info **held, size_t most)
{
    size_t n = 0;
    for (const struct ordered *o = node->tasks ? node->tasks->held : NULL; o; o = o->next, n++) {
        assert(o->held && o->task);
        if (n < most)
            held[n] = &o->task->info;
    }
    return n;
}

paramo_worker *tasks_worker(const paramo_node *node)
{
    return node->tasks ? node->tasks->worker : NULL;
}

paramo_node *tasks_node(const paramo_task *task)
{
    return ((const struct tasks *)task->arg)->node;
}

paramo_err tasks_table(const paramo_task *task, const char *name, const paramo_table_options *options,
                       paramo_table **table)
{
    struct tasks *tasks = task->arg;
    bool waits = inside == tasks;
    if (waits)
        lane_callbacks_end(); /* it waits for the scheduler, with no lane held */
    paramo_err err = paramo_table_open(tasks->worker, name, options, table);
    if (waits)
        lane_callbacks_begin();
    return err;
}
