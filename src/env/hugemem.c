#include "env/hugemem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

typedef unsigned __int128 units_set;
_Static_assert(HUGEMEM_CHUNK / HUGEMEM_UNIT == 128, "a chunk's units are the bits of a units_set");

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) & ~(to - 1);
}

/* A mapping that begins at a multiple of HUGEMEM_CHUNK. bytes is a multiple as well. */
static void *map_aligned(size_t bytes)
{
    if (bytes > SIZE_MAX - HUGEMEM_CHUNK)
        return NULL;
    char *raw = mmap(NULL, bytes + HUGEMEM_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (raw == MAP_FAILED)
        return NULL;
    size_t before = (size_t)(-(uintptr_t)raw & (HUGEMEM_CHUNK - 1));
    if (before)
        (void)munmap(raw, before);
    if (HUGEMEM_CHUNK - before)
        (void)munmap(raw + before + bytes, HUGEMEM_CHUNK - before);
    (void)madvise(raw + before, bytes, MADV_HUGEPAGE); /* an error only costs speed */
    return raw + before;
}

static uint64_t chunk_of(const void *memory)
{
    return (uintptr_t)memory / HUGEMEM_CHUNK;
}

struct hugemem_chunk {
    char *memory;
    units_set used; /* a bit for each unit */
    unsigned live;  /* bits set */
    unsigned run;   /* units of the longest free run, at most HUGEMEM_CLASSES: selects its list */
    uint8_t span[HUGEMEM_CHUNK / HUGEMEM_UNIT]; /* of each unit: the first one of its span */
    struct hugemem_chunk *prev, *next;
};

void hugemem_init(struct hugemem *m)
{
    *m = (struct hugemem){0};
    map_init(&m->chunks);
}

void hugemem_fini(struct hugemem *m)
{
    uint64_t key;
    void *chunk;
    for (size_t i = 0; map_next(&m->chunks, &i, &key, &chunk);) {
        (void)munmap(((struct hugemem_chunk *)chunk)->memory, HUGEMEM_CHUNK);
        free(chunk);
    }
    map_fini(&m->chunks);
}

size_t hugemem_idle(const struct hugemem *m)
{
    return m->chunks.count * HUGEMEM_CHUNK - m->live * HUGEMEM_UNIT + m->span_idle;
}

/* ---- chunks ---- */

/* Empty chunks have their own list, so that they stay empty while others have room. */
static struct hugemem_chunk **list_of(struct hugemem *m, const struct hugemem_chunk *c)
{
    return c->live ? &m->lists[c->run] : &m->empty;
}

static void list_add(struct hugemem *m, struct hugemem_chunk *c)
{
    struct hugemem_chunk **list = list_of(m, c);
    c->prev = NULL;
    c->next = *list;
    if (c->next)
        c->next->prev = c;
    *list = c;
    m->empty_count += c->live == 0;
}

static void list_remove(struct hugemem *m, struct hugemem_chunk *c)
{
    if (c->prev)
        c->prev->next = c->next;
    else
        *list_of(m, c) = c->next;
    if (c->next)
        c->next->prev = c->prev;
    m->empty_count -= c->live == 0;
}

/* The units where a run of this number of free units begins, as bits. Units after the last one count as used. */
static units_set runs_of(const struct hugemem_chunk *c, unsigned units)
{
    units_set runs = ~c->used;
    for (unsigned have = 1, more; have < units; have += more) {
        more = have < units - have ? have : units - have;
        runs &= runs >> more;
    }
    return runs;
}

static unsigned first_of(units_set set)
{
    uint64_t low = (uint64_t)set;
    return low ? (unsigned)__builtin_ctzll(low) : 64 + (unsigned)__builtin_ctzll((uint64_t)(set >> 64));
}

static unsigned longest_run(const struct hugemem_chunk *c)
{
    unsigned run = 0;
    for (units_set runs = ~c->used; runs && run < HUGEMEM_CLASSES; runs &= runs >> 1)
        run++;
    return run;
}

static void set_used(struct hugemem *m, struct hugemem_chunk *c, unsigned first, unsigned units, bool used)
{
    list_remove(m, c);
    units_set these = (((units_set)1 << units) - 1) << first;
    assert((c->used & these) == (used ? 0 : these));
    c->used ^= these;
    c->live = used ? c->live + units : c->live - units;
    m->live = used ? m->live + units : m->live - units;
    c->run = longest_run(c);
    list_add(m, c);
}

static struct hugemem_chunk *add_chunk(struct hugemem *m)
{
    struct hugemem_chunk *c = calloc(1, sizeof *c);
    char *memory = c ? map_aligned(HUGEMEM_CHUNK) : NULL;
    if (!memory || map_put(&m->chunks, chunk_of(memory), c)) {
        if (memory)
            (void)munmap(memory, HUGEMEM_CHUNK);
        free(c);
        return NULL;
    }
    c->memory = memory;
    c->run = HUGEMEM_CLASSES;
    list_add(m, c);
    return c;
}

/* Takes a block from the chunk that fits best, so that other chunks become empty. */
static void *from_chunk(struct hugemem *m, size_t size)
{
    unsigned units = (unsigned)((size + HUGEMEM_UNIT - 1) / HUGEMEM_UNIT);
    struct hugemem_chunk *c = NULL;
    for (unsigned run = units; run <= HUGEMEM_CLASSES && !c; run++)
        c = m->lists[run];
    if (!c)
        c = m->empty ? m->empty : add_chunk(m);
    if (!c)
        return NULL;
    unsigned first = first_of(runs_of(c, units));
    set_used(m, c, first, units, true);
    return c->memory + (size_t)first * HUGEMEM_UNIT;
}

static void to_chunk(struct hugemem *m, struct hugemem_chunk *c, const char *memory, size_t size)
{
    size_t at = (size_t)(memory - c->memory);
    assert(at % HUGEMEM_UNIT == 0 && at + size <= HUGEMEM_CHUNK);
    set_used(m, c, (unsigned)(at / HUGEMEM_UNIT), (unsigned)((size + HUGEMEM_UNIT - 1) / HUGEMEM_UNIT),
             false);
    if (m->empty_count > HUGEMEM_KEPT && m->emptied)
        m->emptied(m->ctx);
}

bool hugemem_trim(struct hugemem *m, unsigned chunks)
{
    for (; chunks && m->empty_count > HUGEMEM_KEPT; chunks--) {
        struct hugemem_chunk *c = m->empty;
        list_remove(m, c);
        map_remove(&m->chunks, chunk_of(c->memory));
        (void)munmap(c->memory, HUGEMEM_CHUNK);
        free(c);
    }
    return m->empty_count > HUGEMEM_KEPT;
}

/* ---- spans ---- */

static void spans_add(struct hugemem *m, struct hugemem_span *span)
{
    struct hugemem_span **list = &m->spans[span->class];
    span->prev = NULL;
    span->next = *list;
    if (span->next)
        span->next->prev = span;
    *list = span;
}

static void spans_remove(struct hugemem *m, struct hugemem_span *span)
{
    if (span->prev)
        span->prev->next = span->next;
    else
        m->spans[span->class] = span->next;
    if (span->next)
        span->next->prev = span->prev;
}

static struct hugemem_span *add_span(struct hugemem *m, unsigned class)
{
    size_t bytes = hugemem_span_bytes(class);
    char *memory = from_chunk(m, bytes);
    if (!memory)
        return NULL;
    struct hugemem_chunk *c = map_get(&m->chunks, chunk_of(memory));
    size_t first = (size_t)(memory - c->memory) / HUGEMEM_UNIT;
    for (size_t i = 0; i < bytes / HUGEMEM_UNIT; i++)
        c->span[first + i] = (uint8_t)first;
    struct hugemem_span *span = hugemem_span_make(memory, class);
    m->span_idle += bytes;
    spans_add(m, span);
    return span;
}

static void *from_span(struct hugemem *m, size_t size)
{
    unsigned class = hugemem_class(size);
    struct hugemem_span *span = m->spans[class] ? m->spans[class] : add_span(m, class);
    if (!span)
        return NULL;
    void *block = hugemem_span_take(span);
    m->span_idle -= hugemem_class_bytes(class);
    if (!hugemem_span_has_room(span))
        spans_remove(m, span);
    return block;
}

static void to_span(struct hugemem *m, struct hugemem_chunk *c, char *memory)
{
    size_t unit = c->span[(size_t)(memory - c->memory) / HUGEMEM_UNIT];
    struct hugemem_span *span = (struct hugemem_span *)(c->memory + unit * HUGEMEM_UNIT);
    if (!hugemem_span_has_room(span))
        spans_add(m, span);
    hugemem_span_put(span, memory);
    m->span_idle += hugemem_class_bytes(span->class);
    if (span->used)
        return;
    spans_remove(m, span);
    size_t bytes = hugemem_span_bytes(span->class);
    m->span_idle -= bytes;
    to_chunk(m, c, (const char *)span, bytes);
}

/* ---- blocks ---- */

static bool is_small(size_t size)
{
    return size > 0 && size < HUGEMEM_UNIT;
}

static bool is_block(size_t size)
{
    return size >= HUGEMEM_UNIT && size <= HUGEMEM_BLOCK_MAX;
}

void *hugemem_alloc(void *ctx, size_t align, size_t size)
{
    struct hugemem *m = ctx;
    if (size >= HUGEMEM_MAPPED_MIN)
        return size > SIZE_MAX - HUGEMEM_CHUNK ? NULL : map_aligned(round_up(size, HUGEMEM_CHUNK));
    bool is_large = m->small + size > HUGEMEM_SMALL;
    if (is_large && is_block(size) && align <= HUGEMEM_UNIT)
        return from_chunk(m, size);
    if (is_large && is_small(size) && align <= HUGEMEM_SPAN_ALIGN)
        return from_span(m, size);
    void *memory =
        align <= _Alignof(max_align_t) ? malloc(size) : aligned_alloc(align, round_up(size, align));
    if (memory && (is_block(size) || is_small(size)))
        m->small += size;
    return memory;
}

void hugemem_release(void *ctx, void *memory, size_t size)
{
    struct hugemem *m = ctx;
    bool counted = is_block(size) || is_small(size);
    struct hugemem_chunk *c = counted ? map_get(&m->chunks, chunk_of(memory)) : NULL;
    if (size >= HUGEMEM_MAPPED_MIN) {
        (void)munmap(memory, round_up(size, HUGEMEM_CHUNK));
    } else if (c && is_small(size)) {
        to_span(m, c, memory);
    } else if (c) {
        to_chunk(m, c, memory, size);
    } else {
        if (counted)
            m->small -= size;
        free(memory);
    }
}
