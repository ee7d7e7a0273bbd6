/*
 * Memory for received bytes: reference-counted buffers in classes of powers of two. Free buffers are kept
 * for the next frame, up to a total, last in first out, so that the bytes that a socket fills are still in
 * the cache when they are used. Any thread. The pool lives until its owner and the last buffer are gone. It
 * never knows frames. Tests: test/van/test_van.c.
 */
#ifndef VAN_POOL_H
#define VAN_POOL_H

#include <stdint.h>

#include "base/err.h"

struct pool;
struct van_hold;

enum {
    POOL_MIN_SHIFT = 10, /* the smallest buffer */
    POOL_MAX_SHIFT = 24, /* longer buffers come from malloc */
    POOL_SLACK = 4096    /* bytes beyond a buffer's power of two, for small segments beside a large one */
};
#define POOL_KEEP_BYTES (UINT64_C(64) << 20) /* free bytes that are kept; arbitrary */

MUST_USE paramo_err pool_create(struct pool **pool);
void pool_destroy(struct pool *pool);
/* A buffer of at least that size, with one reference. */
MUST_USE paramo_err pool_get(struct pool *pool, uint64_t bytes, struct van_hold **hold);
/* The buffer's bytes, aligned to 64. */
uint8_t *hold_data(struct van_hold *hold);
void hold_ref(struct van_hold *hold);
/* Dropping the last reference frees the buffer, or returns it to the pool. */
void hold_unref(struct van_hold *hold);
/* The free bytes now (for tests and counters). */
uint64_t pool_free_bytes(struct pool *pool);

#endif
