/*
 * Parsed blocks kept for later epochs: in memory up to a limit, then in a temporary file.
 *
 * Epochs read the blocks in about the same order, so evicting the oldest block would always evict the one that is
 * needed next. Therefore the first blocks stay in memory, and later ones go to the file at once. When the file fails,
 * the cache keeps no more blocks and reports why. It also remembers which parts have been parsed before, so that their
 * bad lines are counted once. It never knows of text. Thread-safe. Tests: test/learn/test_reader.c.
 */
#ifndef LEARN_DATA_CACHE_H
#define LEARN_DATA_CACHE_H

#include "learn/data/block.h"

#include <stdatomic.h>

/* A block with its count of owners; the last one frees it. */
struct held {
    struct block block; /* first: a pointer to the block is a pointer to this */
    size_t bytes;
    atomic_uint owners;
    struct cache *home;                /* the cache that keeps it in memory, or NULL */
    _Atomic(struct block_keys *) keys; /* of the block, or NULL; set once */
};
void held_retain(struct held *held);
void held_release(struct held *held);

struct cache;

/* limit 0: keep nothing (but still remember). spill_dir as in input_temp_open. */
PARAMO_MUST_USE paramo_err cache_open(uint32_t streams, uint64_t limit, const char *spill_dir,
                                      struct cache **cache);
void cache_close(struct cache *cache);

/* The block, with the caller as one more owner, or NULL if it is not kept. *seen: this part was put before. */
PARAMO_MUST_USE paramo_err cache_get(struct cache *cache, uint32_t stream, uint64_t index, struct held **held,
                                     int *seen);
/* Keeps held, if there is room, and remembers its part. may_spill: if there is no room in memory, the block goes to the
 * temporary file. */
PARAMO_MUST_USE paramo_err cache_put(struct cache *cache, struct held *held, int may_spill);

/* The keys of a held block, if they are kept with it. If not, NULL, and *wanted says whether there is room to keep
 * them. */
const struct block_keys *cache_keys(struct held *held, int *wanted);
/* Keeps keys with the block, or frees them. Returns the keys that are kept, perhaps those of another thread; NULL:
 * there is no room. */
const struct block_keys *cache_keep_keys(struct held *held, struct block_keys *keys);

void cache_stats(struct cache *cache, uint64_t *memory_bytes, uint64_t *spill_bytes, char *spill_error,
                 size_t cap);

#endif
