/*
 * A table's memory. All of it is allocated here and counted, so that table_stats is exact, a test can check
 * the bytes per key, and a test can make the n-th allocation fail. The allocator is the C library's unless
 * the caller of table_create gives another. This module never knows rows or keys. Tests:
 * test/table/test_tablemem.c.
 */
#ifndef TABLE_TABLEMEM_H
#define TABLE_TABLEMEM_H

#include <stddef.h>

/* alloc returns NULL without memory. release is never called with NULL. */
struct table_alloc {
    void *(*alloc)(void *ctx, size_t align, size_t size);
    void (*release)(void *ctx, void *memory, size_t size);
    void *ctx;
};

struct tablemem {
    struct table_alloc alloc;
    size_t bytes; /* allocated now */
};

/* alloc may be NULL: the C library. */
void tablemem_init(struct tablemem *m, const struct table_alloc *alloc);
/* The memory is not cleared. align is a power of two; size must not be 0. NULL, without a message, if
 * there is no memory. */
void *tablemem_get(struct tablemem *m, size_t align, size_t size);
/* size: as in tablemem_get. NULL is ignored. */
void tablemem_put(struct tablemem *m, void *memory, size_t size);

#endif
