/*
 * The tasks of a node: takes calls from the app of tasks, queues them, and runs their functions on a thread of its
 * own, inside lane_callbacks_begin and _end, because a function must not wait. It never knows what a function does
 * (task.h has the life of one task). The simulator plays it (sim/user_tasks.h): its thread is a queue of blocking
 * jobs. Tests: test/node/test_task.c, test/e2e/tasks.sh, fuzz/fuzz_tasks.c.
 *
 *     CALL -> app lane: take() -> held (until those that it names have ended) -> early (until the node has joined)
 *               -> thread: run() -> subtasks -> answered
 * A call is refused if it names no function, if too many tasks are open, or if the node is closing. A held call is
 * also refused if its deadline passes or a call that it names fails.
 */
#ifndef NODE_TASKS_H
#define NODE_TASKS_H

#include "node/node.h"
#include "paramo/task.h"

/* Flags of a call. In order: KEYS are words of 64 bits: how long it may wait, in ms; the caller's session; the call's
 * number; and for each call that it names the session, the number, and the node or group that was called. */
enum { TASKS_IN_ORDER = 1 };

/* The node answers calls from now on. Functions run when it has joined. */
MUST_USE paramo_err tasks_create(paramo_node *node);
/* The node has joined: opens the customer of its tasks, if there are functions. */
MUST_USE paramo_err tasks_begin(paramo_node *node);
/* Functions run from now on: the last step of tasks_begin. Alone: of a node whose functions issue no requests. */
MUST_USE paramo_err tasks_run(paramo_node *node);
/* Calls and all subtasks end with CLOSED from now on. On return all tasks were answered. Before it the app of tasks and
 * all other workers of the node are closed. May be called twice. */
void tasks_end(paramo_node *node);
/* After tasks_end, or when the node could not be made. */
void tasks_free(paramo_node *node);

/* The tasks that wait for others: up to `most` of them in held. Returns how many there are. On the lane of apps, or
 * where no other thread runs (the simulator's judge). */
size_t tasks_held(const paramo_node *node, const paramo_task_info **held, size_t most);
/* The customer of the tasks of this node; NULL: there is none. */
paramo_worker *tasks_worker(const paramo_node *node);
paramo_node *tasks_node(const paramo_task *task);
/* Opens a table of that customer. IN_CALLBACK: the caller is in a callback, not in the function of a task. */
MUST_USE paramo_err tasks_table(const paramo_task *task, const char *name,
                                const paramo_table_options *options, paramo_table **table);

#endif
