#include "env/hugemem.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static size_t round_up(size_t size, size_t to)
{
    return (size + to - 1) & ~(to - 1);
}

/* A mapping that begins at a multiple of HUGEMEM_CHUNK; bytes is one. */
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
    (void)madvise(raw + before, bytes, MADV_HUGEPAGE); /* without it all is slower, but works */
    return raw + before;
}

static uint64_t chunk_of(const void *memory)
{
    return (uintptr_t)memory / HUGEMEM_CHUNK;
}

void hugemem_init(struct hugemem *m)
{
    *m = (struct hugemem){0};
    map_init(&m->chunks);
}

void hugemem_fini(struct hugemem *m)
{
    uint64_t key;
    void *chunk;
    for (size_t i = 0; map_next(&m->chunks, &i, &key, &chunk);)
        (void)munmap(chunk, HUGEMEM_CHUNK);
    map_fini(&m->chunks);
}

static unsigned class_of(size_t size)
{
    return (unsigned)((size - 1) / HUGEMEM_UNIT);
}

static void put_free(struct hugemem *m, unsigned class, void *block)
{
    memcpy(block, &m->free[class], sizeof m->free[class]);
    m->free[class] = block;
}

static bool add_chunk(struct hugemem *m)
{
    char *chunk = map_aligned(HUGEMEM_CHUNK);
    if (!chunk)
        return false;
    if (map_put(&m->chunks, chunk_of(chunk), chunk)) {
        (void)munmap(chunk, HUGEMEM_CHUNK);
        return false;
    }
    for (; m->at < m->end; m->at += HUGEMEM_UNIT)
        put_free(m, 0, m->at);
    m->at = chunk;
    m->end = chunk + HUGEMEM_CHUNK;
    return true;
}

static void *from_chunk(struct hugemem *m, size_t size)
{
    unsigned class = class_of(size);
    void *block = m->free[class];
    if (block) {
        memcpy(&m->free[class], block, sizeof m->free[class]);
        return block;
    }
    size_t bytes = (class + 1) * (size_t)HUGEMEM_UNIT;
    if ((size_t)(m->end - m->at) < bytes && !add_chunk(m))
        return NULL;
    block = m->at;
    m->at += bytes;
    return block;
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
    if (is_block(size) && align <= HUGEMEM_UNIT && m->small + size > HUGEMEM_SMALL)
        return from_chunk(m, size);
    void *memory =
        align <= _Alignof(max_align_t) ? malloc(size) : aligned_alloc(align, round_up(size, align));
    if (memory && is_block(size))
        m->small += size;
    return memory;
}

void hugemem_release(void *ctx, void *memory, size_t size)
{
    struct hugemem *m = ctx;
    if (size >= HUGEMEM_MAPPED_MIN) {
        (void)munmap(memory, round_up(size, HUGEMEM_CHUNK));
    } else if (is_block(size) && map_get(&m->chunks, chunk_of(memory))) {
        put_free(m, class_of(size), memory);
    } else {
        if (is_block(size))
            m->small -= size;
        free(memory);
    }
}
