#include "table/keyindex.h"

#include <assert.h>
#include <string.h>

#include "base/hash.h"

enum {
    SLOTS = 5,
    LINE = 64,
    BUCKETS_MIN = 8, /* of a new index: 40 slots */
    PAGE_SHIFT = 8,  /* 256 buckets, 16 KiB; a smaller segment is one smaller page */
    PAGE = 1 << PAGE_SHIFT,
    PAGES_MAX = 7, /* a segment that would need more splits */
    SPARES_MAX = 2 * PAGES_MAX,
    WINDOW = 32,          /* keys in the air; a power of two */
    AHEAD_HOME = 24,      /* keys from prefetch to the end of the search ... */
    AHEAD_NEXT = 8,       /* ... of which this many are left for the bucket after the home; both measured */
    DIRECTORY_SLACK = 64, /* directory entries per segment at most; random hashes need about 4 */
    DEPTH_MAX = 30,       /* bits of the directory: apart from the 32 that choose the bucket */
};

struct bucket {
    uint64_t key[SLOTS];
    uint32_t row[SLOTS];
    uint16_t passed; /* sticks at 65,535 */
    uint8_t used;    /* a bit per slot */
    uint8_t unused;
};
_Static_assert(sizeof(struct bucket) == LINE, "a bucket is a cache line");

struct keyindex_segment {
    struct bucket *page[PAGES_MAX];
    uint32_t nbuckets;
    uint32_t count;
    uint32_t limit; /* count at which it grows */
    uint8_t depth;  /* hash bits that all its keys have in common */
    uint8_t shift;  /* buckets per page, as a power of two */
};

/* Of a segment too large for pages, which only keys made against the hash bring about: all buckets in one
 * piece. */
enum { SHIFT_ONE_PIECE = 31 };

static uint64_t hash_key(const struct keyindex *x, uint64_t key)
{
    return mix64(key ^ x->seed);
}

static struct keyindex_segment *segment_of(const struct keyindex *x, uint64_t hash)
{
    return x->directory[(hash >> 1) >> (63 - x->depth)];
}

/* Monotone in the hash's low half, so that moving a segment's buckets in order writes in order. */
static uint32_t home_of(const struct keyindex_segment *s, uint64_t hash)
{
    return (uint32_t)(((hash & UINT32_MAX) * s->nbuckets) >> 32);
}

static inline struct bucket *bucket_at(const struct keyindex_segment *s, uint32_t b)
{
    return &s->page[b >> s->shift][b & ((UINT32_C(1) << s->shift) - 1)];
}

static uint32_t bucket_after(const struct keyindex_segment *s, uint32_t b)
{
    return b + 1 == s->nbuckets ? 0 : b + 1;
}

void keyindex_init(struct keyindex *x, struct tablemem *mem, uint64_t seed)
{
    *x = (struct keyindex){.mem = mem, .seed = seed};
}

/* ---- segments ---- */

static uint32_t limit_of(uint32_t nbuckets)
{
    return (uint32_t)((uint64_t)nbuckets * SLOTS * 87 / 100);
}

static uint32_t next_size(uint32_t nbuckets)
{
    if (nbuckets < PAGE) {
        return 2 * nbuckets;
    }
    return nbuckets < PAGES_MAX * PAGE ? nbuckets + PAGE : nbuckets + nbuckets / 4;
}

/* The smallest size that takes count keys and one more. */
static uint32_t size_for(uint32_t count)
{
    uint32_t nbuckets = BUCKETS_MIN;
    while (limit_of(nbuckets) <= count) {
        nbuckets = next_size(nbuckets);
    }
    return nbuckets;
}

static size_t pages_of(const struct keyindex_segment *s)
{
    return s->nbuckets <= PAGE || s->shift == SHIFT_ONE_PIECE ? 1 : s->nbuckets >> PAGE_SHIFT;
}

static size_t page_bytes(const struct keyindex_segment *s)
{
    uint32_t buckets = s->nbuckets <= PAGE || s->shift == SHIFT_ONE_PIECE ? s->nbuckets : PAGE;
    return buckets * sizeof(struct bucket);
}

static void *page_get(struct keyindex *x, size_t bytes)
{
    if (bytes == PAGE * LINE && x->spare) {
        void *page = x->spare;
        memcpy(&x->spare, page, sizeof x->spare);
        x->spares--;
        return page;
    }
    return tablemem_get(x->mem, LINE, bytes);
}

static void page_put(struct keyindex *x, void *page, size_t bytes)
{
    if (bytes == PAGE * LINE && x->spares < SPARES_MAX) {
        memcpy(page, &x->spare, sizeof x->spare);
        x->spare = page;
        x->spares++;
    } else {
        tablemem_put(x->mem, page, bytes);
    }
}

