#include "base/user_function.h"

#include <stdio.h>
#include <string.h>

#include "base/registered.h"

struct user_function {
    paramo_function def;
    char name[USER_FUNCTION_NAME_MAX];
};

static struct user_function functions[USER_FUNCTIONS_MAX];
static struct registered registered = REGISTERED_NONE;

bool user_name_is_good(const char *name)
{
    size_t len = name ? strnlen(name, USER_FUNCTION_NAME_MAX) : 0;
    return len && len < USER_FUNCTION_NAME_MAX &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_-.") == len;
}

const paramo_function *user_function_find(const char *name)
{
    unsigned n = registered_count(&registered);
    for (unsigned i = 0; i < n; i++)
        if (strcmp(functions[i].name, name) == 0)
            return &functions[i].def;
    return NULL;
}

static paramo_err check(const paramo_function *f)
{
    if (!f || f->size != sizeof *f)
        return err_set(PARAMO_E_INVALID, "the function is NULL, or its size is not that of paramo_function");
    if (!user_name_is_good(f->name))
        return err_set(PARAMO_E_INVALID, "the name of a function has 1 to %d of a-z, 0-9, _, - and .",
                       USER_FUNCTION_NAME_MAX - 1);
    if (user_function_find(f->name))
        return err_set(PARAMO_E_INVALID, "function \"%s\" exists already; use another name", f->name);
    if (!f->add != !f->merge || (!f->change && !f->add))
        return err_set(PARAMO_E_INVALID, "function %s: it needs change, or add and merge, or all three",
                       f->name);
    if (f->add && (!f->state_bytes || f->state_bytes > PARAMO_FUNCTION_STATE_MAX))
        return err_set(PARAMO_E_INVALID, "function %s: a state of %zu bytes; 1 to %d are possible", f->name,
                       f->state_bytes, PARAMO_FUNCTION_STATE_MAX);
    if (registered_count(&registered) == USER_FUNCTIONS_MAX)
        return err_set(PARAMO_E_INVALID, "a process has at most %d functions of its own", USER_FUNCTIONS_MAX);
    return PARAMO_OK;
}

paramo_err user_function_register(const paramo_function *function)
{
    registered_begin(&registered);
    paramo_err err = check(function);
    if (!err) {
        struct user_function *f = &functions[registered_count(&registered)];
        (void)snprintf(f->name, sizeof f->name, "%s", function->name);
        f->def = *function;
        f->def.name = f->name;
    }
    registered_end(&registered, !err);
    return err;
}

void user_functions_forget(void)
{
    registered_forget(&registered);
}

paramo_err user_call_make(struct user_call *call, const char *name, const void *params, size_t bytes)
{
    if (!user_name_is_good(name))
        return err_set(PARAMO_E_INVALID, "the name of a function of the application is missing or not valid");
    if (bytes > PARAMO_FUNCTION_PARAMS_MAX || (bytes && !params))
        return err_set(PARAMO_E_INVALID,
                       "function %s: %zu bytes of parameters; at most %d are possible, and not at NULL", name,
                       bytes, PARAMO_FUNCTION_PARAMS_MAX);
    *call = (struct user_call){.params = params, .params_bytes = (uint32_t)bytes};
    (void)snprintf(call->name, sizeof call->name, "%s", name);
    return PARAMO_OK;
}

paramo_err user_call_find(const struct user_call *call, bool reduces, const paramo_function **function)
{
    const paramo_function *f = user_function_find(call->name);
    if (!f)
        return err_set(PARAMO_E_UNSUPPORTED,
                       "this process has no function \"%s\"; each server and worker must load it (--plugin)",
                       call->name);
    if (reduces ? !f->add : !f->change)
        return err_set(PARAMO_E_UNSUPPORTED, "function \"%s\" cannot be used to %s", call->name,
                       reduces ? "reduce rows" : "change rows");
    *function = f;
    return PARAMO_OK;
}
