/*
 * Index of a sparse table: 64-bit key -> 32-bit row number. Every key is possible, 0 and 2^64-1 too. Knows
 * nothing of rows. Tests: test/table/test_keyindex.c.
 *
 * Extendible hashing (Fagin et al., TODS 1979) over segments of open addressing:
 *
 *     hash = mix64(key ^ seed)        directory, by the top bits of the hash
 *                                     [00] [01] [10] [11]
 *                                      |    |     \  /          a segment may serve several neighbours
 *                                    seg A seg B  seg C  ->  buckets, by the low 32 bits of the hash
 *
 *     bucket = one cache line: 5 keys, 5 row numbers, which slots are used, how many keys passed through
 *
 * A key lies in its home bucket or, where that is full, in the next one with room (linear probing). `passed`
 * counts, for each bucket, the keys that looked for room there and went on: a search ends at a bucket that
 * nobody passed, and deletion needs no tombstones. A segment grows on its own in steps of a quarter to an
 * eighth (so that load stays between 0.7 and 0.87, about 18 bytes a key at worst), and splits in two when it
 * reaches twice the smallest full size: the largest piece of work of one insertion is moving some 9,000 keys,
 * about a tenth of a millisecond. Should keys be chosen against the hash, a segment that does not split grows
 * alone, and the directory stays within a constant times the number of segments: memory is bounded by the
 * number of keys in any case.
 */
#ifndef TABLE_KEYINDEX_H
#define TABLE_KEYINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/tablemem.h"

#define KEYINDEX_NONE UINT32_MAX

struct keyindex_segment;

struct keyindex {
    struct tablemem *mem;
    uint64_t seed;
    struct keyindex_segment **directory; /* 2^depth; NULL while the index is empty and new */
    unsigned depth;
    size_t segments;
    uint64_t count;
    void *spare; /* pages to use again, chained through their first bytes */
    size_t spares;
};

/* Takes no memory yet. */
void keyindex_init(struct keyindex *x, struct tablemem *mem, uint64_t seed);
/* Frees everything; x is as after keyindex_init. */
void keyindex_clear(struct keyindex *x);

/* Looks n keys up, overlapping their cache misses: rows[i] is the row number or KEYINDEX_NONE. Returns how
 * many were found. */
size_t keyindex_find(const struct keyindex *x, const uint64_t *keys, size_t n, uint32_t *rows);
/* Fetches what an insertion of this key will look at first. */
void keyindex_prefetch(const struct keyindex *x, uint64_t key);
/* Enters key -> row, unless the key is there. *found is the key's row number after the call. On error nothing
 * has changed. */
MUST_USE paramo_err keyindex_insert(struct keyindex *x, uint64_t key, uint32_t row, uint32_t *found);
/* Removes key; false if it is not there. *row may be NULL. Takes no memory and gives none back. */
bool keyindex_remove(struct keyindex *x, uint64_t key, uint32_t *row);
/* Writes all count keys, and their rows if rows is not NULL, in no order. */
void keyindex_dump(const struct keyindex *x, uint64_t *keys, uint32_t *rows);
/* Key positions that a search for each present key would read, in all: tests watch it. */
uint64_t keyindex_probes(const struct keyindex *x);

#endif
