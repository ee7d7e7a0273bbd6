/*
 * User tasks (Li et al., OSDI'14, section 3.4): functions that servers and workers have under a name, and that any
 * node calls as asynchronous requests. A function may issue requests itself, and its task completes when these
 * subtasks have. No thread waits for them.
 *
 *     static paramo_err pull_here(void *user, paramo_task *task, const paramo_task_info *info)
 *     {
 *         paramo_table *table;
 *         paramo_err err = paramo_task_table(task, "weights", NULL, &table);
 *         ...
 *         options.task = task; options.callback = pulled;    // pulled() calls paramo_task_answer
 *         return paramo_pull(paramo_task_worker(task), table, &kv, &options, &ts);
 *     }
 *
 *     paramo_task_call(worker, PARAMO_GROUP_SERVERS, "pull-here", &n, sizeof n, on_answer, &sum, NULL, &ts);
 *     paramo_wait(worker, ts, 0);
 *
 * docs/TASKS.md has the rules, examples/c/task.c a whole program. Tests: test/node/test_task.c, test/e2e/tasks.sh.
 */
#ifndef PARAMO_TASK_H
#define PARAMO_TASK_H

#include "paramo.h"
#include "task_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The app number (app.h) that tasks use. It is refused as an app of the application's own (INVALID). */
#define PARAMO_TASKS_APP (UINT32_MAX - 1)
/* Calls that a node has at most, queued, running or waiting for subtasks. One more call ends with FULL. */
#define PARAMO_TASKS_MAX 4096
/* Bytes of an answer, and of what one paramo_task_alloc gives, at most. */
#define PARAMO_TASK_BYTES_MAX ((size_t)1 << 30)

/* ---- what can be called ---- */

/* Makes *function one that tasks can name, on each node of this process. It stays for the life of the process. It
 * must be registered before paramo_create or paramo_start: by the program, or by a plugin (--plugin) whose array
 * paramo_tasks names it. No code travels. Copies *function; what its pointers lead to must stay, except name. Any
 * thread. INVALID: a name that is wrong or taken, no function, or one function more than 64. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_task_register(const paramo_task_function *function);

/* ---- calling ---- */

/* Called for each node's answer before the request completes; one at a time for each customer. The answer is valid
 * during the call. It may issue requests; it may not wait. A node whose task failed has no answer. */
typedef void (*paramo_task_answer_fn)(void *arg, uint64_t ts, uint32_t node, const void *answer,
                                      size_t bytes);

/* Calls the function `name` on a node, or on each node of a group (1, 2, 4 or a sum of them), and returns the
 * request's timestamp in *ts (NULL is allowed with a callback). The request completes when all nodes have answered.
 * name is copied; the payload belongs to the library until that moment (with PARAMO_COPY: until the call returns).
 * on_answer NULL: answers are dropped. options may be NULL; they are as for paramo_push, except cmd. wait, test,
 * cancel and callbacks are as for any request. Any thread.
 *
 * Each node that answers has run the function exactly once, even if messages are lost. With NODE_LOST, TIMEOUT or
 * CANCELLED a node has run it once or not at all; it is not stopped where it runs. A task that failed has run once;
 * each request that it issued was applied once or not at all. Calls of one customer to one node begin in the order
 * of issue, unless a message is lost or the node has no room for one; paramo_task_call_after always keeps an order.
 *
 * INVALID: a wrong name, no such node, or an empty group. TOO_LARGE: beyond max_message_bytes. UNSUPPORTED: a node
 * has no function of this name. FULL: a node has PARAMO_TASKS_MAX tasks. NODE_LOST: a node died or left. CLOSED: it
 * is leaving. Otherwise the error of the function, or of its first subtask that failed, with its text. AGAIN and
 * MOVED of a function arrive as HANDLER. All nodes are waited for even if one fails; the request ends with the first
 * failure. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_task_call(paramo_worker *worker, uint32_t to, const char *name,
                                                       const void *payload, size_t payload_bytes,
                                                       paramo_task_answer_fn on_answer, void *arg,
                                                       const paramo_request_options *options, uint64_t *ts);

/* ---- order among calls (Li et al., OSDI'14, sections 3.4 and 3.5) ----
 * A call may name earlier ones. Each node that it goes to runs it after those of them that were sent to this node, too,
 * have ended there, with their subtasks. The caller need not wait for them. If each call names the one before it,
 * this is sequential consistency; if no call names another, eventual consistency; and if each call names the one that
 * is tau + 1 before it, bounded delay. */

