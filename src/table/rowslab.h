/*
 * Rows of one size, by number. They lie in slabs that never move, so a row number, and a pointer to a row,
 * stay good until the row is freed. Freed rows are chained through their own first bytes and used again
 * first. Knows nothing of keys or of what a row holds. Tests: test/table/test_rowslab.c.
 *
 *     slab[0] -> | row 0 | row 1 | ... | row 2^shift - 1 |
 *     slab[1] -> | row 2^shift | ...
 */
#ifndef TABLE_ROWSLAB_H
#define TABLE_ROWSLAB_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/rowmarks.h"
#include "table/tablemem.h"

#define ROWSLAB_NONE UINT32_MAX

struct rowslab {
    struct tablemem *mem;
    size_t row_bytes; /* as laid out: a multiple of 8, or of 4 for rows of 32-bit values */
    unsigned shift;   /* rows per slab, as a power of two */
    char **slabs;
    size_t count, room; /* slabs there, and room for their pointers */
    uint32_t top;       /* rows ever used: those below it are in use or chained */
    uint32_t free_head; /* ROWSLAB_NONE: none */
    uint32_t free_count;
    struct rowmarks *marks; /* of the rows; NULL: there are none */
};

/* Takes no memory yet. row_bytes > 0 is rounded up to a multiple of align, 4 or 8. */
void rowslab_init(struct rowslab *s, struct tablemem *mem, size_t row_bytes, size_t align);
/* Frees everything; s is as after rowslab_init. */
void rowslab_clear(struct rowslab *s);
/* The same in steps of so many slabs; true: it is done. Nothing else may be done with s until then. */
bool rowslab_clear_step(struct rowslab *s, size_t slabs);

/* A row whose bytes are whatever they were. MEMORY, or TOO_LARGE at 2^32 - 1 rows. */
MUST_USE paramo_err rowslab_take(struct rowslab *s, uint32_t *row);
void rowslab_give(struct rowslab *s, uint32_t row);

static inline void *rowslab_row(const struct rowslab *s, uint32_t row)
{
    return s->slabs[row >> s->shift] + (row & ((UINT32_C(1) << s->shift) - 1)) * s->row_bytes;
}

/* The chain of free rows: rowslab_free_next(s, s->free_head) and on, to ROWSLAB_NONE. */
uint32_t rowslab_free_next(const struct rowslab *s, uint32_t row);

#endif
