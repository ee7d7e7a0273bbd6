/*
 * Data structure of the index of a sparse table: the index, its buckets and the constants of both. No
 * functions. Knows nothing of rows, searches or growth; keyindex.h has the operations. Tests:
 * test/table/test_keyindex.c.
 *
 * Extendible hashing (Fagin et al., TODS 1979) over segments of open addressing:
 *
 *     hash = mix64(key ^ seed)        directory, by the top bits of the hash
 *                                     [00] [01] [10] [11]
 *                                      |    |     \  /          a segment may serve several neighbours
 *                                    seg A seg B  seg C  ->  pages of 512 buckets, by the low 32 bits
 *
 *     bucket = one cache line:  5 hashes, 5 payloads of 4 bytes   (60 bytes)
 *                           or  3 hashes, 3 payloads of 12 bytes  (60 bytes)
 *                          and  meta: which slots are used (5 bits), how many keys passed (7), marks (10)
 *
 * A bucket holds hashes, not keys: mixing is a bijection, and keys need not be mixed again when they move. A
 * key is in its home bucket or, if that is full, in the next one with room (linear probing). Each bucket's
 * `passed` counts the keys that found no room there and went on. A search ends at a bucket that no key has
 * passed, and deletion needs no tombstones.
 *
 * A segment grows page by page to 6 pages; when these are full, it splits into two segments of 4 pages. The
 * load is 0.6 on average; a key takes at most about 23 bytes (with a payload of 4), and moves 4 times in its
 * life. The most work of one insertion is moving 11,000 keys, about 80 microseconds. Hashes fill all
 * segments equally. So that segments do not all grow during the same few requests, each has its own limit of
 * 62 to 74 percent. If a client chooses keys against the hash, a segment that does not split grows alone,
 * and the directory stays within a constant times the number of segments. So memory is bounded by the number
 * of keys in any case.
 */
#ifndef TABLE_KEYINDEX_LAYOUT_H
#define TABLE_KEYINDEX_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/tablemem.h"

#define KEYINDEX_NONE UINT32_MAX

enum {
    KEYINDEX_SLOT_BITS = 3, /* a place has a page number, a bucket in the page, and a slot */
    KEYINDEX_PAGE_SHIFT = 9,
    KEYINDEX_PAGE_AT = KEYINDEX_PAGE_SHIFT + KEYINDEX_SLOT_BITS,
    KEYINDEX_PAGES_MAX = 1 << (32 - KEYINDEX_PAGE_AT), /* the last number is unused: NONE is no place */
    KEYINDEX_MARKS_AT = 12,                            /* in a bucket's meta */
    KEYINDEX_CHUNK = 128, /* keys of one call of a scan: their buckets stay in the first cache */
    KEYINDEX_AHEAD = 24   /* keys from prefetch to look-up; measured: 12 is slower, 48 is no faster */
};

/* word[0 .. slots): hashes; then payloads; the last 4 bytes: meta */
struct keyindex_bucket {
    _Alignas(64) uint64_t word[8];
};
_Static_assert(sizeof(struct keyindex_bucket) == 64, "a bucket is a cache line");

struct keyindex_segment;

/* Called for a payload, not a fresh one, whose mark is not the index's yet. was: its mark. */
typedef void (*keyindex_first)(void *arg, uint64_t key, const void *payload, unsigned was);

struct keyindex {
    struct tablemem *mem;
    uint64_t seed;
    struct keyindex_segment **directory; /* 2^depth; NULL while the index is empty and new */
    uint64_t count;
    uint64_t moves; /* counts growth, which ends payload pointers, places and scans' prefetches */
    struct keyindex_bucket **page; /* by number; for a free number: the next free one << 1 | 1 */
    uint32_t page_top, page_room;  /* numbers used so far; room in `page` */
    uint32_t page_free;            /* a list of free numbers, which ends with KEYINDEX_PAGES_MAX */
    unsigned slots;                /* of a bucket: 5 or 3 */
    unsigned turn;                 /* 0 to 2 * LOAD_SPREAD: sets the next segment's limit */
    unsigned depth;
    size_t segments;
    struct keyindex_segment *block; /* segments are made in blocks, chained through their first element */
    unsigned block_left;
    void *spare; /* pages to use again, chained through their first bytes */
    size_t spares;
    unsigned mark;        /* the mark of keys that are added or changed; 0: marks stay as they are */
    keyindex_first first; /* called before a change sets a mark; may be NULL */
    void *first_arg;
};

#endif
