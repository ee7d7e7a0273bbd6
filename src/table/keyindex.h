/*
 * Index of a sparse table: 64-bit key -> payload of 4 or 12 bytes in the same cache line. The payload is a
 * row number, or the whole of a small row. Every key is possible, 0 and 2^64-1 too. Knows nothing of rows.
 * Tests: test/table/test_keyindex.c.
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
/* Sets the marks of the next keys from *cursor (0 at first) on to 0, as keyindex_sweep visits them; false: there are no
 * more. Marks that are set between two calls may stay: the index has none then. */
bool keyindex_clear_marks(struct keyindex *x, uint64_t *cursor, uint64_t rows);

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
