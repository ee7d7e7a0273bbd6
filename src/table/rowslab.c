#include "table/rowslab.h"

#include <assert.h>
#include <string.h>

/* Large enough that the pointers to slabs stay in the cache at tens of millions of rows, and small enough
 * that a new slab causes no pause. */
#define SLAB_BYTES ((size_t)256 << 10)
#define SLAB_ALIGN 64
/* A row that is added and removed repeatedly must not allocate and free a slab each time. */
#define EMPTY_KEPT 1

void rowslab_init(struct rowslab *s, struct tablemem *mem, size_t row_bytes, size_t align)
{
    assert(row_bytes > 0 && (align == 4 || align == 8));
    *s = (struct rowslab){.mem = mem, .open = ROWSLAB_NONE, .gone = ROWSLAB_NONE};
    s->row_bytes = (row_bytes + align - 1) & ~(align - 1);
    while (s->row_bytes << (s->shift + 1) <= SLAB_BYTES)
        s->shift++;
    assert(s->row_bytes >= row_bytes && (!s->shift || s->row_bytes << s->shift <= SLAB_BYTES));
}

static size_t slab_bytes(const struct rowslab *s)
{
    return s->row_bytes << s->shift;
}

static void arrays_put(struct rowslab *s)
{
    tablemem_put(s->mem, s->slabs, s->room * sizeof *s->slabs);
    tablemem_put(s->mem, s->states, s->room * sizeof *s->states);
}

bool rowslab_clear_step(struct rowslab *s, size_t slabs)
{
    assert(s->count <= s->room);
    assert(s->empty <= s->count);
    for (; slabs && s->count; slabs--)
        tablemem_put(s->mem, s->slabs[--s->count], slab_bytes(s));
    if (s->count)
        return false;
    arrays_put(s);
    s->slabs = NULL;
    s->states = NULL;
    s->room = s->empty = s->used = 0;
    s->open = s->gone = ROWSLAB_NONE;
    return true;
}

void rowslab_clear(struct rowslab *s)
{
    (void)rowslab_clear_step(s, SIZE_MAX);
}

/* ---- lists of slabs ---- */

static void list_add(struct rowslab *s, uint32_t *list, uint32_t slab)
{
    assert(slab < s->count);
    assert(*list == ROWSLAB_NONE || s->states[*list].prev == ROWSLAB_NONE);
    s->states[slab].prev = ROWSLAB_NONE;
    s->states[slab].next = *list;
    if (*list != ROWSLAB_NONE)
        s->states[*list].prev = slab;
    *list = slab;
}

static void list_remove(struct rowslab *s, uint32_t *list, uint32_t slab)
{
    const struct slab_state *state = &s->states[slab];
    assert(state->prev == ROWSLAB_NONE ? *list == slab : s->states[state->prev].next == slab);
    assert(state->next == ROWSLAB_NONE || s->states[state->next].prev == slab);
    if (state->prev == ROWSLAB_NONE)
        *list = state->next;
    else
        s->states[state->prev].next = state->next;
    if (state->next != ROWSLAB_NONE)
        s->states[state->next].prev = state->prev;
}

static bool has_room(const struct rowslab *s, const struct slab_state *state)
{
    return state->free_head != ROWSLAB_NONE || state->fresh >> s->shift == 0;
}

/* ---- slabs ---- */

static paramo_err arrays_grow(struct rowslab *s)
{
    assert(s->count == s->room);
    uint32_t room = s->room ? 2 * s->room : 8;
    char **slabs = tablemem_get(s->mem, sizeof *slabs, room * sizeof *slabs);
    struct slab_state *states = tablemem_get(s->mem, sizeof(void *), room * sizeof *states);
    if (!slabs || !states) {
        tablemem_put(s->mem, slabs, room * sizeof *slabs);
        tablemem_put(s->mem, states, room * sizeof *states);
        return err_memory(room * (sizeof *slabs + sizeof *states));
    }
    if (s->count) {
        memcpy(slabs, s->slabs, s->count * sizeof *slabs);
        memcpy(states, s->states, s->count * sizeof *states);
    }
    arrays_put(s);
    s->slabs = slabs;
    s->states = states;
    s->room = room;
    assert(s->count < s->room);
    return PARAMO_OK;
}

/* Opens a slab: one whose memory was freed, or a new one. */
static paramo_err add_slab(struct rowslab *s)
{
    assert(s->open == ROWSLAB_NONE);
    uint32_t slab = s->gone == ROWSLAB_NONE ? s->count : s->gone;
    if (((uint64_t)slab + 1) << s->shift > ROWSLAB_NONE)
        return err_set(PARAMO_E_TOO_LARGE,
                       "a shard holds at most 2^32 - 1 rows of a table; use more servers");
    paramo_err err = slab == s->room ? arrays_grow(s) : PARAMO_OK;
    char *memory = err ? NULL : tablemem_get(s->mem, SLAB_ALIGN, slab_bytes(s));
    if (err || !memory)
        return err ? err : err_memory(slab_bytes(s));
    if (slab == s->gone) {
        assert(!s->slabs[slab] && !s->states[slab].used);
        list_remove(s, &s->gone, slab);
    } else {
        s->count++;
    }
    assert(slab < s->count && s->count <= s->room);
    s->slabs[slab] = memory;
    s->states[slab] = (struct slab_state){.free_head = ROWSLAB_NONE};
    s->empty++;
    list_add(s, &s->open, slab);
    return PARAMO_OK;
}

/* ---- rows ---- */

paramo_err rowslab_alloc(struct rowslab *s, uint32_t *row)
{
    paramo_err err = s->open == ROWSLAB_NONE ? add_slab(s) : PARAMO_OK;
    if (err)
        return err;
    uint32_t slab = s->open;
    struct slab_state *state = &s->states[slab];
    assert(s->slabs[slab] && has_room(s, state)); /* like all slabs of the list */
    if (state->free_head != ROWSLAB_NONE) {
        *row = state->free_head;
        memcpy(&state->free_head, rowslab_row(s, *row), sizeof state->free_head);
    } else {
        *row = (slab << s->shift) + state->fresh++;
    }
    s->empty -= state->used++ == 0;
    s->used++;
    if (!has_room(s, state))
        list_remove(s, &s->open, slab);
    if (s->marks)
        rowmarks_set(s->marks, *row, s->marks->now);
    return PARAMO_OK;
}

void rowslab_free(struct rowslab *s, uint32_t row)
{
    uint32_t slab = row >> s->shift;
    assert(slab < s->count && s->states[slab].used > 0);
    assert(s->used > 0);
    struct slab_state *state = &s->states[slab];
    if (!has_room(s, state))
        list_add(s, &s->open, slab);
    memcpy(rowslab_row(s, row), &state->free_head, sizeof state->free_head);
    state->free_head = row;
    s->used--;
    if (--state->used > 0)
        return;
    if (++s->empty > EMPTY_KEPT) {
        list_remove(s, &s->open, slab);
        list_add(s, &s->gone, slab);
        tablemem_put(s->mem, s->slabs[slab], slab_bytes(s));
        s->slabs[slab] = NULL;
        s->empty--;
    }
}
