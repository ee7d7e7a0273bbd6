/* User tasks: the public functions of paramo/task.h, but for those that need only the task (task.c). */
#include <string.h>

#include "base/user_function.h"
#include "base/user_task.h"
#include "node/api_request.h"
#include "node/api_table.h"
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

static paramo_err call_issue(paramo_worker *worker, uint32_t to, const char *name, const void *payload,
                             size_t payload_bytes, const uint64_t *order, size_t order_count,
                             paramo_task_answer_fn on_answer, void *arg,
                             const paramo_request_options *options, uint64_t *ts)
{
    if (!user_name_is_good(name))
        return err_set(PARAMO_E_INVALID, "the name of a task has 1 to 31 of a-z, 0-9, _, - and .");
    struct client_message m = {.to = to,
                               .app = PARAMO_TASKS_APP,
                               .flags = order ? TASKS_IN_ORDER : 0,
                               .copied = 1u << PARAMO_SEG_BODY | 1u << PARAMO_SEG_KEYS};
    m.seg[PARAMO_SEG_KEYS] =
        (struct van_seg){.data = (void *)(uintptr_t)order, .len = order_count * sizeof *order};
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

paramo_err paramo_task_call(paramo_worker *worker, uint32_t to, const char *name, const void *payload,
                            size_t payload_bytes, paramo_task_answer_fn on_answer, void *arg,
                            const paramo_request_options *options, uint64_t *ts)
{
    paramo_err err = worker_check(worker);
    return err ? err
               : call_issue(worker, to, name, payload, payload_bytes, NULL, 0, on_answer, arg, options, ts);
}

void paramo_task_order_init(paramo_task_order *order)
{
    *order = (paramo_task_order){.size = sizeof *order};
}

paramo_err paramo_task_call_after(paramo_worker *worker, uint32_t to, const char *name, const void *payload,
                                  size_t payload_bytes, const paramo_task_order *order,
                                  paramo_task_answer_fn on_answer, void *arg,
                                  const paramo_request_options *options, uint64_t *ts)
{
    static const paramo_task_order none = {.size = sizeof none};
    uint64_t words[3 + 3 * PARAMO_TASK_AFTER_MAX], given;
    paramo_request_options whole;
    paramo_err err = worker_check(worker);
    if (err)
        return err;
    if (!user_name_is_good(name))
        return err_set(PARAMO_E_INVALID, "the name of a task has 1 to 31 of a-z, 0-9, _, - and .");
    if (!order)
        order = &none;
    if (order->size < sizeof *order || (order->after_count && !order->after))
        return err_set(PARAMO_E_INVALID,
                       "the size of the order was not set (paramo_task_order_init), or after is NULL");
    if (order->after_count > PARAMO_TASK_AFTER_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "task %s: it comes after %zu calls; at most %d are possible", name,
                       order->after_count, PARAMO_TASK_AFTER_MAX);
    options = request_options(options, &whole);
    if (!ts && !(options && (options->callback || options->task)))
        return err_set(PARAMO_E_INVALID, "ts is NULL and there is no callback");
    uint64_t number = atomic_fetch_add(&worker->task_numbers, 1) + 1;
    size_t count = 0;
    words[count++] =
        options && options->timeout_ms ? options->timeout_ms : worker->node->config.request_timeout_ms;
    words[count++] = worker->session;
    words[count++] = number;
    for (size_t i = 0; i < order->after_count; i++) {
        if (!order->after[i].session)
            continue;
        words[count++] = order->after[i].session;
        words[count++] = order->after[i].number;
        words[count++] = order->after[i].to;
    }
    err = call_issue(worker, to, name, payload, payload_bytes, words, count, on_answer, arg, options, &given);
    if (err)
        return err;
    if (ts)
        *ts = given;
    if (order->name)
        *order->name = (paramo_task_name){.session = worker->session, .number = number, .to = to};
    return PARAMO_OK;
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
