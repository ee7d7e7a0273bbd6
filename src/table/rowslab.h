/*
 * Rows of one size, by number. They are in slabs that never move, so that a row number and a pointer to a
 * row stay valid until the row is freed. The freed rows of a slab are linked through their own first bytes
 * and are used again first. Of the slabs without rows all but one free their memory; their numbers are used
 * again. This module never knows keys or the contents of a row. Tests: test/table/test_rowslab.c.
 *
 *     slab[0] -> | row 0 | row 1 | ... | row 2^shift - 1 |      open: slabs with room, a list
 *     slab[1] -> | row 2^shift | ...                            gone: without memory, a list
 */
#ifndef TABLE_ROWSLAB_H
#define TABLE_ROWSLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/rowmarks.h"
#include "table/tablemem.h"

#define ROWSLAB_NONE UINT32_MAX

struct slab_state {
    uint32_t used, fresh; /* rows in use; rows used since it has this memory */
    uint32_t free_head;   /* ROWSLAB_NONE: none */
    uint32_t prev, next;  /* links of its list */
};

struct rowslab {
    struct tablemem *mem;
    size_t row_bytes; /* a multiple of 8, or of 4 for rows of 32-bit values */
    unsigned shift;   /* rows per slab, as a power of two */
    char **slabs;     /* NULL: the slab's memory has been freed */
    struct slab_state *states;
    uint32_t count, room;   /* of both arrays */
    uint32_t open, gone;    /* lists of slabs; ROWSLAB_NONE: empty */
    uint32_t empty;         /* slabs that have memory and no rows */
    uint32_t used;          /* rows */
    struct rowmarks *marks; /* NULL: no marks */
};

/* Takes no memory yet. row_bytes > 0 is rounded up to a multiple of align, 4 or 8. */
void rowslab_init(struct rowslab *s, struct tablemem *mem, size_t row_bytes, size_t align);
/* Frees everything. Then s is as after rowslab_init. */
void rowslab_clear(struct rowslab *s);
/* rowslab_clear in steps of that many slabs. True: done. s must not be used otherwise until then. */
bool rowslab_clear_step(struct rowslab *s, size_t slabs);

/* A row whose bytes are not initialised. MEMORY, or TOO_LARGE at 2^32 - 1 rows. */
MUST_USE paramo_err rowslab_alloc(struct rowslab *s, uint32_t *row);
/* May free a slab. */
void rowslab_free(struct rowslab *s, uint32_t row);

static inline void *rowslab_row(const struct rowslab *s, uint32_t row)
{
    return s->slabs[row >> s->shift] + (row & ((UINT32_C(1) << s->shift) - 1)) * s->row_bytes;
}

#endif