static void buckets_put(struct keyindex *x, const struct keyindex_segment *s)
{
    for (size_t i = 0; i < pages_of(s); i++) {
        page_put(x, s->page[i], page_bytes(s));
    }
}

/* Makes *s an empty segment of that size and depth. */
static paramo_err buckets_get(struct keyindex *x, uint32_t nbuckets, unsigned depth,
                              struct keyindex_segment *s)
{
    bool paged = nbuckets <= PAGES_MAX * PAGE;
    *s = (struct keyindex_segment){.nbuckets = nbuckets,
                                   .limit = limit_of(nbuckets),
                                   .depth = (uint8_t)depth,
                                   .shift = (uint8_t)(paged ? PAGE_SHIFT : SHIFT_ONE_PIECE)};
    size_t bytes = page_bytes(s);
    for (size_t i = 0; i < pages_of(s); i++) {
        s->page[i] = page_get(x, bytes);
        if (!s->page[i]) {
            while (i-- > 0) {
                page_put(x, s->page[i], bytes);
            }
            return err_memory(bytes);
        }
        memset(s->page[i], 0, bytes);
    }
    return PARAMO_OK;
}

/* Room is there and key is not. */
static void segment_place(struct keyindex_segment *s, uint64_t hash, uint64_t key, uint32_t row)
{
    uint32_t at = home_of(s, hash);
    struct bucket *b = bucket_at(s, at);
    while (b->used == (1U << SLOTS) - 1) {
        b->passed = (uint16_t)(b->passed + (b->passed < UINT16_MAX));
        at = bucket_after(s, at);
        b = bucket_at(s, at);
    }
    int slot = __builtin_ctz(~(unsigned)b->used);
    b->key[slot] = key;
    b->row[slot] = row;
    b->used = (uint8_t)(b->used | 1U << slot);
    s->count++;
}

static inline int bucket_slot(const struct bucket *b, uint64_t key)
{
    unsigned match = 0;
    for (unsigned i = 0; i < SLOTS; i++) {
        match |= (unsigned)(b->key[i] == key) << i;
    }
    match &= b->used;
    return match ? __builtin_ctz(match) : -1;
}

static struct bucket *segment_find(const struct keyindex_segment *s, uint32_t home, uint64_t key, int *slot)
{
    uint32_t at = home;
    for (uint32_t steps = 0; steps < s->nbuckets;
         steps++) { /* ends sooner unless `passed` stuck everywhere */
        struct bucket *b = bucket_at(s, at);
        *slot = bucket_slot(b, key);
        if (*slot >= 0) {
            return b;
        }
        if (b->passed == 0) {
            return NULL;
        }
        at = bucket_after(s, at);
    }
    return NULL;
}

/* Moves the keys of `from` to `to`, or to `other` those with hash bit `bit` (of 64, from the top) set. */
static void move_keys(const struct keyindex *x, const struct keyindex_segment *from,
                      struct keyindex_segment *to, struct keyindex_segment *other, unsigned bit)
{
    for (uint32_t at = 0; at < from->nbuckets; at++) {
        const struct bucket *b = bucket_at(from, at);
        for (unsigned used = b->used; used; used &= used - 1) {
            int slot = __builtin_ctz(used);
            uint64_t hash = hash_key(x, b->key[slot]);
            struct keyindex_segment *dst = other && (hash >> (63 - bit) & 1) ? other : to;
            segment_place(dst, hash, b->key[slot], b->row[slot]);
        }
    }
}

static paramo_err segment_grow(struct keyindex *x, struct keyindex_segment *s)
{
    struct keyindex_segment grown;
    paramo_err err = buckets_get(x, next_size(s->nbuckets), s->depth, &grown);
    if (err) {
        return err;
    }
    move_keys(x, s, &grown, NULL, 0);
    buckets_put(x, s);
    *s = grown;
    return PARAMO_OK;
}

static paramo_err directory_double(struct keyindex *x)
{
    size_t old = (size_t)1 << x->depth;
    struct keyindex_segment **directory =
        tablemem_get(x->mem, LINE, 2 * old * sizeof(struct keyindex_segment *));
    if (!directory) {
        return err_memory(2 * old * sizeof(struct keyindex_segment *));
    }
    for (size_t i = 0; i < old; i++) {
        directory[2 * i] = directory[2 * i + 1] = x->directory[i];
    }
    tablemem_put(x->mem, x->directory, old * sizeof(struct keyindex_segment *));
    x->directory = directory;
    x->depth++;
    return PARAMO_OK;
}

