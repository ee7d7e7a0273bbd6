/*
 * The application's functions, by name, for the whole process, and how a request names one. This module never knows
 * tables or messages. Any thread. Tests: test/base/test_user_function.c.
 */
#ifndef BASE_USER_FUNCTION_H
#define BASE_USER_FUNCTION_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"
#include "paramo/function_types.h"

enum { USER_FUNCTIONS_MAX = 64, USER_FUNCTION_NAME_MAX = 32 };

/* A function by name, and what its caller gives it. Zeroed: none. */
struct user_call {
    char name[USER_FUNCTION_NAME_MAX];
    const void *params; /* borrowed; not aligned */
    uint32_t params_bytes;
};

/* INVALID: see paramo_function_register. */
MUST_USE paramo_err user_function_register(const paramo_function *function);
/* NULL: no function of this name was registered in this process. */
const paramo_function *user_function_find(const char *name);
/* INVALID: the name is missing or not valid, or there are too many parameters, or they are NULL. */
MUST_USE paramo_err user_call_make(struct user_call *call, const char *name, const void *params,
                                   size_t bytes);
bool user_name_is_good(const char *name);
/* Finds the function. UNSUPPORTED: this process has none of that name, or it cannot do this. */
MUST_USE paramo_err user_call_find(const struct user_call *call, bool reduces,
                                   const paramo_function **function);
/* For tests. */
void user_functions_forget(void);

#endif
