/* User tasks: the public functions of paramo/task.h, but for those that need only the task (task.c). */
#include <string.h>

#include "base/user_function.h"
#include "base/user_task.h"
#include "node/api_worker.h"
#include "node/task.h"
#include "node/tasks.h"

paramo_err paramo_task_register(const paramo_task_function *function)
{
    return user_task_register(function);
}

/* `to` is the caller's paramo_task_answer_fn. */
static void show(void (*to)(void), void *arg, uint64_t ts, const struct client_reply *from)
{
    const struct van_seg *answer = &from->seg[PARAMO_SEG_VALS];
    ((paramo_task_answer_fn)to)(arg, ts, from->node, answer->data, (size_t)answer->len);
}

paramo_err paramo_task_call(paramo_worker *worker, uint32_t to, const char *name, const void *payload,
                            size_t payload_bytes, paramo_task_answer_fn on_answer, void *arg,
                            const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!user_name_is_good(name))
        return err_set(PARAMO_E_INVALID, "the name of a task is missing, or wrong");
    struct client_message m = {.to = to, .app = PARAMO_TASKS_APP, .copied = 1u << PARAMO_SEG_BODY};
    m.seg[PARAMO_SEG_VALS] = (struct van_seg){.data = (void *)(uintptr_t)payload, .len = payload_bytes};
    m.seg[PARAMO_SEG_BODY] = (struct van_seg){.data = (void *)(uintptr_t)name, .len = strlen(name)};
    struct client_call call = {.kind = REQUEST_MESSAGE,
                               .messages = &m,
                               .messages_count = 1,
                               .on_reply = on_answer ? show : NULL,
                               .reply_to = (void (*)(void))on_answer,
                               .reply_arg = arg};
    return request_issue(worker, &call, options, ts);
}

paramo_worker *paramo_task_worker(const paramo_task *task)
{
    return task ? tasks_worker(tasks_node(task)) : NULL;
}

paramo_node *paramo_task_node(const paramo_task *task)
{
    return task ? tasks_node(task) : NULL;
}

paramo_err paramo_task_table(paramo_task *task, const char *name, const paramo_table_options *options,
                             paramo_table **table)
{
    if (!task || !name || !table)
        return err_set(PARAMO_E_INVALID, "task, name or table is NULL");
    *table = table_by_name(paramo_task_worker(task), name);
    return *table ? PARAMO_OK : tasks_table(task, name, options, table);
}
