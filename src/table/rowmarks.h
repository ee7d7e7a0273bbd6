/*
 * Two bits for each row of a table, its mark: 0, or in which epoch it changed last (1 to 3; a new row has
 * changed, too). The owner, table_snapshot.c, says which epoch it is, and is told before a row changes for
 * the first time in one.
 *
 *     number -> chunk[number >> 12] -> 1 KB: marks of 4096 numbers; there is none where all are 0
 *
 * A number is whatever names a row: its number in the slab (table_sparse, table_var), a block of rows
 * (table_dense); the marks of small rows are with them, in keyindex. rowslab marks what is new; the mark of
 * what names no row says nothing. Knows nothing of rows. Tests: test/table/test_rowmarks.c,
 * test_table_snapshot.c.
 */
#ifndef TABLE_ROWMARKS_H
#define TABLE_ROWMARKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "table/tablemem.h"

enum {
    ROWMARKS_SHIFT = 12,                       /* Arbitrary */
    ROWMARKS_CHUNK = 1 << (ROWMARKS_SHIFT - 2) /* bytes */
};
#define ROWMARKS_NONE UINT32_MAX /* no row */

/* was: its mark, which is not that of this epoch yet. */
typedef void (*rowmarks_first)(void *arg, uint64_t key, uint64_t number, unsigned was);

struct rowmarks {
    struct tablemem *mem;
    uint8_t **chunk;
    size_t room; /* pointers */
    unsigned now;
    bool failed;          /* there was no memory for a mark: they say nothing any more */
    rowmarks_first first; /* NULL: nobody wants to know */
    void *arg;
};

/* Takes no memory yet. */
void rowmarks_init(struct rowmarks *m, struct tablemem *mem);
/* All are 0, nothing has failed. */
void rowmarks_clear(struct rowmarks *m);

static inline unsigned rowmarks_get(const struct rowmarks *m, uint64_t number)
{
    uint64_t at = number >> ROWMARKS_SHIFT;
    const uint8_t *chunk = at < m->room ? m->chunk[at] : NULL;
    return chunk ? (unsigned)chunk[number >> 2 & (ROWMARKS_CHUNK - 1)] >> 2 * (number & 3) & 3 : 0;
}

void rowmarks_set(struct rowmarks *m, uint64_t number, unsigned mark);
/* Before a row changes: tells `first`, and marks it, unless it has this epoch's mark. */
void rowmarks_change(struct rowmarks *m, uint64_t key, uint64_t number);
/* The same of n rows (ROWMARKS_NONE: of none); what `first` reads of a row should be on its way already. */
void rowmarks_change_all(struct rowmarks *m, const uint64_t *keys, const uint32_t *numbers, size_t n);

#endif
