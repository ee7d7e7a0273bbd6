#include "base/bufpool.h"

#include <stdint.h>
#include <stdlib.h>

static unsigned class_of(size_t size)
{
    unsigned class = 0;
    while (class < BUFPOOL_CLASSES && ((size_t)1 << (class + BUFPOOL_MIN_SHIFT)) < size)
        class ++;
    return class; /* BUFPOOL_CLASSES: too large to be pooled */
}

static size_t bytes_of(unsigned class, size_t size)
{
    return class < BUFPOOL_CLASSES ? (size_t)1 << (class + BUFPOOL_MIN_SHIFT) : (size + 63) & ~(size_t)63;
}

void bufpool_init(struct bufpool *pool, size_t cached_max)
{
    *pool = (struct bufpool){.cached_max = cached_max};
}

void bufpool_fini(struct bufpool *pool)
{
    for (unsigned i = 0; i < BUFPOOL_CLASSES; i++) {
        while (pool->free[i]) {
            struct bufpool_free *next = pool->free[i]->next;
            free(pool->free[i]);
            pool->free[i] = next;
        }
    }
    pool->cached = 0;
}

void *bufpool_get(struct bufpool *pool, size_t size)
{
    if (size > SIZE_MAX / 2)
        return NULL;
    unsigned class = class_of(size);
    size_t bytes = bytes_of(class, size);
    void *buffer;
    if (class < BUFPOOL_CLASSES && pool->free[class]) {
        buffer = pool->free[class];
        pool->free[class] = pool->free[class]->next;
        pool->cached -= bytes;
    } else {
        buffer = aligned_alloc(64, bytes);
        if (!buffer)
            return NULL;
    }
    pool->out += bytes;
    return buffer;
}

void bufpool_put(struct bufpool *pool, void *buffer, size_t size)
{
    if (!buffer)
        return;
    unsigned class = class_of(size);
    size_t bytes = bytes_of(class, size);
    pool->out -= bytes;
    if (class < BUFPOOL_CLASSES && pool->cached + bytes <= pool->cached_max) {
        struct bufpool_free *f = buffer;
        f->next = pool->free[class];
        pool->free[class] = f;
        pool->cached += bytes;
    } else {
        free(buffer);
    }
}
