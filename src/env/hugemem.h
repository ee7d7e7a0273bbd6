/*
 * Memory for large tables in huge pages. A look-up in a table of many million rows goes to a random page each
 * time; with pages of 4 KiB it misses the TLB as well as the cache. Blocks of the sizes that tables are made
 * of are cut from chunks of 2 MiB that the kernel is asked to back with one page each; very large ones are
 * mappings of their own; what is small, or of a small table, comes from malloc. A chunk without blocks goes
 * back to the system, but for one, when its owner says so: giving back takes the kernel 100 us a chunk
 * without huge pages, and a table that is cleared has thousands. One owner, no locks. Where the kernel gives
 * no huge pages nothing but speed is lost. Never knows what the memory is for. Tests:
 * test/env/test_hugemem.c.
 */
#ifndef ENV_HUGEMEM_H
#define ENV_HUGEMEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"

enum {
    HUGEMEM_CHUNK = 2 << 20,
    HUGEMEM_UNIT = 16 << 10,
    HUGEMEM_BLOCK_MAX = 256 << 10,
    HUGEMEM_CLASSES = HUGEMEM_BLOCK_MAX / HUGEMEM_UNIT,
    HUGEMEM_MAPPED_MIN = 8 << 20, /* as large as this: a mapping of its own */
    HUGEMEM_KEPT = 1,             /* empty chunks that are not given back */
    HUGEMEM_SMALL = 4 << 20 /* so much comes from malloc first: a small table takes no huge page. Arbitrary */
};

struct hugemem_chunk;

struct hugemem {
    struct map chunks;                                /* by address / HUGEMEM_CHUNK */
    struct hugemem_chunk *lists[HUGEMEM_CLASSES + 1]; /* by the longest run of free units */
    struct hugemem_chunk *empty;
    size_t empty_count;
    size_t live;  /* units in use */
    size_t small; /* bytes of blocks from malloc */
    /* More than HUGEMEM_KEPT chunks are empty: hugemem_trim should be called, later; or NULL. */
    void (*emptied)(void *ctx);
    void *ctx;
};

void hugemem_init(struct hugemem *m);
/* Unmaps all chunks; what came from malloc must have been released. */
void hugemem_fini(struct hugemem *m);
/* Gives up to so many empty chunks back; are there more? */
bool hugemem_trim(struct hugemem *m, unsigned chunks);
/* Bytes of chunks that no block has. */
size_t hugemem_idle(const struct hugemem *m);
/* As struct table_alloc wants them (table/tablemem.h); ctx is the struct hugemem. */
void *hugemem_alloc(void *ctx, size_t align, size_t size);
void hugemem_release(void *ctx, void *memory, size_t size);

#endif
