/*
 * Index of a sparse table: 64-bit key -> payload of 4 or 12 bytes in the same cache line. The payload is a
 * row number, or the whole of a small row. Every key is possible, 0 and 2^64-1 too. Knows nothing of rows.
 * Tests: test/table/test_keyindex.c.
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
 * A bucket holds hashes, not keys: mixing is a bijection, and nothing need be mixed again when keys move. A
 * key lies in its home bucket or, where that is full, in the next one with room (linear probing). `passed`
 * counts, for each bucket, the keys that looked for room there and went on: a search ends at a bucket that
 * nobody passed, and deletion needs no tombstones.
 *
 * A segment grows page by page to 6 pages and splits into two of 4 when these are full: load is 0.6 on
 * average, about 23 bytes a key (payload of 4) at worst, a key moves 4 times in its life, and the largest
 * piece of work of one insertion is moving 11,000 keys, some 80 microseconds. Hashes fill all segments alike;
 * so that they do not all grow during the same few requests, each takes 62 to 74 percent before it grows.
 * Should keys be chosen against the hash, a segment that does not split grows alone, and the directory stays
 * within a constant times the number of segments: memory is bounded by the number of keys in any case.
 */
#ifndef TABLE_KEYINDEX_H
#define TABLE_KEYINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/tablemem.h"

#define KEYINDEX_NONE UINT32_MAX

enum {
    KEYINDEX_SLOT_BITS = 3, /* of a place: page number, bucket in the page, slot */
    KEYINDEX_PAGE_SHIFT = 9,
    KEYINDEX_PAGE_AT = KEYINDEX_PAGE_SHIFT + KEYINDEX_SLOT_BITS,
    KEYINDEX_PAGES_MAX = 1 << (32 - KEYINDEX_PAGE_AT), /* the last number is never given: NONE is no place */
    KEYINDEX_MARKS_AT = 12,                            /* in a bucket's meta */
    KEYINDEX_CHUNK = 128, /* keys that a scan gives at a time: their buckets stay in the first cache */
    KEYINDEX_AHEAD = 24   /* keys from prefetch to look; measured: 12 is slower, 48 no faster */
};

/* word[0 .. slots): hashes; then payloads; the last 4 bytes: meta */
struct keyindex_bucket {
    _Alignas(64) uint64_t word[8];
};
_Static_assert(sizeof(struct keyindex_bucket) == 64, "a bucket is a cache line");

struct keyindex_segment;

/* A payload, not entered just now, whose mark is not the index's yet. */
typedef void (*keyindex_first)(void *arg, uint64_t key, const void *payload, unsigned was);

struct keyindex {
    struct tablemem *mem;
    uint64_t seed;
    struct keyindex_segment **directory; /* 2^depth; NULL while the index is empty and new */
    uint64_t count;
    uint64_t moves; /* counts what ends payload pointers, places and scans' prefetches: growth */
    struct keyindex_bucket **page; /* by number; of a free number: the next free one << 1 | 1 */
    uint32_t page_top, page_room;  /* numbers ever used; room in `page` */
    uint32_t page_free;            /* a chain of free numbers, to KEYINDEX_PAGES_MAX */
    unsigned slots;                /* of a bucket: 5 or 3 */
    unsigned turn;                 /* 0 to 2 * LOAD_SPREAD: what the next segment takes before it grows */
    unsigned depth;
    size_t segments;
    struct keyindex_segment *block; /* segments are made in blocks, chained through their first element */
    unsigned block_left;
    void *spare; /* pages to use again, chained through their first bytes */
    size_t spares;
    unsigned mark;        /* what is entered gets, and what changes; 0: marks stay as they are */
    keyindex_first first; /* is told before a change raises a mark; NULL: nobody is */
    void *first_arg;
};

/* One pass over many keys with their cache misses overlapped: see keyindex_scan_next. */
struct keyindex_scan {
    const struct keyindex *x;
    const uint64_t *keys;
    size_t n, given;
    uint64_t moves; /* of the index when the keys in the air were begun */
    bool deep;      /* directory and segments are fetched ahead as well: only time depends on it */
    /* The keys of a chunk, and those in the air. */
    uint64_t hash[KEYINDEX_CHUNK + 3 * KEYINDEX_AHEAD];
    struct keyindex_segment *segment[KEYINDEX_CHUNK + 2 * KEYINDEX_AHEAD];
    struct keyindex_bucket *bucket[KEYINDEX_CHUNK + KEYINDEX_AHEAD];
    void *payload[KEYINDEX_CHUNK];
};

/* Takes no memory yet. payload_bytes is 4 or 12. */
void keyindex_init(struct keyindex *x, struct tablemem *mem, uint64_t seed, unsigned payload_bytes);
/* Frees everything; x is as after keyindex_init. */
void keyindex_clear(struct keyindex *x);
/* The same in steps of so many segments (a thousand frees each at most); *cursor is 0 at first. True: it is
 * done. Nothing else may be done with x until then. */
bool keyindex_clear_step(struct keyindex *x, size_t *cursor, size_t segments);

/* Looks n keys up, of payload 4: rows[i] is the payload as a row number, or KEYINDEX_NONE. Returns how many
 * were found. */
