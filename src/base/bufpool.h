/*
 * A pool of byte buffers in powers of two, so that steady traffic neither asks the system for memory nor pays
 * for its first touch. One owner. The cache is bounded. Bytes that are handed out are counted, so that a test
 * can see that all were returned. Tests: test/base/test_bufpool.c.
 */
#ifndef BASE_BUFPOOL_H
#define BASE_BUFPOOL_H

#include <stddef.h>

enum {
    BUFPOOL_MIN_SHIFT = 8,
    BUFPOOL_MAX_SHIFT = 22,
    BUFPOOL_CLASSES = BUFPOOL_MAX_SHIFT - BUFPOOL_MIN_SHIFT + 1
};

struct bufpool_free {
    struct bufpool_free *next;
};

struct bufpool {
    struct bufpool_free *free[BUFPOOL_CLASSES];
    size_t cached, cached_max;
    size_t out; /* bytes handed out, as sized by their class */
};

void bufpool_init(struct bufpool *pool, size_t cached_max);
void bufpool_fini(struct bufpool *pool);
/* Aligned to 64 bytes, not cleared. NULL without a message if there is no memory. size 0 is 1. */
void *bufpool_get(struct bufpool *pool, size_t size);
/* size: as in bufpool_get. NULL is ignored. */
void bufpool_put(struct bufpool *pool, void *buffer, size_t size);

#endif
