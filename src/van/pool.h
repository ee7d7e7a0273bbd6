/*
 * Memory for received bytes: counted buffers in classes of powers of two. Free ones are kept for the next
 * frame, up to a total, last in first out, so that the bytes a socket fills are still in cache when they are
 * used. Any thread. The pool lives until its owner and the last buffer are gone. Knows nothing of frames.
 * Tests: test/van/test_van.c.
 */
#ifndef VAN_POOL_H
#define VAN_POOL_H

#include <stdint.h>

#include "base/err.h"

struct pool;
struct van_hold;

enum {
    POOL_MIN_SHIFT = 10, /* the smallest buffer */
    POOL_MAX_SHIFT = 24, /* longer ones come from and go to malloc */
    POOL_SLACK =
        4096 /* each class has this more than its power of two: for the small segments beside a large one */
};
#define POOL_KEEP_BYTES (UINT64_C(64) << 20) /* free bytes kept; arbitrary */

MUST_USE paramo_err pool_create(struct pool **pool);
void pool_destroy(struct pool *pool);
/* A buffer of at least bytes with one reference. */
MUST_USE paramo_err pool_get(struct pool *pool, uint64_t bytes, struct van_hold **hold);
/* Where its bytes begin: a multiple of 64. */
uint8_t *hold_data(struct van_hold *hold);
void hold_ref(struct van_hold *hold);
/* Free bytes at present (for tests and counters). */
uint64_t pool_free_bytes(struct pool *pool);

#endif
