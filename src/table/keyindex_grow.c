#include "table/keyindex_grow.h"

#include <assert.h>
#include <string.h>

#include "table/keyindex_segment.h"

enum {
    LINE = 64,
    BUCKETS_MIN = 8, /* of a new index: 40 or 24 slots */
    PAGE_BYTES = PAGE * LINE,
    SPARES_MAX = 2 * SEGMENT_PAGES,
    BLOCK = 64,           /* segments made at once; the first only links the blocks */
    FETCH_AHEAD = 16,     /* buckets: the hardware prefetcher does not see far in a page */
    DIRECTORY_SLACK = 64, /* directory entries per segment at most; random hashes need about 4 */
    DEPTH_MAX = 30,       /* bits of the directory, not those 32 that choose the bucket */
};

/* ---- pages ---- */

/* Bytes of each allocation of a segment. */
static size_t piece_bytes(uint32_t nbuckets)
{
    return (nbuckets <= PAGE || in_one_piece(nbuckets) ? nbuckets : PAGE) * (size_t)LINE;
}

static size_t pieces_of(uint32_t nbuckets)
{
    return nbuckets <= PAGE || in_one_piece(nbuckets) ? 1 : nbuckets / PAGE;
}

static void *memory_get(struct keyindex *x, size_t bytes)
{
    if (bytes == PAGE_BYTES && x->spare) {
        assert(x->spares > 0);
        assert(x->spares <= SPARES_MAX);
        void *page = x->spare;
        memcpy(&x->spare, page, sizeof x->spare);
        x->spares--;
        return page;
    }
    return tablemem_get(x->mem, LINE, bytes);
}

static void memory_put(struct keyindex *x, void *page, size_t bytes)
{
    assert(!x->spare == !x->spares);
    if (bytes == PAGE_BYTES && x->spares < SPARES_MAX) {
        memcpy(page, &x->spare, sizeof x->spare);
        x->spare = page;
        x->spares++;
    } else {
        tablemem_put(x->mem, page, bytes);
    }
}

/* Makes room in the page table for n new numbers. */
static paramo_err numbers_room(struct keyindex *x, size_t n)
{
    if (n >= KEYINDEX_PAGES_MAX - x->page_top)
        return err_set(PARAMO_E_TOO_LARGE,
                       "a shard holds at most about 2^31 rows of a table; use more servers");
    assert(x->page_top <= x->page_room);
    size_t room = x->page_room ? x->page_room : 8;
    while (room < x->page_top + n)
        room *= 2;
    if (room == x->page_room)
        return PARAMO_OK;
    struct keyindex_bucket **page = tablemem_get(x->mem, LINE, room * sizeof(struct keyindex_bucket *));
    if (!page)
        return err_memory(room * sizeof(struct keyindex_bucket *));
    if (x->page) {
        memcpy(page, x->page, x->page_top * sizeof(struct keyindex_bucket *));
        tablemem_put(x->mem, x->page, x->page_room * sizeof(struct keyindex_bucket *));
    }
    x->page = page;
    x->page_room = (uint32_t)room;
    assert(x->page_room >= x->page_top + n);
    return PARAMO_OK;
}

/* Takes a page number; numbers_room has made room for it. */
static uint32_t number_get(struct keyindex *x)
{
    uint32_t number = x->page_free;
    if (number == KEYINDEX_PAGES_MAX) {
        assert(x->page_top < x->page_room); /* numbers_room made it */
        return x->page_top++;
    }
    assert(number < x->page_top);
    x->page_free = (uint32_t)((uintptr_t)x->page[number] >> 1);
    return number;
}

static void number_put(struct keyindex *x, uint32_t number)
{
    assert(number < x->page_top);
    assert(x->page_free <= KEYINDEX_PAGES_MAX);
    x->page[number] = (struct keyindex_bucket *)((uintptr_t)x->page_free << 1 | 1);
    x->page_free = number;
}

