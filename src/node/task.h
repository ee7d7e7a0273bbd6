/*
 * One task: its subtasks (requests of its function), memory, answer and error. It is answered and freed when its
 * function has returned and each subtask has completed. It never knows how tasks arrive or which thread runs them
 * (tasks.h). Any thread. Tests: test/node/test_task.c.
 */
#ifndef NODE_TASK_H
#define NODE_TASK_H

#include <stdatomic.h>

#include "base/err.h"
#include "env/blocking_job.h"
#include "paramo/task.h"

struct task_memory;
struct ordered;

struct paramo_task {
    struct blocking_job job; /* runs the function; of tasks.c */
    paramo_task *next;       /* of a queue of tasks.c */
    /* called once, on any thread, when the task is answered and freed */
    void (*over)(void *arg, struct ordered *ordered, paramo_err status);
    void *arg;
    struct ordered *ordered; /* of tasks.c; NULL: a call without an order */
    const paramo_task_function *function;
    paramo_request *request;
    paramo_task_info info;
    atomic_uint open; /* the function until it has returned, and its subtasks */
    atomic_flag lock; /* guards the fields below; held for a few instructions */
    paramo_err status;
    char text[ERR_TEXT_MAX];
    void *answer;
    size_t answer_bytes;
    struct task_memory *memory;
};

/* The task is open for its function. The owner sets over, which is called once, at its end, and arg. MEMORY. */
MUST_USE paramo_err task_create(const paramo_task_function *function, paramo_request *request,
                                const paramo_request_info *info, paramo_task **task);
/* The first error counts. */
void task_fail(paramo_task *task, paramo_err status, const char *text);
/* Its function, or a subtask, has ended: the last of them answers and frees the task. */
void task_ended(paramo_task *task);

/* Makes *own the options of a subtask of options->task. MEMORY: the request is no subtask. */
MUST_USE paramo_err subtask_begin(const paramo_request_options *options, paramo_request_options *own);
/* The request with these options was not issued. */
void subtask_drop(const paramo_request_options *own);

#endif
