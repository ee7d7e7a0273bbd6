/*
 * Memory for large tables in huge pages. A look-up in a table of many million rows goes to a random page each
 * time; with pages of 4 KiB it misses the TLB as well as the cache. Blocks of the sizes that tables are made
 * of are cut from chunks of 2 MiB that the kernel is asked to back with one page each; very large ones are
 * mappings of their own; what is small, or of a small table, comes from malloc. Chunks go back when all of it
 * is freed. One owner, no locks. Where the kernel gives no huge pages nothing but speed is lost. Never knows
 * what the memory is for. Tests: test/env/test_hugemem.c.
 */
#ifndef ENV_HUGEMEM_H
#define ENV_HUGEMEM_H

#include <stddef.h>

#include "base/map.h"

enum {
    HUGEMEM_CHUNK = 2 << 20,
    HUGEMEM_UNIT = 16 << 10,
    HUGEMEM_BLOCK_MAX = 256 << 10,
    HUGEMEM_CLASSES = HUGEMEM_BLOCK_MAX / HUGEMEM_UNIT,
    HUGEMEM_MAPPED_MIN = 8 << 20, /* as large as this: a mapping of its own */
    HUGEMEM_SMALL = 4 << 20 /* so much comes from malloc first: a small table takes no huge page. Arbitrary */
};

struct hugemem {
    struct map chunks; /* by address / HUGEMEM_CHUNK */
    char *at, *end;    /* what is left of the newest chunk */
    void *free[HUGEMEM_CLASSES];
    size_t small; /* bytes of blocks from malloc */
};

void hugemem_init(struct hugemem *m);
/* Unmaps all chunks; what came from malloc must have been released. */
void hugemem_fini(struct hugemem *m);
/* As struct table_alloc wants them (table/tablemem.h); ctx is the struct hugemem. */
void *hugemem_alloc(void *ctx, size_t align, size_t size);
void hugemem_release(void *ctx, void *memory, size_t size);

#endif
