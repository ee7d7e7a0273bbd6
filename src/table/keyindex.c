#include "table/keyindex.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"
#include "table/keyindex_grow.h"
#include "table/keyindex_segment.h"

static uint64_t hash_key(const struct keyindex *x, uint64_t key)
{
    return mix64(key ^ x->seed);
}

/* The inverse: mix64's steps backwards, with the inverses of its factors modulo 2^64. */
static uint64_t key_of(const struct keyindex *x, uint64_t hash)
{
    hash ^= hash >> 31 ^ hash >> 62;
    hash *= UINT64_C(0x319642b2d24d8ec3);
    hash ^= hash >> 27 ^ hash >> 54;
    hash *= UINT64_C(0x96de1b173f119089);
    hash ^= hash >> 30 ^ hash >> 60;
    return hash ^ x->seed;
}

void keyindex_init(struct keyindex *x, struct tablemem *mem, uint64_t seed, unsigned bytes)
{
    assert(bytes == 4 || bytes == 12);
    *x = (struct keyindex){
        .mem = mem, .seed = seed, .slots = bytes == 4 ? 5 : 3, .page_free = KEYINDEX_PAGES_MAX};
}

bool keyindex_clear_step(struct keyindex *x, size_t *cursor, size_t segments)
{
    if (!keyindex_free_step(x, cursor, segments))
        return false;
    uint64_t moves = x->moves + 1;
    keyindex_init(x, x->mem, x->seed, payload_bytes(x->slots));
    x->moves = moves;
    assert(!x->count && !x->directory && !x->page_room); /* it is new */
    return true;
}

void keyindex_clear(struct keyindex *x)
{
    size_t cursor = 0;
    (void)keyindex_clear_step(x, &cursor, SIZE_MAX);
}

/* The slot that has this hash, as a bit. 0: no slot. */
ALWAYS_INLINE unsigned bucket_match(const struct keyindex_bucket *b, uint64_t hash, unsigned slots)
{
    unsigned match = 0;
    for (unsigned i = 0; i < slots; i++)
        match |= (unsigned)(b->word[i] == hash) << i;
    return match & *bucket_meta(b);
}

ALWAYS_INLINE int bucket_slot(const struct keyindex_bucket *b, uint64_t hash, unsigned slots)
{
    unsigned match = bucket_match(b, hash, slots);
    return match ? __builtin_ctz(match) : -1;
}

ALWAYS_INLINE struct keyindex_bucket *segment_find(const struct keyindex_segment *s, uint64_t hash,
                                                   uint32_t *at, int *slot, unsigned slots)
{
    for (uint32_t steps = 0; steps < s->nbuckets;
         steps++) { /* ends sooner unless `passed` stuck everywhere */
        struct keyindex_bucket *b = bucket_at(s, *at);
        *slot = bucket_slot(b, hash, slots);
        if (*slot >= 0)
            return b;
        if (!bucket_passed(b))
            return NULL;
        *at = bucket_after(s, *at);
    }
    return NULL;
}

/* ---- many keys ---- */

enum { DEEP_SEGMENTS = 8192 }; /* half a megabyte of them */

void keyindex_scan_start(struct keyindex_scan *scan, const struct keyindex *x, const uint64_t *keys, size_t n)
{
    scan->x = x;
    scan->keys = keys;
    scan->n = n;
    scan->given = 0;
    scan->moves = x->moves - 1; /* nothing is being fetched */
    scan->deep = x->segments >= DEEP_SEGMENTS;
}

/* The steps to a key's home bucket. Each step fetches the memory that the next one reads. In an index of
 * many segments (deep) the steps are KEYINDEX_AHEAD keys apart. If directory and segments fit in the
 * L2 cache, that costs more than it saves, and all steps run at once. */

ALWAYS_INLINE void scan_hash(struct keyindex_scan *scan, size_t i, uint64_t key, bool deep)
{
    const struct keyindex *x = scan->x;
    uint64_t hash = hash_key(x, key);
    scan->hash[i] = hash;
    if (deep)
        __builtin_prefetch(&x->directory[(hash >> 1) >> (63 - x->depth)]);
}

ALWAYS_INLINE void scan_segment(struct keyindex_scan *scan, size_t i, bool deep)
{
    struct keyindex_segment *s = segment_of(scan->x, scan->hash[i]);
    scan->segment[i] = s;
    if (deep)
        __builtin_prefetch(s);
}

