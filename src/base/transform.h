/*
 * Functions that change values: their parameters, and the arithmetic for each type. It never knows how rows are kept.
 * Tests: test/base/test_transform.c.
 */
#ifndef BASE_TRANSFORM_H
#define BASE_TRANSFORM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/user_function.h"
#include "paramo/types.h"

struct transform {
    uint8_t function; /* a paramo_transform_function */
    bool two;         /* it reads a second table */
    uint32_t other;   /* its id */
    double a;
    struct user_call user; /* USER */
};

/* Does the function need a second table? Not for USER, which may have one or not. */
static inline bool transform_takes_two(unsigned function)
{
    return function == PARAMO_TRANSFORM_AXPY || function == PARAMO_TRANSFORM_COPY;
}
/* INVALID: no such function; a second table too many or too few; a is not finite, or a table of integers needs an
 * integer. */
MUST_USE paramo_err transform_check(const struct transform *what, paramo_dtype dtype);
/* Replaces y[0 .. n) by the function's results. x: the values of the second table. Floats are computed in
 * double and rounded once, integers wrap around. NUMERIC: a result is not finite; y holds anything then. */
MUST_USE paramo_err transform_values(const struct transform *what, paramo_dtype dtype, void *y, const void *x,
                                     size_t n);
/* Like transform_values(), by the function of USER: n rows of `columns` values. UNSUPPORTED: this process does not
 * have the function. HANDLER: it has failed. */
MUST_USE paramo_err transform_rows_user(const struct transform *what, paramo_dtype dtype,
                                        const uint64_t *keys, size_t n, uint32_t columns, void *y,
                                        const void *x);

#endif