static bool may_split(const struct keyindex *x, const struct keyindex_segment *s)
{
    if (s->depth < x->depth) {
        return true;
    }
    return x->depth < DEPTH_MAX && (size_t)2 << x->depth <= DIRECTORY_SLACK * x->segments;
}

static uint32_t count_bit(const struct keyindex *x, const struct keyindex_segment *s, unsigned bit)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < s->nbuckets; at++) {
        const struct bucket *b = bucket_at(s, at);
        for (unsigned used = b->used; used; used &= used - 1) {
            n += (uint32_t)(hash_key(x, b->key[__builtin_ctz(used)]) >> (63 - bit) & 1);
        }
    }
    return n;
}

/* 1. all memory, 2. keys to the two halves, 3. the upper half of s's directory entries to the new segment. */
static paramo_err segment_split(struct keyindex *x, struct keyindex_segment *s, uint64_t hash)
{
    unsigned bit = s->depth;
    uint32_t ones = count_bit(x, s, bit);
    struct keyindex_segment low;
    struct keyindex_segment high;
    paramo_err err = buckets_get(x, size_for(s->count - ones), bit + 1, &low);
    if (err) {
        return err;
    }
    err = buckets_get(x, size_for(ones), bit + 1, &high);
    if (err) {
        goto err_low;
    }
    struct keyindex_segment *added = tablemem_get(x->mem, LINE, sizeof *added);
    if (!added) {
        err = err_memory(sizeof *added);
        goto err_high;
    }
    if (bit == x->depth && (err = directory_double(x)) != PARAMO_OK) {
        goto err_added;
    }
    move_keys(x, s, &low, &high, bit);
    buckets_put(x, s);
    *s = low;
    *added = high;
    x->segments++;
    size_t span = (size_t)1 << (x->depth - bit); /* entries of s, half of which now are added's */
    size_t first = ((hash >> 1) >> (63 - x->depth)) & ~(span - 1);
    for (size_t i = first + span / 2; i < first + span; i++) {
        x->directory[i] = added;
    }
    return PARAMO_OK;

err_added:
    tablemem_put(x->mem, added, sizeof *added);
err_high:
    buckets_put(x, &high);
err_low:
    buckets_put(x, &low);
    return err;
}

static paramo_err first_segment(struct keyindex *x)
{
    struct keyindex_segment *s = tablemem_get(x->mem, LINE, sizeof *s);
    if (!s) {
        return err_memory(sizeof *s);
    }
    paramo_err err = buckets_get(x, BUCKETS_MIN, 0, s);
    if (err) {
        goto err_segment;
    }
    x->directory = tablemem_get(x->mem, LINE, sizeof(struct keyindex_segment *));
    if (!x->directory) {
        err = err_memory(sizeof(struct keyindex_segment *));
        goto err_buckets;
    }
    x->directory[0] = s;
    x->segments = 1;
    return PARAMO_OK;

err_buckets:
    buckets_put(x, s);
err_segment:
    tablemem_put(x->mem, s, sizeof *s);
    return err;
}

/* ---- the index ---- */

/* Steps from segment to segment: those that serve several directory entries serve neighbours. */
static size_t next_segment(const struct keyindex *x, size_t i)
{
    return i + ((size_t)1 << (x->depth - x->directory[i]->depth));
}

void keyindex_clear(struct keyindex *x)
{
    if (x->directory) {
        size_t entries = (size_t)1 << x->depth;
        for (size_t i = 0, next; i < entries; i = next) {
            next = next_segment(x, i);
            buckets_put(x, x->directory[i]);
            tablemem_put(x->mem, x->directory[i], sizeof *x->directory[i]);
        }
        tablemem_put(x->mem, x->directory, entries * sizeof(struct keyindex_segment *));
    }
    while (x->spare) {
        tablemem_put(x->mem, page_get(x, PAGE * LINE), PAGE * LINE);
    }
    keyindex_init(x, x->mem, x->seed);
}

/* One key's search in the air. */
struct probe {
    const struct keyindex_segment *segment;
    const struct bucket *bucket; /* prefetched */
    uint32_t at;                 /* its number */
};

static inline void probe_home(const struct keyindex *x, uint64_t key, struct probe *p)
{
    uint64_t hash = hash_key(x, key);
    p->segment = segment_of(x, hash);
    p->at = home_of(p->segment, hash);
    p->bucket = bucket_at(p->segment, p->at);
    __builtin_prefetch(p->bucket);
}

/* Nearly always the end of the search: else the next bucket is on its way. */
static inline uint32_t probe_look(uint64_t key, struct probe *p)
{
    const struct bucket *b = p->bucket;
    p->bucket = NULL;
    int slot = bucket_slot(b, key);
    if (slot >= 0) {
        return b->row[slot];
    }
    if (b->passed) {
        p->at = bucket_after(p->segment, p->at);
        p->bucket = bucket_at(p->segment, p->at);
        __builtin_prefetch(p->bucket);
    }
    return KEYINDEX_NONE;
}