/* Empties n contiguous buckets and enters them as the page of that number, and of the numbers after it.
 * It writes only their meta: the rest of an empty bucket is never read. */
static void number_page(struct keyindex *x, uint32_t number, struct keyindex_bucket *page, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (i % PAGE == 0)
            x->page[number + i / PAGE] = page + i;
        *bucket_meta(page + i) = 0;
    }
}

static void buckets_put(struct keyindex *x, const struct keyindex_segment *s)
{
    for (uint32_t b = 0; b < s->nbuckets; b += PAGE)
        number_put(x, page_number(s, b / PAGE));
    for (size_t i = 0; i < pieces_of(s->nbuckets); i++)
        memory_put(x, s->page[i], piece_bytes(s->nbuckets));
}

/* Makes *s an empty segment of that size and depth: room for page numbers, memory, then the numbers. */
static paramo_err buckets_get(struct keyindex *x, uint32_t nbuckets, unsigned depth,
                              struct keyindex_segment *s)
{
    if (nbuckets > UINT32_MAX / LINE)
        return err_set(PARAMO_E_TOO_LARGE, "too many keys of a table have the same hash");
    unsigned percent = LOAD_PERCENT - LOAD_SPREAD + x->turn;
    x->turn = (x->turn + 5) % (2 * LOAD_SPREAD + 1); /* a step of 5 reaches all values, far apart */
    *s = (struct keyindex_segment){
        .nbuckets = nbuckets, .limit = segment_keys(nbuckets, x->slots, percent), .depth = depth};
    assert(s->limit > 0 && s->limit <= (uint64_t)nbuckets * x->slots);
    paramo_err err = numbers_room(x, (nbuckets + PAGE - 1) / PAGE);
    if (err)
        return err;
    size_t bytes = piece_bytes(nbuckets);
    for (size_t i = 0; i < pieces_of(nbuckets); i++) {
        s->page[i] = memory_get(x, bytes);
        if (!s->page[i]) {
            while (i-- > 0)
                memory_put(x, s->page[i], bytes);
            return err_memory(bytes);
        }
    }
    if (in_one_piece(nbuckets)) {
        s->number[0] = x->page_top;
        assert(x->page_top + nbuckets / PAGE <= x->page_room);
        number_page(x, s->number[0], s->page[0], nbuckets);
        x->page_top += nbuckets / PAGE;
        return PARAMO_OK;
    }
    for (size_t i = 0; i < pieces_of(nbuckets); i++) {
        s->number[i] = number_get(x);
        number_page(x, s->number[i], s->page[i], (uint32_t)(bytes / LINE));
    }
    return PARAMO_OK;
}

/* ---- segments ---- */

static uint32_t next_size(uint32_t nbuckets)
{
    if (nbuckets < PAGE)
        return 2 * nbuckets;
    return nbuckets < SEGMENT_PAGES * PAGE ? nbuckets + PAGE
                                           : (nbuckets + nbuckets / 4 + PAGE - 1) / PAGE * PAGE;
}

/* The smallest size in whole pages for count keys and a sixteenth more: a half that only just fits would
 * grow at once, and move all its keys again. */
static uint32_t size_for(const struct keyindex *x, uint32_t count)
{
    uint32_t nbuckets = PAGE;
    while (segment_keys(nbuckets, x->slots, LOAD_PERCENT) <= count + count / 16)
        nbuckets = next_size(nbuckets);
    return nbuckets;
}

static struct keyindex_segment *segment_get(struct keyindex *x)
{
    if (x->block_left == 0) {
        struct keyindex_segment *block = tablemem_get(x->mem, LINE, BLOCK * sizeof *block);
        if (!block)
            return NULL;
        block[0].page[0] = (struct keyindex_bucket *)x->block;
        x->block = block;
        x->block_left = BLOCK - 1;
    }
    assert(x->block);
    assert(x->block_left < BLOCK);
    return &x->block[x->block_left--];
}