ALWAYS_INLINE void scan_bucket(struct keyindex_scan *scan, size_t i)
{
    const struct keyindex_segment *s = scan->segment[i];
    struct keyindex_bucket *b = bucket_at(s, home_of(s, scan->hash[i]));
    __builtin_prefetch(b, 1);
    scan->bucket[i] = b;
}

/* All steps that are due when key i is looked up. */
ALWAYS_INLINE void scan_begin(struct keyindex_scan *scan, size_t i, const uint64_t *keys, size_t left,
                              bool deep)
{
    size_t third = i + KEYINDEX_AHEAD;
    size_t second = deep ? third + KEYINDEX_AHEAD : third;
    size_t first = deep ? second + KEYINDEX_AHEAD : third;
    if (first < left)
        scan_hash(scan, first, keys[first], deep);
    if (second < left)
        scan_segment(scan, second, deep);
    if (third < left)
        scan_bucket(scan, third);
}

/* Fills the pipeline of fetches, up to the state that key 0 needs. */
static void scan_fill(struct keyindex_scan *scan, const uint64_t *keys, size_t left, bool deep)
{
    for (size_t i = 0; i < left && i < (deep ? 3 : 1) * KEYINDEX_AHEAD; i++)
        scan_hash(scan, i, keys[i], deep);
    for (size_t i = 0; i < left && i < (deep ? 2 : 1) * KEYINDEX_AHEAD; i++)
        scan_segment(scan, i, deep);
    for (size_t i = 0; i < left && i < KEYINDEX_AHEAD; i++)
        scan_bucket(scan, i);
}

/* Looks key i up in one bucket, without a branch that depends on the result: a misprediction would wait
 * for memory. Returns 1 if the key may be in a later bucket. */
ALWAYS_INLINE size_t scan_visit(struct keyindex_scan *scan, size_t i, const struct keyindex_bucket *b,
                                unsigned slots)
{
    unsigned match = bucket_match(b, scan->hash[i], slots);
    char *at = bucket_payload(b, (unsigned)__builtin_ctz(match | 1U << slots), slots);
    scan->payload[i] = match ? at : NULL;
    bool full = (*bucket_meta(b) & META_USED(slots)) == META_USED(slots);
    /* the next bucket, where an insertion would go (unless it is in another page) */
    __builtin_prefetch(b + (!match & full), 1);
    return !match & bucket_passed(b);
}

/* 1. fetches the home buckets, KEYINDEX_AHEAD keys ahead, 2. looks in them, 3. looks in the next bucket
 * for keys that may be further on (late), 4. searches on for the few keys that may be still further on. */
ALWAYS_INLINE size_t scan_some(struct keyindex_scan *scan, void ***payload, bool deep, unsigned slots)
{
    assert(scan->given <= scan->n);
    const uint64_t *keys = scan->keys + scan->given;
    size_t left = scan->n - scan->given;
    size_t n = left < KEYINDEX_CHUNK ? left : KEYINDEX_CHUNK;
    uint16_t late[KEYINDEX_CHUNK + 1];
    uint32_t next[KEYINDEX_CHUNK];
    size_t nlate = 0;
    size_t nlater = 0;
    *payload = scan->payload;
    if (!scan->x->directory) {
        memset(scan->payload, 0, n * sizeof scan->payload[0]);
        scan->moves = scan->x->moves;
        scan->given += n;
        return n;
    }
    if (scan->moves != scan->x->moves) { /* the fetched buckets may have moved */
        scan_fill(scan, keys, left, deep);
        scan->moves = scan->x->moves;
    } else {
        memcpy(scan->hash, scan->hash + KEYINDEX_CHUNK,
               sizeof scan->hash - sizeof(uint64_t) * KEYINDEX_CHUNK);
        memcpy(scan->segment, scan->segment + KEYINDEX_CHUNK,
               sizeof scan->segment - sizeof(void *) * KEYINDEX_CHUNK);
        memcpy(scan->bucket, scan->bucket + KEYINDEX_CHUNK,
               sizeof scan->bucket - sizeof(void *) * KEYINDEX_CHUNK);
    }
    for (size_t i = 0; i < n; i++) {
        scan_begin(scan, i, keys, left, deep);
        late[nlate] = (uint16_t)i;
        nlate += scan_visit(scan, i, scan->bucket[i], slots);
    }
    for (size_t k = 0; k < nlate; k++) {
        const struct keyindex_segment *s = scan->segment[late[k]];
        uint32_t at = bucket_after(s, home_of(s, scan->hash[late[k]]));
        late[nlater] = late[k];
        next[nlater] = bucket_after(s, at);
        nlater += scan_visit(scan, late[k], bucket_at(s, at), slots);
    }
    for (size_t k = 0; k < nlater; k++) {
        uint64_t hash = scan->hash[late[k]];
        int slot;
        const struct keyindex_bucket *b = segment_find(scan->segment[late[k]], hash, &next[k], &slot, slots);
        scan->payload[late[k]] = b ? bucket_payload(b, (unsigned)slot, slots) : NULL;
    }
    scan->given += n;
    assert(nlater <= nlate && nlate <= n && scan->given <= scan->n);
    return n;
}

