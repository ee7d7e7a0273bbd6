#include "base/user_task.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/user_function.h"

struct user_task {
    paramo_task_function def;
    char name[USER_FUNCTION_NAME_MAX];
};

static struct user_task tasks[USER_TASKS_MAX];
static atomic_uint count;
static atomic_flag registering = ATOMIC_FLAG_INIT;

const paramo_task_function *user_task_find(const char *name, size_t len)
{
    unsigned n = atomic_load_explicit(&count, memory_order_acquire);
    for (unsigned i = 0; i < n; i++)
        if (strlen(tasks[i].name) == len && memcmp(tasks[i].name, name, len) == 0)
            return &tasks[i].def;
    return NULL;
}

bool user_tasks_any(void)
{
    return atomic_load(&count) != 0;
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
        return err_set(PARAMO_E_INVALID, "there is a task \"%s\" already", f->name);
    if (atomic_load(&count) == USER_TASKS_MAX)
        return err_set(PARAMO_E_INVALID, "a process has at most %d tasks of its own", USER_TASKS_MAX);
    return PARAMO_OK;
}

paramo_err user_task_register(const paramo_task_function *function)
{
    while (atomic_flag_test_and_set_explicit(&registering, memory_order_acquire))
        ; /* another thread registers: a moment */
    paramo_err err = check(function);
    if (!err) {
        struct user_task *t = &tasks[atomic_load(&count)];
        (void)snprintf(t->name, sizeof t->name, "%s", function->name);
        t->def = *function;
        t->def.name = t->name;
        atomic_fetch_add_explicit(&count, 1, memory_order_release);
    }
    atomic_flag_clear_explicit(&registering, memory_order_release);
    return err;
}

void user_tasks_forget(void)
{
    atomic_store(&count, 0);
}
