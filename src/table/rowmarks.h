/*
 * A mark of two bits for each row of a table: 0, or the epoch in which the row changed last (1 to 3; a new
 * row counts as changed). The owner, table_snapshot.c, sets the epoch, and is called (`first`) before a row changes
 * for the first time in an epoch.
 *
 *     number -> chunk[number >> 12] -> 1 KB: marks of 4096 numbers; no chunk where all are 0
 *
 * A number names a row: its number in the slab (table_sparse, table_var), or a block of rows (table_dense).
 * The marks of small rows are beside them, in keyindex. rowslab marks new rows. The mark of an unused number
 * has no meaning. This module never knows rows. Tests: test/table/test_rowmarks.c, test_table_snapshot.c.
 */
#ifndef TABLE_ROWMARKS_H
#define TABLE_ROWMARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/tablemem.h"

enum {
    ROWMARKS_SHIFT = 12,                       /* arbitrary */
    ROWMARKS_CHUNK = 1 << (ROWMARKS_SHIFT - 2) /* bytes */
};
#define ROWMARKS_NONE UINT32_MAX /* no row */

/* was: the row's mark, which is not this epoch's yet. */
typedef void (*rowmarks_first)(void *arg, uint64_t key, uint64_t number, unsigned was);

struct rowmarks {
    struct tablemem *mem;
    uint8_t **chunk;
    size_t room; /* pointers */
    unsigned now;
    bool failed;          /* there was no memory for a mark: all marks are invalid */
    rowmarks_first first; /* may be NULL */
    void *arg;
};

/* Takes no memory yet. */
void rowmarks_init(struct rowmarks *m, struct tablemem *mem);
/* Sets all marks to 0, and failed to false. */
void rowmarks_clear(struct rowmarks *m);

static inline unsigned rowmarks_get(const struct rowmarks *m, uint64_t number)
{
    uint64_t at = number >> ROWMARKS_SHIFT;
    const uint8_t *chunk = at < m->room ? m->chunk[at] : NULL;
    return chunk ? (unsigned)chunk[number >> 2 & (ROWMARKS_CHUNK - 1)] >> 2 * (number & 3) & 3 : 0;
}

void rowmarks_set(struct rowmarks *m, uint64_t number, unsigned mark);
/* Call it before a row changes. Unless the row has this epoch's mark, it calls `first` and marks the row. */
void rowmarks_change(struct rowmarks *m, uint64_t key, uint64_t number);
/* rowmarks_change for n rows (ROWMARKS_NONE: no row). Memory that `first` reads should be prefetched. */
void rowmarks_change_all(struct rowmarks *m, const uint64_t *keys, const uint32_t *numbers, size_t n);

#endif
