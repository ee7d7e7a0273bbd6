/*
 * Index of a sparse table: 64-bit key -> payload of 4 or 12 bytes in the same cache line. The payload is a
 * row number, or a whole small row. Every key is possible, including 0 and 2^64-1. This module never knows
 * rows. Tests: test/table/test_keyindex.c.
 *
 * keyindex_layout.h draws the structure, keyindex_segment.h has one segment, keyindex_grow.h makes room.
 */
#ifndef TABLE_KEYINDEX_H
#define TABLE_KEYINDEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/keyindex_layout.h"

/* One pass over many keys whose cache misses overlap: see keyindex_scan_next. */
struct keyindex_scan {
    const struct keyindex *x;
    const uint64_t *keys;
    size_t n, given;
    uint64_t moves; /* the index's `moves` when the current fetches began */
    bool deep;      /* directory and segments are prefetched as well; affects time only */
    /* The keys of a chunk, and those that are being fetched. */
    uint64_t hash[KEYINDEX_CHUNK + 3 * KEYINDEX_AHEAD];
    struct keyindex_segment *segment[KEYINDEX_CHUNK + 2 * KEYINDEX_AHEAD];
    struct keyindex_bucket *bucket[KEYINDEX_CHUNK + KEYINDEX_AHEAD];
    void *payload[KEYINDEX_CHUNK];
};

/* Takes no memory yet. payload_bytes is 4 or 12. */
void keyindex_init(struct keyindex *x, struct tablemem *mem, uint64_t seed, unsigned payload_bytes);
/* Frees everything. Then x is as after keyindex_init. */
void keyindex_clear(struct keyindex *x);
/* keyindex_clear in steps of that many segments. A usual segment has up to 6 pages to free; the last step also frees
 * the segments themselves, in blocks. *cursor is 0 at first. True: done. x must not be used otherwise until then. */
bool keyindex_clear_step(struct keyindex *x, size_t *cursor, size_t segments);

/* Looks n keys up, in an index with payloads of 4 bytes: rows[i] is the row number, or KEYINDEX_NONE.
 * Returns how many keys were found. */
size_t keyindex_find(const struct keyindex *x, const uint64_t *keys, size_t n, uint32_t *rows);
/* The key's payload, valid until the next insertion. NULL: the key is not present. */
void *keyindex_payload(const struct keyindex *x, uint64_t key);

/* Begins to look n keys up, chunk by chunk. Insertions between the calls are allowed. */
void keyindex_scan_start(struct keyindex_scan *scan, const struct keyindex *x, const uint64_t *keys,
                         size_t n);
/* Looks up the next keys, in order. Returns their number (0 at the end) and pointers to their payloads
 * (NULL: the key is not present), valid until the next insertion. */
size_t keyindex_scan_next(struct keyindex_scan *scan, void ***payload);

/* Prefetches the memory that an insertion of this key reads first. */
void keyindex_prefetch(const struct keyindex *x, uint64_t key);
/* Adds key if it is not present; then *fresh is true. *payload points to the key's payload until the next
 * insertion; the caller writes a fresh one. After MEMORY or TOO_LARGE nothing has changed. */
MUST_USE paramo_err keyindex_insert(struct keyindex *x, uint64_t key, void **payload, bool *fresh);
/* keyindex_insert for a key that is known to be absent. */
MUST_USE paramo_err keyindex_add(struct keyindex *x, uint64_t key, void **payload);
/* keyindex_add for key i of the scan's last chunk, which is absent. It is faster, since the scan has
 * found the key's place, unless another insertion has moved it. */
MUST_USE paramo_err keyindex_scan_add(const struct keyindex_scan *scan, struct keyindex *x, size_t i,
                                      uint64_t key, void **payload);
/* Removes key. False: it is not present. payload may be NULL. Allocates and frees no memory. */
bool keyindex_remove(struct keyindex *x, uint64_t key, void *payload);
/* Calls `each` for all keys, in no order. `each` may change the payload. */
void keyindex_walk(const struct keyindex *x, void (*each)(void *ctx, uint64_t key, void *payload), void *ctx);
/* The hash by which keyindex_sweep orders this key. */
uint64_t keyindex_hash(const struct keyindex *x, uint64_t key);
/* Calls `each` for the keys with the next hashes from *cursor (0 at first) on, about that many or fewer, in
 * no order, and moves *cursor after them. False: there are no more. Insertions and removals between the
 * calls are allowed. */
bool keyindex_sweep(const struct keyindex *x, uint64_t *cursor, uint64_t rows,
                    void (*each)(void *ctx, uint64_t key, uint64_t hash, void *payload), void *ctx);
/* Like keyindex_sweep(), without keys: calls `each` for the payloads of up to 5 keys that lie in one cache line. */
bool keyindex_sweep_payloads(const struct keyindex *x, uint64_t *cursor, uint64_t rows,
                             void (*each)(void *ctx, void *const *payload, unsigned n), void *ctx);
/* The sum, over all keys, of the buckets that a search for the key reads. Tests check it. */
uint64_t keyindex_probes(const struct keyindex *x);

/* ---- marks ---- Two bits beside each payload, which move with it; 0 at first. table_snapshot.h says what they are
 * for. */

/* The mark's position in the meta: 5 payloads of 4 bytes begin at byte 40, 3 payloads of 12 at byte 24. */
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

/* Call it before these payloads change (n <= KEYINDEX_CHUNK). It calls `first` for those whose mark is
 * not the index's, and sets their marks. No effect while the index has no mark. */
void keyindex_change(struct keyindex *x, const uint64_t *keys, void *const *payload, size_t n);
/* Sets the marks of the next keys from *cursor (0 at first) on to 0, as keyindex_sweep visits them;
 * false: there are no more. If x->mark is not 0, marks that are set between two calls may stay. */
bool keyindex_clear_marks(struct keyindex *x, uint64_t *cursor, uint64_t rows);

/* ---- places ---- A payload by a number of 32 bits, valid as long as a pointer to it: while `moves` stays
 * the same and the key is not removed. */

/* The places of the n keys of the scan's last chunk; KEYINDEX_NONE: the key is not present. If
 * `moves` has changed since then, nothing is written. */
void keyindex_scan_places(const struct keyindex_scan *scan, size_t n, uint32_t *places);

static inline void *keyindex_at(const struct keyindex *x, unsigned slots, uint32_t place)
{
    struct keyindex_bucket *page = x->page[place >> KEYINDEX_PAGE_AT];
    unsigned slot = place & ((1U << KEYINDEX_SLOT_BITS) - 1);
    return (char *)(page + (place >> KEYINDEX_SLOT_BITS & ((1U << KEYINDEX_PAGE_SHIFT) - 1))) +
           sizeof(uint64_t) * slots + (slots == 5 ? 4 : 12) * (size_t)slot;
}

#endif
