/*
 * The key lists that a table was asked for last, with the rows that they resolved to. A push that follows a
 * pull of the same keys needs no look-up, nor does a batch that comes again. Lists are compared key by key,
 * so no hash is trusted. A list is kept only if every key has its row, because a missing row may be made
 * later. Row numbers hold for one generation of the table (table/table.h).
 *
 * The oldest lists are dropped first; there are at most ROWCACHE_LISTS of ROWCACHE_BYTES. Where lists do not
 * repeat, most are not kept at all. It must never know tables, requests or senders. One owner, the shard.
 * Tests: test/server/test_rowcache.c.
 */
#ifndef SERVER_SHARD_ROWCACHE_H
#define SERVER_SHARD_ROWCACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bufpool.h"

/* Arbitrary: some batches of some workers. */
enum {
    ROWCACHE_LISTS = 64, /* a power of two */
    ROWCACHE_BYTES = 16 << 20,
    ROWCACHE_KEYS_MIN = 16, /* shorter lists are looked up as quickly */
    ROWCACHE_IDLE = 128,    /* lists kept without a hit, after which ... */
    ROWCACHE_ROUND = 64,    /* ... of this many lists ... */
    ROWCACHE_TRY = 8        /* ... only the first few are kept */
};

struct rowcache_list {
    uint64_t generation;
    size_t n;
    uint64_t *keys; /* then the rows, in one buffer */
    uint32_t *rows;
    uint64_t epoch; /* table_push_rows' */
};

struct rowcache {
    struct bufpool *pool;
    uint64_t mark[ROWCACHE_LISTS]; /* compared first; 0: no list */
    struct rowcache_list list[ROWCACHE_LISTS];
    unsigned oldest, count; /* in a circle */
    size_t bytes;
    unsigned idle; /* lists offered since one was found */
};

void rowcache_init(struct rowcache *c, struct bufpool *pool);
void rowcache_fini(struct rowcache *c);
/* The list of these keys, or NULL; until the next offer. */
struct rowcache_list *rowcache_find(struct rowcache *c, uint64_t generation, const uint64_t *keys, size_t n);
/* Room for the rows of a list that was not found. The caller fills it and calls rowcache_keep or
 * rowcache_drop before any other call. NULL: this list is not kept. */
uint32_t *rowcache_offer(struct rowcache *c, const uint64_t *keys, size_t n);
void rowcache_keep(struct rowcache *c, uint64_t generation);
void rowcache_drop(struct rowcache *c);

#endif