/* Three steps for each key, AHEAD keys apart: 1. fetch the home bucket, 2. look, fetch the next one if the
 * key may be there, 3. search on. */
size_t keyindex_find(const struct keyindex *x, const uint64_t *keys, size_t n, uint32_t *rows)
{
    if (x->count == 0) {
        memset(rows, 0xff, n * sizeof *rows);
        return 0;
    }
    struct probe window[WINDOW];
    size_t found = 0;
    for (size_t i = 0; i < n + AHEAD_HOME; i++) {
        if (i < n) {
            probe_home(x, keys[i], &window[i % WINDOW]);
        }
        size_t look = i - (AHEAD_HOME - AHEAD_NEXT);
        if (look < n) { /* unsigned: not before the first */
            rows[look] = probe_look(keys[look], &window[look % WINDOW]);
        }
        size_t last = i - AHEAD_HOME;
        if (last < n) {
            const struct probe *p = &window[last % WINDOW];
            if (p->bucket) {
                int slot;
                const struct bucket *b = segment_find(p->segment, p->at, keys[last], &slot);
                rows[last] = b ? b->row[slot] : KEYINDEX_NONE;
            }
            found += rows[last] != KEYINDEX_NONE;
        }
    }
    return found;
}

void keyindex_prefetch(const struct keyindex *x, uint64_t key)
{
    struct probe p;
    if (x->directory) {
        probe_home(x, key, &p);
    }
}

paramo_err keyindex_insert(struct keyindex *x, uint64_t key, uint32_t row, uint32_t *found)
{
    paramo_err err;
    if (!x->directory && (err = first_segment(x)) != PARAMO_OK) {
        return err;
    }
    uint64_t hash = hash_key(x, key);
    struct keyindex_segment *s = segment_of(x, hash);
    int slot;
    const struct bucket *b = segment_find(s, home_of(s, hash), key, &slot);
    if (b) {
        *found = b->row[slot];
        return PARAMO_OK;
    }
    while (s->count >= s->limit) {
        bool split = s->nbuckets >= PAGES_MAX * PAGE && may_split(x, s);
        err = split ? segment_split(x, s, hash) : segment_grow(x, s);
        if (err) {
            return err;
        }
        s = segment_of(x, hash);
    }
    segment_place(s, hash, key, row);
    x->count++;
    *found = row;
    return PARAMO_OK;
}

bool keyindex_remove(struct keyindex *x, uint64_t key, uint32_t *row)
{
    if (x->count == 0) {
        return false;
    }
    uint64_t hash = hash_key(x, key);
    struct keyindex_segment *s = segment_of(x, hash);
    uint32_t home = home_of(s, hash);
    int slot;
    struct bucket *b = segment_find(s, home, key, &slot);
    if (!b) {
        return false;
    }
    if (row) {
        *row = b->row[slot];
    }
    b->used = (uint8_t)(b->used & ~(1U << slot));
    for (uint32_t at = home; bucket_at(s, at) != b; at = bucket_after(s, at)) {
        struct bucket *p = bucket_at(s, at);
        assert(p->passed > 0);
        p->passed = (uint16_t)(p->passed - (p->passed < UINT16_MAX));
    }
    s->count--;
    x->count--;
    return true;
}

void keyindex_dump(const struct keyindex *x, uint64_t *keys, uint32_t *rows)
{
    size_t n = 0;
    size_t entries = x->directory ? (size_t)1 << x->depth : 0;
    for (size_t i = 0; i < entries; i = next_segment(x, i)) {
        const struct keyindex_segment *s = x->directory[i];
        for (uint32_t at = 0; at < s->nbuckets; at++) {
            const struct bucket *b = bucket_at(s, at);
            for (unsigned used = b->used; used; used &= used - 1) {
                int slot = __builtin_ctz(used);
                keys[n] = b->key[slot];
                if (rows) {
                    rows[n] = b->row[slot];
                }
                n++;
            }
        }
    }
    assert(n == x->count);
}

uint64_t keyindex_probes(const struct keyindex *x)
{
    uint64_t probes = x->count;
    size_t entries = x->directory ? (size_t)1 << x->depth : 0;
    for (size_t i = 0; i < entries; i = next_segment(x, i)) {
        const struct keyindex_segment *s = x->directory[i];
        for (uint32_t at = 0; at < s->nbuckets; at++) {
            probes += bucket_at(s, at)->passed;
        }
    }
    return probes;
}