size_t keyindex_find(const struct keyindex *x, const uint64_t *keys, size_t n, uint32_t *rows);
/* Where key's payload lies, until the next insertion; NULL: the key is not there. */
void *keyindex_payload(const struct keyindex *x, uint64_t key);

/* Looks n keys up chunk by chunk. Insertions between the calls are allowed. */
void keyindex_scan_start(struct keyindex_scan *scan, const struct keyindex *x, const uint64_t *keys,
                         size_t n);
/* The next keys, in order: returns their number, 0 at the end, and where the payloads of these lie (NULL: the
 * key is not there), until the next insertion. */
size_t keyindex_scan_next(struct keyindex_scan *scan, void ***payload);

/* Fetches what an insertion of this key will look at first. */
void keyindex_prefetch(const struct keyindex *x, uint64_t key);
/* Enters key, unless it is there: *fresh says which. *payload is where the key's payload lies, to be written
 * if it is fresh, until the next insertion. MEMORY or TOO_LARGE: nothing has changed. */
MUST_USE paramo_err keyindex_insert(struct keyindex *x, uint64_t key, void **payload, bool *fresh);
/* The same for a key that is known not to be there. */
MUST_USE paramo_err keyindex_add(struct keyindex *x, uint64_t key, void **payload);
/* Enters key, which is the one numbered i of the chunk that the scan gave last, and is not there. Otherwise
 * as keyindex_add; quicker, since the scan has found its place, as long as no other insertion has moved it.
 */
MUST_USE paramo_err keyindex_scan_add(const struct keyindex_scan *scan, struct keyindex *x, size_t i,
                                      uint64_t key, void **payload);
/* Removes key; false if it is not there. *payload may be NULL. Takes no memory and gives none back. */
bool keyindex_remove(struct keyindex *x, uint64_t key, void *payload);
/* Calls `each` for all keys, in no order; it may change the payload. */
void keyindex_walk(const struct keyindex *x, void (*each)(void *ctx, uint64_t key, void *payload), void *ctx);
uint64_t keyindex_hash(const struct keyindex *x, uint64_t key);
/* Calls `each` for the keys whose hashes come next from *cursor (0 at first) on, about so many of them or
 * fewer, in no order, and moves *cursor behind them; false: there are no more. Insertions and removals
 * between the calls disturb nothing. */
bool keyindex_sweep(const struct keyindex *x, uint64_t *cursor, uint64_t rows,
                    void (*each)(void *ctx, uint64_t key, uint64_t hash, void *payload), void *ctx);
/* Key positions that a search for each present key would read, in all: tests watch it. */
uint64_t keyindex_probes(const struct keyindex *x);

/* ---- marks ---- Two bits beside each payload, which go where it goes; 0 at first. table_snapshot.h says
 * what for.
 */

/* Where in the meta: of 5 payloads of 4 bytes from the 40th on, of 3 payloads of 12 from the 24th on. */
static inline unsigned keyindex_mark_at(const void *payload, unsigned slots)
{
    unsigned at = (unsigned)((uintptr_t)payload % sizeof(struct keyindex_bucket));
    return KEYINDEX_MARKS_AT + 2 * (slots == 5 ? (at - 40) / 4 : (at - 24) / 12);
}

static inline uint32_t *keyindex_meta(const void *payload)
{
    return (uint32_t *)((uintptr_t)payload / sizeof(struct keyindex_bucket) *
                        sizeof(struct keyindex_bucket)) +
           15;
}

static inline unsigned keyindex_mark(const struct keyindex *x, const void *payload)
{
    return *keyindex_meta(payload) >> keyindex_mark_at(payload, x->slots) & 3;
}

static inline void keyindex_set_mark(const struct keyindex *x, void *payload, unsigned mark)
{
    uint32_t *meta = keyindex_meta(payload);
    unsigned at = keyindex_mark_at(payload, x->slots);
    *meta = (*meta & ~(3U << at)) | mark << at;
}

/* Before these payloads change (n <= KEYINDEX_CHUNK): tells `first` of those whose marks are not the index's,
 * and raises these. Nothing while the index has none. */
void keyindex_change(struct keyindex *x, const uint64_t *keys, void *const *payload, size_t n);
/* All are 0: a pass over all buckets. */
void keyindex_clear_marks(struct keyindex *x);

/* ---- places ---- A payload by a number of 32 bits, valid as long as a pointer to it: while `moves` stays
 * the same and the key is not removed. */

/* Of the chunk that the scan gave last, of n keys: KEYINDEX_NONE where a key is not there. What `moves` has
 * ended since then is not looked up again: these say nothing. */
void keyindex_scan_places(const struct keyindex_scan *scan, size_t n, uint32_t *places);

static inline void *keyindex_at(const struct keyindex *x, uint32_t place)
{
    struct keyindex_bucket *page = x->page[place >> KEYINDEX_PAGE_AT];
    unsigned slot = place & ((1U << KEYINDEX_SLOT_BITS) - 1);
    return (char *)(page + (place >> KEYINDEX_SLOT_BITS & ((1U << KEYINDEX_PAGE_SHIFT) - 1))) +
           sizeof(uint64_t) * x->slots + (x->slots == 5 ? 4 : 12) * (size_t)slot;
}

#endif
