/*
 * Reference-counted bytes: what paramo/array.h offers, for the layers below the public API. A reference is a
 * pointer to the struct. The last array_unref frees the memory; it may run on any thread. A slice holds a reference
 * to its whole. This module never knows what the bytes mean. Tests: test/base/test_array.c.
 */
#ifndef BASE_ARRAY_H
#define BASE_ARRAY_H

#include <stdatomic.h>
#include <stddef.h>

#include "base/err.h"

struct paramo_array {
    atomic_uint refs;
    void *data; /* NULL: empty */
    size_t len;
    void (*release)(void *arg, void *data); /* NULL: the memory is part of the struct, or is not released */
    void *arg;
    struct paramo_array *whole; /* a slice's */
};

/* Zeroed, aligned to 64. */
MUST_USE paramo_err array_new(size_t len, struct paramo_array **array);
/* After an error release is not called. */
MUST_USE paramo_err array_wrap(void *data, size_t len, void (*release)(void *arg, void *data), void *arg,
                               struct paramo_array **array);
MUST_USE paramo_err array_slice(struct paramo_array *array, size_t offset, size_t len,
                                struct paramo_array **slice);
struct paramo_array *array_ref(struct paramo_array *array); /* NULL is allowed */
void array_unref(struct paramo_array *array);               /* NULL is allowed */

#endif