/* Names a call, on any worker and node of the job: plain bytes, which may travel. Zeroed: no call. */
typedef struct paramo_task_name {
    uint64_t session, number;
    uint32_t to, reserved;
} paramo_task_name;

#define PARAMO_TASK_AFTER_MAX 64
typedef struct paramo_task_order {
    size_t size;
    const paramo_task_name *after; /* the calls that must have ended; copied. Zeroed ones do not count */
    size_t after_count;            /* at most PARAMO_TASK_AFTER_MAX */
    paramo_task_name *name; /* NULL, or set to the name of this call, before paramo_task_call_after returns */
} paramo_task_order;
PARAMO_API void paramo_task_order_init(paramo_task_order *order);

/* paramo_task_call in an order. Only calls of this function have a name. order NULL: as zeroed. When a call that it
 * names has failed on a node, it ends there with CANCELLED and does not run. A call that names one that never arrives,
 * because it was cancelled or its deadline passed, ends with TIMEOUT after timeout_ms, and so does one that waits
 * longer. A name is good for the next 8,192 calls of its worker by this function, and while the node remembers the
 * worker: one of the 16,384 that called last. A call that comes after an older one waits as if that had not arrived.
 * FULL: more workers than that have tasks that have not ended. UNSUPPORTED: a node of an older version. INVALID: also
 * when a call names itself. TOO_LARGE: too many names. */
PARAMO_API PARAMO_MUST_USE paramo_err
paramo_task_call_after(paramo_worker *worker, uint32_t to, const char *name, const void *payload,
                       size_t payload_bytes, const paramo_task_order *order, paramo_task_answer_fn on_answer,
                       void *arg, const paramo_request_options *options, uint64_t *ts);

/* ---- inside a function ----
 * These may be called in the function and in the callbacks of its subtasks, until the last of them has returned. */

/* The customer with which tasks of this node issue their requests. All tasks of the node share it, so it must not
 * be closed. A subtask may use any other worker of this process, too. */
PARAMO_API paramo_worker *paramo_task_worker(const paramo_task *task);
/* The node that runs the task. */
PARAMO_API paramo_node *paramo_task_node(const paramo_task *task);
/* A table of that worker, by name, as by paramo_table_open; it must not be closed. The first use of a name asks the
 * scheduler, and may be made in the function only, not in a callback (IN_CALLBACK). Later ones cost a look at a list,
 * and do not compare the options. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_task_table(paramo_task *task, const char *name,
                                                        const paramo_table_options *options,
                                                        paramo_table **table);
/* Memory for keys and values of subtasks: bytes of zeros, aligned to 16. The library frees it when the task has been
 * answered. MEMORY; TOO_LARGE: more than PARAMO_TASK_BYTES_MAX. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_task_alloc(paramo_task *task, size_t bytes, void **memory);
/* Sets the bytes that the task answers with when it has completed without an error; none by default. A later call
 * replaces them. They are copied. INVALID: answer is NULL and bytes is not 0. MEMORY; TOO_LARGE. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_task_answer(paramo_task *task, const void *answer, size_t bytes);
/* Ends the task with an error, when its subtasks have completed; the first error counts. For callbacks, which return
 * nothing. text NULL: the sentence of the code. OK as status does nothing. */
PARAMO_API void paramo_task_fail(paramo_task *task, paramo_err status, const char *text);

#ifdef __cplusplus
}
#endif
#endif