ALWAYS_INLINE size_t scan_next(struct keyindex_scan *scan, void ***payload, unsigned slots)
{
    return scan->deep ? scan_some(scan, payload, true, slots) : scan_some(scan, payload, false, slots);
}

size_t keyindex_scan_next(struct keyindex_scan *scan, void ***payload)
{
    return SLOTS_CALL(scan->x, scan_next, scan, payload);
}

size_t keyindex_find(const struct keyindex *x, const uint64_t *keys, size_t n, uint32_t *rows)
{
    assert(x->slots == 5);
    struct keyindex_scan scan;
    void **payload;
    size_t found = 0;
    keyindex_scan_start(&scan, x, keys, n);
    for (size_t done = 0, m; (m = scan_next(&scan, &payload, 5)) > 0; done += m) {
        for (size_t i = 0; i < m; i++) {
            rows[done + i] = KEYINDEX_NONE;
            if (payload[i])
                memcpy(&rows[done + i], payload[i], sizeof *rows);
            found += rows[done + i] != KEYINDEX_NONE;
        }
    }
    assert(found <= n && scan.given == n);
    return found;
}

void *keyindex_payload(const struct keyindex *x, uint64_t key)
{
    if (!x->directory)
        return NULL;
    uint64_t hash = hash_key(x, key);
    const struct keyindex_segment *s = segment_of(x, hash);
    uint32_t at = home_of(s, hash);
    int slot;
    const struct keyindex_bucket *b = SLOTS_CALL(x, segment_find, s, hash, &at, &slot);
    return b ? bucket_payload(b, (unsigned)slot, x->slots) : NULL;
}

/* The bucket's index in the page. PAGE or more: it is in another page. */
ALWAYS_INLINE uintptr_t bucket_from(const struct keyindex_segment *s, uint32_t page, uintptr_t bucket)
{
    return (bucket - (uintptr_t)bucket_at(s, page * PAGE)) / sizeof(struct keyindex_bucket);
}

/* Most payloads are in the page of their home bucket; the search for the others may take long. */
ALWAYS_INLINE uint32_t place_of(const struct keyindex_segment *s, uint64_t hash, const void *payload,
                                unsigned slots)
{
    uintptr_t at = (uintptr_t)payload % sizeof(struct keyindex_bucket);
    uintptr_t bucket = (uintptr_t)payload - at;
    uint32_t page = home_of(s, hash) / PAGE;
    while (__builtin_expect(bucket_from(s, page, bucket) >= PAGE, 0))
        page = (page + 1) * PAGE < s->nbuckets ? page + 1 : 0;
    uint32_t slot = ((uint32_t)at - (uint32_t)sizeof(uint64_t) * slots) / payload_bytes(slots);
    return page_number(s, page) << KEYINDEX_PAGE_AT |
           (uint32_t)bucket_from(s, page, bucket) << KEYINDEX_SLOT_BITS | slot;
}

ALWAYS_INLINE void places_of(const struct keyindex_scan *scan, size_t n, uint32_t *places, unsigned slots)
{
    for (size_t i = 0; i < n; i++) {
        const void *payload = scan->payload[i];
        places[i] = payload ? place_of(scan->segment[i], scan->hash[i], payload, slots) : KEYINDEX_NONE;
    }
}

void keyindex_scan_places(const struct keyindex_scan *scan, size_t n, uint32_t *places)
{
    if (scan->moves == scan->x->moves)
        SLOTS_CALL(scan->x, places_of, scan, n, places);
}

/* ---- marks ---- */

