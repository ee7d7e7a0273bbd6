/*
 * One segment of the index: the home bucket of a hash, and adding a hash. It has inline functions only, so
 * that search and growth each compile their own copy. It knows hashes, never keys, and never takes memory.
 * Private to keyindex.c and keyindex_grow.c. Tests: test/table/test_keyindex.c.
 *
 * `slots` is a constant 5 or 3 wherever it is a parameter of an inline function: SLOTS_CALL makes one copy
 * of each loop for either.
 */
#ifndef TABLE_KEYINDEX_SEGMENT_H
#define TABLE_KEYINDEX_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "table/keyindex_layout.h"

enum {
    PAGE = 1 << KEYINDEX_PAGE_SHIFT, /* buckets: 32 KiB; a very small index is one smaller page */
    SEGMENT_PAGES = 6,               /* a segment that needs more is split */
    LOAD_PERCENT = 68, /* on average; at 87 one key in four is outside of its home bucket, which costs 5 ns */
    LOAD_SPREAD = 6,   /* each segment has its own limit, so that they do not all grow at once */
};

#define ALWAYS_INLINE __attribute__((always_inline)) static inline

/* Calls f(..., slots) with slots constant. */
#define SLOTS_CALL(x, f, ...) ((x)->slots == 5 ? f(__VA_ARGS__, 5) : f(__VA_ARGS__, 3))

/* A search reads the first cache line. */
struct keyindex_segment {
    struct keyindex_bucket *page[SEGMENT_PAGES]; /* [0]: all in one piece, if there are more buckets than
                                                    SEGMENT_PAGES pages hold: only keys chosen against the
                                                    hash cause that */
    uint32_t nbuckets;
    uint32_t count;
    uint32_t limit;                              /* count at which it grows */
    uint32_t depth;                              /* hash bits that all its keys share */
    _Alignas(64) uint32_t number[SEGMENT_PAGES]; /* of its pages; in one piece: [0] is that of the first
                                                    page, and the others follow it */
};
_Static_assert(sizeof(struct keyindex_segment) == 128, "a segment is two cache lines");

/* meta */
#define META_USED(slots) ((1U << (slots)) - 1)
#define META_PASSED_ONE  (1U << 5)
#define META_PASSED      ((1U << KEYINDEX_MARKS_AT) - META_PASSED_ONE) /* sticks when all bits are set */
#define META_MARK(slot)  (KEYINDEX_MARKS_AT + 2 * (slot))
#define META_MARKS       (UINT32_C(0x3ff) << KEYINDEX_MARKS_AT)

ALWAYS_INLINE uint32_t *bucket_meta(const struct keyindex_bucket *b)
{
    return (uint32_t *)(uintptr_t)b->word + 15;
}

ALWAYS_INLINE bool bucket_passed(const struct keyindex_bucket *b)
{
    return (*bucket_meta(b) & META_PASSED) != 0;
}

ALWAYS_INLINE struct keyindex_segment *segment_of(const struct keyindex *x, uint64_t hash)
{
    return x->directory[(hash >> 1) >> (63 - x->depth)];
}

/* Monotone in the hash's low half, so that moving a segment's buckets in order writes in order. */
ALWAYS_INLINE uint32_t home_of(const struct keyindex_segment *s, uint64_t hash)
{
    return (uint32_t)(((hash & UINT32_MAX) * s->nbuckets) >> 32);
}

ALWAYS_INLINE bool in_one_piece(uint32_t nbuckets)
{
    return nbuckets > SEGMENT_PAGES * PAGE;
}

ALWAYS_INLINE struct keyindex_bucket *bucket_at(const struct keyindex_segment *s, uint32_t b)
{
    return __builtin_expect(in_one_piece(s->nbuckets), 0) ? s->page[0] + b : s->page[b / PAGE] + b % PAGE;
}

ALWAYS_INLINE uint32_t page_number(const struct keyindex_segment *s, uint32_t page)
{
    return __builtin_expect(in_one_piece(s->nbuckets), 0) ? s->number[0] + page : s->number[page];
}

ALWAYS_INLINE uint32_t bucket_after(const struct keyindex_segment *s, uint32_t b)
{
    return b + 1 == s->nbuckets ? 0 : b + 1;
}

ALWAYS_INLINE unsigned payload_bytes(unsigned slots)
{
    return slots == 5 ? 4 : 12;
}

ALWAYS_INLINE char *bucket_payload(const struct keyindex_bucket *b, unsigned slot, unsigned slots)
{
    return (char *)b + sizeof(uint64_t) * slots + (size_t)payload_bytes(slots) * slot;
}

/* Adds a hash that is absent; there is room. Returns the place of its payload. */
ALWAYS_INLINE char *segment_place(struct keyindex_segment *s, uint64_t hash, unsigned mark, unsigned slots)
{
    uint32_t at = home_of(s, hash);
    struct keyindex_bucket *b = bucket_at(s, at);
    uint32_t *meta = bucket_meta(b);
    while ((*meta & META_USED(slots)) == META_USED(slots)) {
        *meta += (*meta & META_PASSED) == META_PASSED ? 0 : META_PASSED_ONE;
        at = bucket_after(s, at);
        b = bucket_at(s, at);
        meta = bucket_meta(b);
    }
    unsigned slot = (unsigned)__builtin_ctz(~*meta);
    b->word[slot] = hash;
    *meta |= 1U << slot | mark << META_MARK(slot); /* an unused slot has no mark */
    s->count++;
    return bucket_payload(b, slot, slots);
}

/* The number of keys that fill `percent` of a segment of that size. */
static inline uint32_t segment_keys(uint32_t nbuckets, unsigned slots, unsigned percent)
{
    return (uint32_t)((uint64_t)nbuckets * slots * percent / 100);
}

/* The directory entry of the next segment: the entries of one segment are neighbours. */
static inline size_t next_segment(const struct keyindex *x, size_t i)
{
    return i + ((size_t)1 << (x->depth - x->directory[i]->depth));
}

#endif