/* Gives back the segment that was taken last. */
static void segment_unget(struct keyindex *x)
{
    assert(x->block && x->block_left < BLOCK - 1);
    x->block_left++;
}

/* Moves the keys of `from` to to[0], and those with hash bit `bit` (of 64, from the top) to to[1]. Both
 * may be the same segment. */
ALWAYS_INLINE void move_keys(const struct keyindex_segment *from, struct keyindex_segment *const to[2],
                             unsigned bit, unsigned slots)
{
    assert(!to[0]->count && !to[1]->count);
    size_t pieces = pieces_of(from->nbuckets);
    size_t n = piece_bytes(from->nbuckets) / LINE;
    for (size_t i = 0; i < pieces; i++) {
        const struct keyindex_bucket *page = from->page[i];
        for (size_t at = 0; at < n; at++) {
            const struct keyindex_bucket *b = page + at;
            __builtin_prefetch(b + FETCH_AHEAD);
            uint32_t meta = *bucket_meta(b);
            for (unsigned used = meta & META_USED(slots); used; used &= used - 1) {
                unsigned slot = (unsigned)__builtin_ctz(used);
                uint64_t hash = b->word[slot];
                char *place =
                    segment_place(to[hash >> (63 - bit) & 1], hash, meta >> META_MARK(slot) & 3, slots);
                memcpy(place, bucket_payload(b, slot, slots), payload_bytes(slots));
            }
        }
    }
    assert(to[0]->count + (to[0] == to[1] ? 0 : to[1]->count) == from->count);
}

static paramo_err segment_grow(struct keyindex *x, struct keyindex_segment *s)
{
    struct keyindex_segment grown;
    paramo_err err = buckets_get(x, next_size(s->nbuckets), s->depth, &grown);
    if (err)
        return err;
    struct keyindex_segment *const to[2] = {&grown, &grown};
    SLOTS_CALL(x, move_keys, s, to, 0);
    assert(grown.count == s->count);
    buckets_put(x, s);
    *s = grown;
    return PARAMO_OK;
}

static paramo_err directory_double(struct keyindex *x)
{
    assert(x->depth < DEPTH_MAX);
    assert(x->directory && x->segments <= (size_t)1 << x->depth);
    size_t old = (size_t)1 << x->depth;
    struct keyindex_segment **directory =
        tablemem_get(x->mem, LINE, 2 * old * sizeof(struct keyindex_segment *));
    if (!directory)
        return err_memory(2 * old * sizeof(struct keyindex_segment *));
    for (size_t i = 0; i < old; i++)
        directory[2 * i] = directory[2 * i + 1] = x->directory[i];
    tablemem_put(x->mem, x->directory, old * sizeof(struct keyindex_segment *));
    x->directory = directory;
    x->depth++;
    return PARAMO_OK;
}

static bool may_split(const struct keyindex *x, const struct keyindex_segment *s)
{
    if (s->depth < x->depth)
        return true;
    return x->depth < DEPTH_MAX && (size_t)2 << x->depth <= DIRECTORY_SLACK * x->segments;
}

/* The number of keys with that hash bit set. */
static uint32_t count_bit(const struct keyindex *x, const struct keyindex_segment *s, unsigned bit)
{
    uint32_t n = 0;
    for (uint32_t at = 0; at < s->nbuckets; at++) {
        const struct keyindex_bucket *b = bucket_at(s, at);
        __builtin_prefetch(b + FETCH_AHEAD);
        unsigned used = *bucket_meta(b);
        for (unsigned slot = 0; slot < x->slots; slot++)
            n += (uint32_t)(b->word[slot] >> (63 - bit) & used >> slot & 1);
    }
    return n;
}

/* 1. takes all memory, 2. moves keys to the two halves, 3. gives half of s's directory entries to the new
 * segment. */