/* Lists the payloads without this mark. Without branches: most have it already. */
ALWAYS_INLINE size_t find_unmarked(void *const *payload, size_t n, unsigned mark, uint16_t *unmarked,
                                   unsigned slots)
{
    size_t n_unmarked = 0;
    for (size_t i = 0; i < n; i++) {
        unmarked[n_unmarked] = (uint16_t)i;
        n_unmarked += (*keyindex_meta(payload[i]) >> keyindex_mark_at(payload[i], slots) & 3) != mark;
    }
    return n_unmarked;
}

void keyindex_change(struct keyindex *x, const uint64_t *keys, void *const *payload, size_t n)
{
    uint16_t unmarked[KEYINDEX_CHUNK];
    assert(n <= KEYINDEX_CHUNK);
    size_t n_unmarked = x->mark ? SLOTS_CALL(x, find_unmarked, payload, n, x->mark, unmarked) : 0;
    for (size_t k = 0; k < n_unmarked; k++) {
        void *at = payload[unmarked[k]];
        unsigned was = keyindex_mark(x, at);
        if (was != x->mark && x->first) /* the mark is set already if the key occurs twice */
            x->first(x->first_arg, keys[unmarked[k]], at, was);
        keyindex_set_mark(x, at, x->mark);
    }
}

static void clear_mark(void *ctx, uint64_t key, uint64_t hash, void *payload)
{
    (void)key, (void)hash;
    keyindex_set_mark(ctx, payload, 0);
}

bool keyindex_clear_marks(struct keyindex *x, uint64_t *cursor, uint64_t rows)
{
    return keyindex_sweep(x, cursor, rows, clear_mark, x);
}

/* ---- one key ---- */

void keyindex_prefetch(const struct keyindex *x, uint64_t key)
{
    if (x->directory) {
        uint64_t hash = hash_key(x, key);
        const struct keyindex_segment *s = segment_of(x, hash);
        __builtin_prefetch(bucket_at(s, home_of(s, hash)), 1);
    }
}

/* Adds a hash that is not present to its segment. */
ALWAYS_INLINE paramo_err enter_at(struct keyindex *x, struct keyindex_segment *s, uint64_t hash,
                                  void **payload, unsigned slots)
{
    while (__builtin_expect(s->count >= s->limit, 0)) {
        paramo_err err = keyindex_make_room(x, hash);
        if (err)
            return err;
        s = segment_of(x, hash);
    }
    *payload = segment_place(s, hash, x->mark, slots);
    x->count++;
    return PARAMO_OK;
}

ALWAYS_INLINE paramo_err enter(struct keyindex *x, uint64_t hash, void **payload, unsigned slots)
{
    return enter_at(x, segment_of(x, hash), hash, payload, slots);
}

paramo_err keyindex_add(struct keyindex *x, uint64_t key, void **payload)
{
    paramo_err err;
    if (!x->directory && (err = keyindex_first_segment(x)) != PARAMO_OK)
        return err;
    return SLOTS_CALL(x, enter, x, hash_key(x, key), payload);
}

paramo_err keyindex_insert(struct keyindex *x, uint64_t key, void **payload, bool *fresh)
{
    void *there = keyindex_payload(x, key);
    *fresh = !there;
    if (there) {
        *payload = there;
        return PARAMO_OK;
    }
    return keyindex_add(x, key, payload);
}

paramo_err keyindex_scan_add(const struct keyindex_scan *scan, struct keyindex *x, size_t i, uint64_t key,
                             void **payload)
{
    assert(scan->x == x);
    if (!x->directory || scan->moves != x->moves)
        return keyindex_add(x, key, payload);
    return SLOTS_CALL(x, enter_at, x, scan->segment[i], scan->hash[i], payload);
}

bool keyindex_remove(struct keyindex *x, uint64_t key, void *payload)
{
    if (x->count == 0)
        return false;
    uint64_t hash = hash_key(x, key);
    struct keyindex_segment *s = segment_of(x, hash);
    uint32_t at = home_of(s, hash);
    int slot;
    struct keyindex_bucket *b = SLOTS_CALL(x, segment_find, s, hash, &at, &slot);
    if (!b)
        return false;
    if (payload)
        memcpy(payload, bucket_payload(b, (unsigned)slot, x->slots), payload_bytes(x->slots));
    *bucket_meta(b) &= ~(1U << slot | 3U << META_MARK(slot));
    for (uint32_t i = home_of(s, hash); i != at; i = bucket_after(s, i)) {
        uint32_t *meta = bucket_meta(bucket_at(s, i));
        assert(*meta & META_PASSED);
        *meta -= (*meta & META_PASSED) == META_PASSED ? 0 : META_PASSED_ONE;
    }
    assert(s->count > 0 && x->count >= s->count);
    s->count--;
    x->count--;
    return true;
}

