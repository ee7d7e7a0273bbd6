/*
 * A counted array of bytes: memory that several holders share without a copy (the role of ps-lite's SArray).
 * A slice is an array of its own that keeps the whole alive. Data may be Paramo's own memory, the caller's
 * with a function that gives it back, or a message's as it was received.
 *
 * A handle is one reference. paramo_array_ref makes another, paramo_array_unref gives one up, and the last
 * one releases the memory, on whatever thread that happens. The count is atomic; the bytes are the holders'
 * own business. Needs no node. Tests: test/node/test_array.c.
 */
#ifndef PARAMO_ARRAY_H
#define PARAMO_ARRAY_H

#include "paramo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* len bytes of new memory, zeroed, aligned to 64. MEMORY. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_new(size_t len, paramo_array **array);
/* A copy of len bytes. MEMORY; INVALID: data is NULL and len is not 0. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_copy(const void *data, size_t len, paramo_array **array);
/* The caller's memory: release(arg, data) is called once, with the last reference; NULL: the memory outlives
 * the array by itself. On an error it is not called. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_wrap(void *data, size_t len,
                                                        void (*release)(void *arg, void *data), void *arg,
                                                        paramo_array **array);
/* Bytes [offset, offset + len) of array, without a copy. INVALID: they are not all in it. */
PARAMO_API PARAMO_MUST_USE paramo_err paramo_array_slice(paramo_array *array, size_t offset, size_t len,
                                                         paramo_array **slice);
PARAMO_API paramo_array *paramo_array_ref(paramo_array *array); /* returns array; NULL is allowed */
PARAMO_API void paramo_array_unref(paramo_array *array);        /* NULL is allowed */
PARAMO_API void *paramo_array_data(const paramo_array *array);  /* NULL for an empty one */
PARAMO_API size_t paramo_array_len(const paramo_array *array);  /* bytes */
/* How many references there are at this moment: 1 means that the caller's is the only one. */
PARAMO_API uint32_t paramo_array_refs(const paramo_array *array);

#ifdef __cplusplus
}
#endif
#endif
