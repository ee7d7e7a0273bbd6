#include "table/tablemem.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

static void *libc_alloc(void *ctx, size_t align, size_t size)
{
    (void)ctx;
    if (align <= _Alignof(max_align_t))
        return malloc(size);
    if (size > SIZE_MAX - align)
        return NULL;
    return aligned_alloc(align, (size + align - 1) & ~(align - 1));
}

static void libc_release(void *ctx, void *memory, size_t size)
{
    (void)ctx;
    (void)size;
    free(memory);
}

void tablemem_init(struct tablemem *m, const struct table_alloc *alloc)
{
    static const struct table_alloc libc = {.alloc = libc_alloc, .release = libc_release, .ctx = NULL};
    m->alloc = alloc ? *alloc : libc;
    m->bytes = 0;
}

void *tablemem_get(struct tablemem *m, size_t align, size_t size)
{
    assert(size > 0);
    void *memory = m->alloc.alloc(m->alloc.ctx, align, size);
    if (memory)
        m->bytes += size;
    return memory;
}

void tablemem_put(struct tablemem *m, void *memory, size_t size)
{
    if (memory) {
        assert(m->bytes >= size);
        m->bytes -= size;
        m->alloc.release(m->alloc.ctx, memory, size);
    }
}
