/*
 * A pool of byte buffers in powers of two. So steady traffic neither asks the system for memory nor pays for the
 * first touch of a page. One owner. The cache is bounded. Bytes that are handed out are counted, so that a test can
 * see that all were returned.
 *
 * The system needs tens of milliseconds to take back a gigabyte. An owner that has no time for that returns buffers
 * with bufpool_put_late, and frees them a few at a time. It never knows what a buffer holds. Tests:
 * test/base/test_bufpool.c.
 */
#ifndef BASE_BUFPOOL_H
#define BASE_BUFPOOL_H

#include <stddef.h>

enum {
    BUFPOOL_MIN_SHIFT = 8,  /* the smallest buffer: 256 bytes */
    BUFPOOL_MAX_SHIFT = 22, /* the largest that is pooled: 4 MiB */
    BUFPOOL_CLASSES = BUFPOOL_MAX_SHIFT - BUFPOOL_MIN_SHIFT + 1,
    BUFPOOL_LATE_BYTES = 16 << 20, /* what one bufpool_free_late frees, in less than 2 ms */
    BUFPOOL_LATE_MIN = 64 << 10    /* shorter blocks are freed at once */
};

struct bufpool_free {
    struct bufpool_free *next;
};
struct bufpool_late {
    struct bufpool_late *next;
    size_t bytes;
};

struct bufpool {
    struct bufpool_free *free[BUFPOOL_CLASSES];
    size_t cached, cached_max;
    struct bufpool_late *late; /* not cached, and not freed yet */
    size_t out;                /* bytes handed out, as sized by their class */
};

void bufpool_init(struct bufpool *pool, size_t cached_max);
void bufpool_fini(struct bufpool *pool);
/* Aligned to 64 bytes, not cleared. NULL without a message if there is no memory. A size of 0 counts as 1. */
void *bufpool_get(struct bufpool *pool, size_t size);
/* size: as in bufpool_get. NULL is ignored. */
void bufpool_put(struct bufpool *pool, void *buffer, size_t size);
/* Like bufpool_put(), but bufpool_free_late frees the buffer if the pool does not keep it. */
void bufpool_put_late(struct bufpool *pool, void *buffer, size_t size);
/* Frees a block from malloc of that many bytes: a short one at once, a longer one in bufpool_free_late. */
void bufpool_drop_late(struct bufpool *pool, void *block, size_t bytes);
/* Frees up to BUFPOOL_LATE_BYTES of the late blocks; it shortens a longer block from its end. pool->late is NULL when
 * none is left. */
void bufpool_free_late(struct bufpool *pool);

#endif
