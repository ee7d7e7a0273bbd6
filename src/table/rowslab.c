#include "table/rowslab.h"

#include <assert.h>
#include <string.h>

/* Large enough that the pointers to slabs stay in cache at tens of millions of rows, small enough that a new
 * one is no pause. */
#define SLAB_BYTES ((size_t)256 << 10)
#define SLAB_ALIGN 64

void rowslab_init(struct rowslab *s, struct tablemem *mem, size_t row_bytes, size_t align)
{
    assert(row_bytes > 0 && (align == 4 || align == 8));
    *s = (struct rowslab){.mem = mem, .free_head = ROWSLAB_NONE};
    s->row_bytes = (row_bytes + align - 1) & ~(align - 1);
    while (s->row_bytes << (s->shift + 1) <= SLAB_BYTES) {
        s->shift++;
    }
}

static size_t slab_bytes(const struct rowslab *s)
{
    return s->row_bytes << s->shift;
}

bool rowslab_clear_step(struct rowslab *s, size_t slabs)
{
    for (; slabs && s->count; slabs--) {
        tablemem_put(s->mem, s->slabs[--s->count], slab_bytes(s));
    }
    if (s->count) {
        return false;
    }
    tablemem_put(s->mem, s->slabs, s->room * sizeof *s->slabs);
    s->slabs = NULL;
    s->count = s->room = 0;
    s->top = s->free_count = 0;
    s->free_head = ROWSLAB_NONE;
    return true;
}

void rowslab_clear(struct rowslab *s)
{
    (void)rowslab_clear_step(s, SIZE_MAX);
}

static paramo_err add_slab(struct rowslab *s)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 8;
        char **slabs = tablemem_get(s->mem, sizeof *slabs, room * sizeof *slabs);
        if (!slabs) {
            return err_memory(room * sizeof *slabs);
        }
        if (s->count) {
            memcpy(slabs, s->slabs, s->count * sizeof *slabs);
        }
        tablemem_put(s->mem, s->slabs, s->room * sizeof *slabs);
        s->slabs = slabs;
        s->room = room;
    }
    char *slab = tablemem_get(s->mem, SLAB_ALIGN, slab_bytes(s));
    if (!slab) {
        return err_memory(slab_bytes(s));
    }
    s->slabs[s->count++] = slab;
    return PARAMO_OK;
}

uint32_t rowslab_free_next(const struct rowslab *s, uint32_t row)
{
    uint32_t next;
    memcpy(&next, rowslab_row(s, row), sizeof next);
    return next;
}

static void mark_new(const struct rowslab *s, uint32_t row)
{
    if (s->marks) {
        rowmarks_set(s->marks, row, s->marks->now);
    }
}

paramo_err rowslab_take(struct rowslab *s, uint32_t *row)
{
    if (s->free_head != ROWSLAB_NONE) {
        *row = s->free_head;
        s->free_head = rowslab_free_next(s, *row);
        s->free_count--;
        mark_new(s, *row);
        return PARAMO_OK;
    }
    if (s->top == ROWSLAB_NONE) {
        return err_set(PARAMO_E_TOO_LARGE, "a shard holds at most 2^32 - 1 rows of a table");
    }
    if (s->top >> s->shift == s->count) {
        paramo_err err = add_slab(s);
        if (err) {
            return err;
        }
    }
    *row = s->top++;
    mark_new(s, *row);
    return PARAMO_OK;
}

void rowslab_give(struct rowslab *s, uint32_t row)
{
    assert(row < s->top);
    memcpy(rowslab_row(s, row), &s->free_head, sizeof s->free_head);
    s->free_head = row;
    s->free_count++;
}
