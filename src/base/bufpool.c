#include "base/bufpool.h"

#include <stdbool.h>
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
    while (pool->late)
        bufpool_free_late(pool);
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

/* Takes a buffer back. *bytes: the size of its class. False: the pool does not cache it. */
static bool take_back(struct bufpool *pool, void *buffer, size_t size, size_t *bytes)
{
    unsigned class = class_of(size);
    *bytes = bytes_of(class, size);
    pool->out -= *bytes;
    if (class == BUFPOOL_CLASSES || pool->cached + *bytes > pool->cached_max)
        return false;
    struct bufpool_free *f = buffer;
    f->next = pool->free[class];
    pool->free[class] = f;
    pool->cached += *bytes;
    return true;
}

void bufpool_put(struct bufpool *pool, void *buffer, size_t size)
{
    size_t bytes;
    if (buffer && !take_back(pool, buffer, size, &bytes))
        free(buffer);
}

void bufpool_put_late(struct bufpool *pool, void *buffer, size_t size)
{
    size_t bytes;
    if (buffer && !take_back(pool, buffer, size, &bytes))
        bufpool_drop_late(pool, buffer, bytes);
}

void bufpool_drop_late(struct bufpool *pool, void *block, size_t bytes)
{
    if (bytes < BUFPOOL_LATE_MIN) {
        free(block);
        return;
    }
    struct bufpool_late *late = block;
    *late = (struct bufpool_late){.next = pool->late, .bytes = bytes};
    pool->late = late;
}

void bufpool_free_late(struct bufpool *pool)
{
    for (size_t left = BUFPOOL_LATE_BYTES; pool->late && left;) {
        struct bufpool_late *late = pool->late, *next = late->next;
        size_t bytes = late->bytes < left ? late->bytes : left;
        late->bytes -= bytes;
        left -= bytes;
        if (late->bytes >= BUFPOOL_LATE_MIN) { /* the system takes the end of a long block back */
            struct bufpool_late *shorter = realloc(late, late->bytes);
            pool->late = shorter ? shorter : late;
        } else {
            free(late);
            pool->late = next;
        }
    }
}
