#include "env/hugemem_span.h"

#include <assert.h>
#include <string.h>

enum { STEP = 16, STEPS = 16, EIGHTHS = 8, HEAD = 64 };

_Static_assert(sizeof(struct hugemem_span) <= HEAD && HEAD % HUGEMEM_SPAN_ALIGN == 0,
               "the first block is behind it");
_Static_assert(STEP *STEPS << (HUGEMEM_SPAN_CLASSES - STEPS) / EIGHTHS == HUGEMEM_SMALL_MAX,
               "the last class");

unsigned hugemem_class(size_t size)
{
    assert(size > 0 && size <= HUGEMEM_SMALL_MAX);
    size_t steps = (size + STEP - 1) / STEP;
    unsigned before = 0; /* classes below the doubling that the size is in */
    for (; steps > STEPS; steps = (steps + 1) / 2)
        before += EIGHTHS;
    return before + (unsigned)steps - 1;
}

size_t hugemem_class_bytes(unsigned class)
{
    assert(class < HUGEMEM_SPAN_CLASSES);
    unsigned doublings = class < STEPS ? 0 : (class - STEPS) / EIGHTHS + 1;
    return (size_t)(class + 1 - doublings * EIGHTHS) * STEP << doublings;
}

size_t hugemem_span_bytes(unsigned class)
{
    return hugemem_class_bytes(class) <= HUGEMEM_SPAN_SHORT_MAX ? HUGEMEM_SPAN_SHORT : HUGEMEM_SPAN_LONG;
}

static uint32_t blocks_of(const struct hugemem_span *span)
{
    return (uint32_t)((hugemem_span_bytes(span->class) - HEAD) / hugemem_class_bytes(span->class));
}

struct hugemem_span *hugemem_span_make(void *memory, unsigned class)
{
    struct hugemem_span *span = memory;
    assert((uintptr_t)memory % HUGEMEM_SPAN_ALIGN == 0);
    *span = (struct hugemem_span){.class = class};
    return span;
}

bool hugemem_span_has_room(const struct hugemem_span *span)
{
    return span->free_head || span->fresh < blocks_of(span);
}

void *hugemem_span_take(struct hugemem_span *span)
{
    assert(hugemem_span_has_room(span));
    uint32_t block = span->free_head ? span->free_head - 1 : span->fresh++;
    char *at = (char *)span + HEAD + block * hugemem_class_bytes(span->class);
    if (span->free_head)
        memcpy(&span->free_head, at, sizeof span->free_head);
    span->used++;
    return at;
}

void hugemem_span_put(struct hugemem_span *span, void *block)
{
    size_t at = (size_t)((char *)block - (char *)span) - HEAD, bytes = hugemem_class_bytes(span->class);
    assert(span->used > 0 && at % bytes == 0 && at / bytes < span->fresh);
    memcpy(block, &span->free_head, sizeof span->free_head);
    span->free_head = (uint32_t)(at / bytes) + 1;
    span->used--;
}
