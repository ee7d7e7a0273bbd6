/*
 * Small blocks of hugemem, cut from spans of units. A span has blocks of one class of sizes. Its first bytes hold
 * this struct; freed blocks are linked through their own first bytes and are used again first. A span without
 * blocks is freed at once. Classes are 16 bytes apart up to 256 bytes, then eight to a doubling, so that a block has
 * at most 15 bytes or an eighth more than was asked for. One owner, no locks. This module never knows chunks. Tests:
 * test/env/test_hugemem.c.
 *
 *     | struct | block | block | block ...          | rest |
 */
#ifndef ENV_HUGEMEM_SPAN_H
#define ENV_HUGEMEM_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HUGEMEM_SMALL_MAX = 16 << 10, /* a span's blocks have at most this size */
    HUGEMEM_SPAN_ALIGN = 16,
    HUGEMEM_SPAN_CLASSES = 16 + 6 * 8, /* up to 256 bytes, and six doublings */
    HUGEMEM_SPAN_SHORT = 16 << 10,     /* bytes of a span whose blocks have at most SHORT_MAX */
    HUGEMEM_SPAN_SHORT_MAX = 2 << 10,
    HUGEMEM_SPAN_LONG = 128 << 10
};

struct hugemem_span {
    struct hugemem_span *prev, *next; /* of its class, with room */
    uint32_t class, used, fresh;      /* blocks in use; blocks used since it was made */
    uint32_t free_head;               /* 1 + the number of a freed block; 0: none */
};

/* size > 0, at most HUGEMEM_SMALL_MAX. */
unsigned hugemem_class(size_t size);
/* Bytes of a span with blocks of this class. */
size_t hugemem_span_bytes(unsigned class);
/* Bytes of a block of this class. */
size_t hugemem_class_bytes(unsigned class);

/* In memory of hugemem_span_bytes(class), aligned to HUGEMEM_SPAN_ALIGN. */
struct hugemem_span *hugemem_span_make(void *memory, unsigned class);
bool hugemem_span_has_room(const struct hugemem_span *span);
/* A block; the span has room. */
void *hugemem_span_take(struct hugemem_span *span);
void hugemem_span_put(struct hugemem_span *span, void *block);

#endif
