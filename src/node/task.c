#include "node/task.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct task_memory {
    struct task_memory *next;
    max_align_t data[];
};

/* A request of a task, until its callback has returned. */
struct subtask {
    paramo_task *task;
    paramo_callback callback; /* the function's own, or NULL */
    void *arg;
};

static void task_hold(paramo_task *task)
{
    while (atomic_flag_test_and_set_explicit(&task->lock, memory_order_acquire))
        ;
}

static void task_release(paramo_task *task)
{
    atomic_flag_clear_explicit(&task->lock, memory_order_release);
}

paramo_err task_create(const paramo_task_function *function, paramo_request *request,
                       const paramo_request_info *info, paramo_task **task)
{
    assert(function->run);
    assert(function->name);
    paramo_task *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->function = function;
    made->request = request;
    made->info = (paramo_task_info){.size = sizeof made->info,
                                    .name = function->name,
                                    .node = info->to,
                                    .sender = info->sender,
                                    .customer = info->customer,
                                    .ts = info->ts,
                                    .payload = info->seg[PARAMO_SEG_VALS].data,
                                    .payload_bytes = info->seg[PARAMO_SEG_VALS].len};
    atomic_store(&made->open, 1);
    atomic_flag_clear(&made->lock);
    *task = made;
    return PARAMO_OK;
}

void task_fail(paramo_task *task, paramo_err status, const char *text)
{
    assert(atomic_load(&task->open) > 0);
    if (!status)
        return;
    task_hold(task);
    if (!task->status) {
        task->status = status;
        (void)snprintf(task->text, sizeof task->text, "%s", text ? text : err_sentence(status));
    }
    task_release(task);
}

/* A client would send the call again after AGAIN or MOVED. */
static paramo_err as_answer(paramo_err status)
{
    return status == PARAMO_E_AGAIN || status == PARAMO_E_MOVED ? PARAMO_E_HANDLER : status;
}

static paramo_err answer(paramo_task *task)
{
    assert(!atomic_load(&task->open) && task->request); /* once */
    char text[2 * ERR_TEXT_MAX];
    paramo_err err = task->status;
    const char *why = task->text;
    if (!err) {
        err = paramo_answer(task->request, task->answer, task->answer_bytes, NULL);
        why = err_text();
        if (!err)
            return PARAMO_OK;
    }
    (void)snprintf(text, sizeof text, "task %s: %s", task->info.name, why);
    bool answered = paramo_answer_error(task->request, as_answer(err), text) == PARAMO_OK;
    assert(answered); /* without memory the answer has no text */
    (void)answered;
    return err;
}

void task_ended(paramo_task *task)
{
    unsigned open = atomic_fetch_sub(&task->open, 1);
    assert(open > 0);
    if (open > 1)
        return;
    assert(task->over && task->arg);
    void (*over)(void *, struct ordered *, paramo_err) = task->over;
    void *arg = task->arg;
    struct ordered *ordered = task->ordered;
    paramo_err status = answer(task);
    while (task->memory) {
        struct task_memory *m = task->memory;
        task->memory = m->next;
        free(m);
    }
    free(task->answer);
    free(task);
    over(arg, ordered, status);
}

/* ---- subtasks ---- */

static void subtask_done(void *arg, uint64_t ts, paramo_err status)
{
    struct subtask *sub = arg;
    assert(sub->task && atomic_load(&sub->task->open) > 0);
    if (status)
        task_fail(sub->task, status, err_text());
    if (sub->callback)
        sub->callback(sub->arg, ts, status);
    task_ended(sub->task);
    free(sub);
}

paramo_err subtask_begin(const paramo_request_options *options, paramo_request_options *own)
{
    struct subtask *sub = malloc(sizeof *sub);
    if (!sub)
        return err_memory(sizeof *sub);
    unsigned open = atomic_fetch_add(&options->task->open, 1);
    assert(open > 0); /* a function or callback of the task issues it */
    (void)open;
    *sub =
        (struct subtask){.task = options->task, .callback = options->callback, .arg = options->callback_arg};
    *own = *options;
    own->callback = subtask_done;
    own->callback_arg = sub;
    own->flags &= ~(uint32_t)PARAMO_WAITED; /* no thread waits for it */
    return PARAMO_OK;
}

void subtask_drop(const paramo_request_options *own)
{
    struct subtask *sub = own->callback_arg;
    assert(own->callback == subtask_done && atomic_load(&sub->task->open) > 1);
    task_ended(sub->task);
    free(sub);
}

/* ---- inside a function ---- */

static paramo_err check_bytes(const paramo_task *task, const char *what, size_t bytes)
{
    if (!task)
        return err_set(PARAMO_E_INVALID, "task is NULL");
    if (bytes > PARAMO_TASK_BYTES_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "task %s: %s of %zu bytes; at most %zu are possible",
                       task->info.name, what, bytes, PARAMO_TASK_BYTES_MAX);
    return PARAMO_OK;
}

paramo_err paramo_task_alloc(paramo_task *task, size_t bytes, void **memory)
{
    paramo_err err = check_bytes(task, "memory", bytes);
    if (err)
        return err;
    if (!memory)
        return err_set(PARAMO_E_INVALID, "memory is NULL");
    struct task_memory *m = calloc(1, sizeof *m + (bytes ? bytes : 1));
    if (!m)
        return err_memory(bytes);
    task_hold(task);
    m->next = task->memory;
    task->memory = m;
    task_release(task);
    *memory = m->data;
    return PARAMO_OK;
}

paramo_err paramo_task_answer(paramo_task *task, const void *bytes, size_t len)
{
    paramo_err err = check_bytes(task, "an answer", len);
    if (err)
        return err;
    if (len && !bytes)
        return err_set(PARAMO_E_INVALID, "task %s: the answer is NULL", task->info.name);
    void *copy = malloc(len ? len : 1);
    if (!copy)
        return err_memory(len);
    if (len)
        memcpy(copy, bytes, len);
    task_hold(task);
    void *before = task->answer;
    task->answer = copy;
    task->answer_bytes = len;
    task_release(task);
    free(before);
    return PARAMO_OK;
}

void paramo_task_fail(paramo_task *task, paramo_err status, const char *text)
{
    if (task)
        task_fail(task, status, text);
}
