/*
 * A counted array of bytes: memory that several holders share without a copy (the role of ps-lite's SArray).
 * A slice is an array of its own that keeps the whole alive. The data is memory of the library, memory of the
 * caller with a function that releases it, or a received message. Needs no node, and never knows what the
 * bytes mean.
 *
 * A handle is one reference: paramo_array_ref adds one, paramo_array_unref drops one, the last one releases
 * the memory, on the thread that drops it. The count is atomic; access to the bytes is not synchronised.
 * Tests: test/base/test_array.c.
 */
#ifndef PARAMO_ARRAY_H
#define PARAMO_ARRAY_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Allocates len bytes, zeroed, aligned to 64. The caller owns one reference. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_new(size_t len, paramo_array **array);
/* Copies len bytes. INVALID: data is NULL and len is not 0. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_copy(const void *data, size_t len, paramo_array **array);
/* Wraps memory of the caller. The last reference calls release(arg, data) once; release NULL: the memory
 * outlives the array. On an error release is not called. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_wrap(void *data, size_t len,
                                                        void (*release)(void *arg, void *data), void *arg,
                                                        paramo_array **array);
/* Bytes [offset, offset + len) of array, without a copy. INVALID: the range is not inside the array. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_slice(paramo_array *array, size_t offset, size_t len,
                                                         paramo_array **slice);
PARAMO_API paramo_array *paramo_array_ref(paramo_array *array); /* returns array; NULL is allowed */
PARAMO_API void paramo_array_unref(paramo_array *array);        /* NULL is allowed */
PARAMO_API void *paramo_array_data(const paramo_array *array);  /* NULL for an empty one */
PARAMO_API size_t paramo_array_len(const paramo_array *array);  /* bytes */
/* Number of references at this moment. 1: the caller holds the only one. */
PARAMO_API uint32_t paramo_array_refs(const paramo_array *array);

#ifdef __cplusplus
}
#endif
#endif
