/*
 * The memory that a table takes, through one door: it counts what is held, so that table_stats tells the
 * truth and a test can assert bytes per key, and a test can make the n-th allocation fail. The allocator
 * behind it is the C library's unless the caller of table_create gives another. Knows nothing of rows and
 * keys. Tests: test/table/test_tablemem.c.
 */
#ifndef TABLE_TABLEMEM_H
#define TABLE_TABLEMEM_H

#include <stddef.h>

/* alloc returns NULL when there is no memory; release is never called with NULL. */
struct table_alloc {
    void *(*alloc)(void *ctx, size_t align, size_t size);
    void (*release)(void *ctx, void *memory, size_t size);
    void *ctx;
};

struct tablemem {
    struct table_alloc alloc;
    size_t bytes; /* held now */
};

/* alloc may be NULL: the C library. */
void tablemem_init(struct tablemem *m, const struct table_alloc *alloc);
/* The memory is not cleared; align is a power of two, size may not be 0. NULL without a message if there is
 * none. */
void *tablemem_get(struct tablemem *m, size_t align, size_t size);
/* size as it was asked for. NULL is ignored. */
void tablemem_put(struct tablemem *m, void *memory, size_t size);

#endif