void keyindex_walk(const struct keyindex *x, void (*each)(void *ctx, uint64_t key, void *payload), void *ctx)
{
    size_t entries = x->directory ? (size_t)1 << x->depth : 0;
    for (size_t i = 0; i < entries; i = next_segment(x, i)) {
        const struct keyindex_segment *s = x->directory[i];
        for (uint32_t at = 0; at < s->nbuckets; at++) {
            const struct keyindex_bucket *b = bucket_at(s, at);
            for (unsigned used = *bucket_meta(b) & META_USED(x->slots); used; used &= used - 1) {
                unsigned slot = (unsigned)__builtin_ctz(used);
                each(ctx, key_of(x, b->word[slot]), bucket_payload(b, slot, x->slots));
            }
        }
    }
}

uint64_t keyindex_hash(const struct keyindex *x, uint64_t key)
{
    return hash_key(x, key);
}

/* The segment of the next hashes from cursor on, of which a step of a sweep takes those up to *last. A segment's hashes
 * are one range. If it has more than `rows` keys, a step takes half of the range, or a quarter ... NULL: the index is
 * empty. */
static const struct keyindex_segment *sweep_segment(const struct keyindex *x, uint64_t cursor, uint64_t rows,
                                                    uint64_t *last)
{
    if (!x->directory)
        return NULL;
    const struct keyindex_segment *s = segment_of(x, cursor);
    unsigned depth = s->depth;
    for (uint64_t count = s->count; count > rows && depth < 63; count /= 2)
        depth++;
    *last = depth ? cursor | (UINT64_MAX >> depth) : UINT64_MAX;
    return s;
}

bool keyindex_sweep(const struct keyindex *x, uint64_t *cursor, uint64_t rows,
                    void (*each)(void *ctx, uint64_t key, uint64_t hash, void *payload), void *ctx)
{
    uint64_t last;
    const struct keyindex_segment *s = sweep_segment(x, *cursor, rows, &last);
    if (!s)
        return false;
    for (uint32_t at = 0; at < s->nbuckets; at++) {
        const struct keyindex_bucket *b = bucket_at(s, at);
        for (unsigned used = *bucket_meta(b) & META_USED(x->slots); used; used &= used - 1) {
            unsigned slot = (unsigned)__builtin_ctz(used);
            uint64_t hash = b->word[slot];
            if (hash >= *cursor && hash <= last)
                each(ctx, key_of(x, hash), hash, bucket_payload(b, slot, x->slots));
        }
    }
    *cursor = last + 1;
    return *cursor != 0;
}

bool keyindex_sweep_payloads(const struct keyindex *x, uint64_t *cursor, uint64_t rows,
                             void (*each)(void *ctx, void *const *payload, unsigned n), void *ctx)
{
    uint64_t last;
    const struct keyindex_segment *s = sweep_segment(x, *cursor, rows, &last);
    if (!s)
        return false;
    assert(last >= *cursor && s->nbuckets > 0); /* each step makes progress */
    for (uint32_t at = 0; at < s->nbuckets; at++) {
        const struct keyindex_bucket *b = bucket_at(s, at);
        const unsigned used = *bucket_meta(b) & META_USED(x->slots);
        void *payload[5];
        unsigned n = 0;
        for (unsigned slot = 0; slot < x->slots; slot++) { /* without branches: they would go either way */
            payload[n] = bucket_payload(b, slot, x->slots);
            n += (used >> slot & 1) && b->word[slot] >= *cursor && b->word[slot] <= last;
        }
        each(ctx, payload, n);
    }
    *cursor = last + 1;
    return *cursor != 0;
}

uint64_t keyindex_probes(const struct keyindex *x)
{
    uint64_t probes = x->count;
    size_t entries = x->directory ? (size_t)1 << x->depth : 0;
    for (size_t i = 0; i < entries; i = next_segment(x, i)) {
        const struct keyindex_segment *s = x->directory[i];
        for (uint32_t at = 0; at < s->nbuckets; at++)
            probes += (*bucket_meta(bucket_at(s, at)) & META_PASSED) / META_PASSED_ONE;
    }
    return probes;
}