static paramo_err segment_split(struct keyindex *x, struct keyindex_segment *s, uint64_t hash)
{
    unsigned bit = s->depth;
    uint32_t ones = count_bit(x, s, bit);
    struct keyindex_segment low;
    struct keyindex_segment high;
    paramo_err err = buckets_get(x, size_for(x, s->count - ones), bit + 1, &low);
    if (err)
        return err;
    err = buckets_get(x, size_for(x, ones), bit + 1, &high);
    if (err)
        goto err_low;
    struct keyindex_segment *added = segment_get(x);
    if (!added) {
        err = err_memory(BLOCK * sizeof *added);
        goto err_high;
    }
    if (bit == x->depth && (err = directory_double(x)) != PARAMO_OK)
        goto err_added;
    struct keyindex_segment *const to[2] = {&low, &high};
    SLOTS_CALL(x, move_keys, s, to, bit);
    assert(high.count == ones && low.count + ones == s->count);
    buckets_put(x, s);
    *s = low;
    *added = high;
    x->segments++;
    size_t span = (size_t)1 << (x->depth - bit); /* entries of s; half of them now belong to added */
    size_t first = ((hash >> 1) >> (63 - x->depth)) & ~(span - 1);
    assert(x->directory[first] == s && x->directory[first + span - 1] == s);
    for (size_t i = first + span / 2; i < first + span; i++)
        x->directory[i] = added;
    return PARAMO_OK;

err_added:
    segment_unget(x);
err_high:
    buckets_put(x, &high);
err_low:
    buckets_put(x, &low);
    return err;
}

/* ---- the index ---- */

paramo_err keyindex_make_room(struct keyindex *x, uint64_t hash)
{
    struct keyindex_segment *s = segment_of(x, hash);
    assert(s->count >= s->limit);
    assert(x->count >= s->count);
    x->moves++;
    bool split = s->nbuckets >= SEGMENT_PAGES * PAGE && may_split(x, s);
    return split ? segment_split(x, s, hash) : segment_grow(x, s);
}

paramo_err keyindex_first_segment(struct keyindex *x)
{
    struct keyindex_segment first;
    assert(!x->directory && !x->segments && !x->count);
    assert(!x->depth); /* the directory has one entry */
    paramo_err err = buckets_get(x, BUCKETS_MIN, 0, &first);
    if (err)
        return err;
    struct keyindex_segment *s = segment_get(x);
    if (!s) {
        err = err_memory(BLOCK * sizeof *s);
        goto err_buckets;
    }
    x->directory = tablemem_get(x->mem, LINE, sizeof(struct keyindex_segment *));
    if (!x->directory) {
        err = err_memory(sizeof(struct keyindex_segment *));
        goto err_segment;
    }
    *s = first;
    x->directory[0] = s;
    x->segments = 1;
    x->moves++; /* a scan of the empty index has no segment */
    return PARAMO_OK;

err_segment:
    segment_unget(x);
err_buckets:
    buckets_put(x, &first);
    return err;
}

bool keyindex_free_step(struct keyindex *x, size_t *cursor, size_t segments)
{
    size_t entries = x->directory ? (size_t)1 << x->depth : 0;
    for (; segments && *cursor < entries; segments--) {
        size_t next = next_segment(x, *cursor);
        buckets_put(x, x->directory[*cursor]);
        *cursor = next;
    }
    if (*cursor < entries)
        return false;
    assert(*cursor == entries || !entries); /* a segment's entries are neighbours */
    if (x->directory)
        tablemem_put(x->mem, x->directory, entries * sizeof(struct keyindex_segment *));
    while (x->spare)
        tablemem_put(x->mem, memory_get(x, PAGE_BYTES), PAGE_BYTES);
    while (x->block) {
        struct keyindex_segment *block = x->block;
        x->block = (struct keyindex_segment *)block[0].page[0];
        tablemem_put(x->mem, block, BLOCK * sizeof *block);
    }
    tablemem_put(x->mem, x->page, x->page_room * sizeof(struct keyindex_bucket *));
    assert(!x->spares && !x->block);
    return true;
}
