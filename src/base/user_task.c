#include "base/user_task.h"

#include <stdio.h>
#include <string.h>

#include "base/registered.h"
#include "base/user_function.h"

struct user_task {
    paramo_task_function def;
    char name[USER_FUNCTION_NAME_MAX];
};

static struct user_task tasks[USER_TASKS_MAX];
static struct registered registered = REGISTERED_NONE;

const paramo_task_function *user_task_find(const char *name, size_t len)
{
    unsigned n = registered_count(&registered);
    for (unsigned i = 0; i < n; i++)
        if (strlen(tasks[i].name) == len && memcmp(tasks[i].name, name, len) == 0)
            return &tasks[i].def;
    return NULL;
}

bool user_tasks_any(void)
{
    return registered_count(&registered) != 0;
}

static paramo_err check(const paramo_task_function *f)
{
    if (!f || f->size != sizeof *f || !f->run)
        return err_set(PARAMO_E_INVALID,
                       "the task's function is NULL, or its size is not that of paramo_task_function");
    if (!user_name_is_good(f->name))
        return err_set(PARAMO_E_INVALID, "the name of a task has 1 to %d of a-z, 0-9, _, - and .",
                       USER_FUNCTION_NAME_MAX - 1);
    if (user_task_find(f->name, strlen(f->name)))
        return err_set(PARAMO_E_INVALID, "task \"%s\" exists already; use another name", f->name);
    if (registered_count(&registered) == USER_TASKS_MAX)
        return err_set(PARAMO_E_INVALID, "a process has at most %d tasks of its own", USER_TASKS_MAX);
    return PARAMO_OK;
}

paramo_err user_task_register(const paramo_task_function *function)
{
    registered_begin(&registered);
    paramo_err err = check(function);
    if (!err) {
        struct user_task *t = &tasks[registered_count(&registered)];
        (void)snprintf(t->name, sizeof t->name, "%s", function->name);
        t->def = *function;
        t->def.name = t->name;
    }
    registered_end(&registered, !err);
    return err;
}

void user_tasks_forget(void)
{
    registered_forget(&registered);
}
