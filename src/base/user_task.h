/*
 * The functions that tasks can name, for the whole process. It never knows nodes or messages. Any thread. Tests:
 * test/base/test_user_task.c.
 */
#ifndef BASE_USER_TASK_H
#define BASE_USER_TASK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "paramo/task_types.h"

enum { USER_TASKS_MAX = 64 };

/* INVALID: see paramo_task_register. */
MUST_USE paramo_err user_task_register(const paramo_task_function *function);
/* name: len bytes of any kind. NULL: no function of this name was registered in this process. */
const paramo_task_function *user_task_find(const char *name, size_t len);
bool user_tasks_any(void);
/* For tests. */
void user_tasks_forget(void);

#endif
