/*
 * Memory for large tables in huge pages. A look-up in a table of many million rows goes to a random page each time;
 * with pages of 4 KiB it misses the TLB as well as the cache. Blocks of the sizes that tables use are cut from chunks
 * of 2 MiB; the kernel is asked to back each chunk with one page. Small blocks, such as rows of a VAR table, are cut
 * from spans of such a chunk (hugemem_span.h). Very large blocks are mappings of their own. Blocks of small tables
 * come from malloc. Chunks without blocks, except one, return to the system when the owner calls hugemem_trim: without
 * huge pages that takes the kernel 100 us per chunk, and a table that is cleared has thousands of chunks. One owner, no
 * locks. Without huge pages everything works, only slower. This module never knows what the memory is for. Tests:
 * test/env/test_hugemem.c.
 */
#ifndef ENV_HUGEMEM_H
#define ENV_HUGEMEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/map.h"
#include "env/hugemem_span.h"

enum {
    HUGEMEM_CHUNK = 2 << 20,
    HUGEMEM_UNIT = 16 << 10,
    HUGEMEM_BLOCK_MAX = 256 << 10,
    HUGEMEM_CLASSES = HUGEMEM_BLOCK_MAX / HUGEMEM_UNIT,
    HUGEMEM_MAPPED_MIN = 8 << 20, /* a block of this size or more is a mapping of its own */
    HUGEMEM_KEPT = 1,             /* empty chunks that are not unmapped */
    HUGEMEM_SMALL = 4 << 20 /* the first bytes come from malloc: small tables use no huge page. Arbitrary */
};

struct hugemem_chunk;

struct hugemem {
    struct map chunks;                                /* by address / HUGEMEM_CHUNK */
    struct hugemem_chunk *lists[HUGEMEM_CLASSES + 1]; /* by the longest run of free units */
    struct hugemem_chunk *empty;
    size_t empty_count;
    struct hugemem_span *spans[HUGEMEM_SPAN_CLASSES]; /* of each class, those with room */
    size_t live;                                      /* units in use */
    size_t span_idle;                                 /* bytes of spans that are in no block */
    size_t small;                                     /* bytes of blocks from malloc */
    /* More than HUGEMEM_KEPT chunks are empty: the owner should call hugemem_trim later. May be NULL. */
    void (*emptied)(void *ctx);
    void *ctx;
};

void hugemem_init(struct hugemem *m);
/* Unmaps all chunks. Blocks from malloc must have been released. */
void hugemem_fini(struct hugemem *m);
/* Unmaps at most that number of empty chunks. True: there are more. */
bool hugemem_trim(struct hugemem *m, unsigned chunks);
/* Bytes of chunks that are not part of a block. */
size_t hugemem_idle(const struct hugemem *m);
/* Functions for struct table_alloc (table/tablemem.h); ctx is the struct hugemem. */
void *hugemem_alloc(void *ctx, size_t align, size_t size);
void hugemem_release(void *ctx, void *memory, size_t size);

#endif
