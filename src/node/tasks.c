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

struct tasks {
    paramo_node *node;
    struct blocking_jobs *thread; /* NULL: the process has no functions */
    paramo_worker *worker;        /* NULL: the node has not joined, or is leaving */
    paramo_task *first, *last;    /* lane of apps: they have come before the node had joined */
    bool begun;                   /* lane of apps */
    atomic_bool closing;
    atomic_uint open; /* tasks */
};

/* The tasks whose function this thread is in; NULL: of none. */
static _Thread_local const struct tasks *inside;

/* ---- on their thread ---- */

static paramo_err run(struct tasks *tasks, paramo_task *task)
{
    if (atomic_load(&tasks->closing))
        return err_set(PARAMO_E_CLOSED, "the node is leaving");
    (void)err_set(PARAMO_E_HANDLER, "the function has failed"); /* unless it says more */
    return task->function->run(task->function->user, task, &task->info);
}

static void job_work(struct blocking_job *job)
{
    paramo_task *task = container_of(job, paramo_task, job);
    struct tasks *tasks = task->arg;
    assert(!inside && !lane_inside());
    inside = tasks;
    lane_callbacks_begin();
    task_fail(task, run(tasks, task), err_text());
    lane_callbacks_end();
    inside = NULL;
}

static void job_done(struct blocking_job *job)
{
    task_ended(container_of(job, paramo_task, job));
}

static void post(struct tasks *tasks, paramo_task *task)
{
    task->job.lane = NULL;
    task->job.work = job_work;
    task->job.done = job_done;
    blocking_jobs_post(tasks->thread, &task->job);
}

static void task_over(void *arg)
{
    struct tasks *tasks = arg;
    unsigned open = atomic_fetch_sub(&tasks->open, 1);
    assert(open > 0);
    (void)open;
}

/* ---- on the lane of apps ---- */

static paramo_err find(const struct tasks *tasks, const paramo_request_info *info,
                       const paramo_task_function **function)
{
    const paramo_bytes *name = &info->seg[PARAMO_SEG_BODY];
    if (info->flags || info->seg[PARAMO_SEG_KEYS].len || info->seg[PARAMO_SEG_LENS].len)
        return err_set(PARAMO_E_UNSUPPORTED, "a call of a task with flags %" PRIu32 " or keys or lens",
                       info->flags);
    if (!name->len || name->len >= USER_FUNCTION_NAME_MAX)
        return err_set(PARAMO_E_INVALID, "a call of a task whose name has %zu bytes", name->len);
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
    paramo_err err = find(tasks, info, &function);
    if (!err && atomic_load(&tasks->open) >= PARAMO_TASKS_MAX)
        err = err_set(PARAMO_E_FULL, "the node has %d tasks that have not ended: call again when some have",
                      PARAMO_TASKS_MAX);
    if (!err)
        err = task_create(function, request, info, task_over, tasks, &task);
    if (err) {
        (void)!paramo_answer_error(request, err, err_text());
        return;
    }
    atomic_fetch_add(&tasks->open, 1);
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

/* Those that have come early run, or with `closing` end. */
static void begin(void *arg)
{
    struct tasks *tasks = arg;
    tasks->begun = true;
    for (paramo_task *task = tasks->first, *next; task; task = next) {
        next = task->next;
        post(tasks, task);
    }
    tasks->first = tasks->last = NULL;
}

/* ---- life ---- */

paramo_err tasks_create(paramo_node *node)
{
    struct tasks *tasks = calloc(1, sizeof *tasks);
    if (!tasks)
        return err_memory(sizeof *tasks);
    tasks->node = node;
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
    paramo_err err = customer_open(node, PARAMO_TASKS_APP, 0, &tasks->worker);
    return err ? err : node_run_on(node->apps, begin, tasks);
}

void tasks_end(paramo_node *node)
{
    struct tasks *tasks = node->tasks;
    if (!tasks->thread)
        return;
    atomic_store(&tasks->closing, true);
    (void)!node_run_on(node->apps, begin, tasks);
    blocking_jobs_destroy(tasks->thread); /* those that wait for it are answered */
    tasks->thread = NULL;
    paramo_worker_close(tasks->worker); /* and so are those that wait for subtasks */
    tasks->worker = NULL;
    assert(atomic_load(&tasks->open) == 0);
}

void tasks_free(paramo_node *node)
{
    if (!node->tasks)
        return;
    blocking_jobs_destroy(node->tasks->thread);
    free(node->tasks);
    node->tasks = NULL;
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
