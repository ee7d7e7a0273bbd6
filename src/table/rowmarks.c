#include "table/rowmarks.h"

#include <assert.h>
#include <string.h>

enum { BATCH = 64 /* marks whose cache misses overlap */, ALIGN = 64 };

void rowmarks_init(struct rowmarks *m, struct tablemem *mem)
{
    *m = (struct rowmarks){.mem = mem, .now = 1};
}

void rowmarks_clear(struct rowmarks *m)
{
    assert(!m->room == !m->chunk);
    for (size_t i = 0; i < m->room; i++)
        tablemem_put(m->mem, m->chunk[i], ROWMARKS_CHUNK);
    tablemem_put(m->mem, m->chunk, m->room * sizeof *m->chunk);
    m->chunk = NULL;
    m->room = 0;
    m->failed = false;
}

static bool make_room(struct rowmarks *m, uint64_t at)
{
    size_t room = m->room ? m->room : 16;
    while (room <= at)
        room *= 2;
    if (room == m->room)
        return true;
    assert(!m->room == !m->chunk);
    uint8_t **chunk = tablemem_get(m->mem, ALIGN, room * sizeof *chunk);
    if (!chunk)
        return false;
    memset(chunk, 0, room * sizeof *chunk);
    if (m->room)
        memcpy(chunk, m->chunk, m->room * sizeof *chunk);
    tablemem_put(m->mem, m->chunk, m->room * sizeof *chunk);
    m->chunk = chunk;
    m->room = room;
    assert(at < m->room);
    return true;
}

static uint8_t *chunk_make(struct rowmarks *m, uint64_t at)
{
    if (m->failed || !make_room(m, at))
        return NULL;
    assert(at < m->room);
    assert(!m->chunk[at]);
    uint8_t *chunk = tablemem_get(m->mem, ALIGN, ROWMARKS_CHUNK);
    if (chunk)
        memset(chunk, 0, ROWMARKS_CHUNK);
    m->chunk[at] = chunk;
    return chunk;
}

void rowmarks_set(struct rowmarks *m, uint64_t number, unsigned mark)
{
    assert(mark <= 3);
    uint64_t at = number >> ROWMARKS_SHIFT;
    uint8_t *chunk = at < m->room ? m->chunk[at] : NULL;
    if (!chunk) {
        if (!mark)
            return;
        chunk = chunk_make(m, at);
        if (!chunk) {
            m->failed = true;
            return;
        }
    }
    uint8_t *byte = chunk + (number >> 2 & (ROWMARKS_CHUNK - 1));
    unsigned shift = 2 * (number & 3);
    *byte = (uint8_t)((*byte & ~(3U << shift)) | mark << shift);
}

void rowmarks_change(struct rowmarks *m, uint64_t key, uint64_t number)
{
    unsigned was = rowmarks_get(m, number);
    if (was == m->now)
        return;
    if (m->first)
        m->first(m->arg, key, number, was);
    rowmarks_set(m, number, m->now);
}

/* Finds the bytes of a batch's marks. For a missing row that is `same`, which has this epoch's marks; for a missing
 * chunk a byte of 0s. */
static size_t fetch(const struct rowmarks *m, const uint8_t *same, const uint32_t *numbers, size_t left,
                    const uint8_t **byte)
{
    static const uint8_t none;
    size_t n = left < BATCH ? left : BATCH;
    for (size_t i = 0; i < n; i++) {
        uint32_t at = numbers[i] >> ROWMARKS_SHIFT;
        const uint8_t *chunk = at < m->room ? m->chunk[at] : NULL;
        byte[i] = chunk ? chunk + (numbers[i] >> 2 & (ROWMARKS_CHUNK - 1)) : &none;
        byte[i] = numbers[i] == ROWMARKS_NONE ? same : byte[i];
        __builtin_prefetch(byte[i], 1);
    }
    return n;
}

void rowmarks_change_all(struct rowmarks *m, const uint64_t *keys, const uint32_t *numbers, size_t n)
{
    const uint8_t same = (uint8_t)(0x55 * m->now), *byte[2][BATCH];
    unsigned turn = 0;
    for (size_t batch = fetch(m, &same, numbers, n, byte[0]), next; batch > 0; batch = next, turn ^= 1) {
        uint16_t unmarked[BATCH];
        size_t n_unmarked = 0;
        next = fetch(m, &same, numbers + batch, n - batch, byte[turn ^ 1]);
        for (size_t i = 0; i < batch; i++) { /* without branches: most rows have changed in this epoch */
            unmarked[n_unmarked] = (uint16_t)i;
            n_unmarked += (*byte[turn][i] >> 2 * (numbers[i] & 3) & 3) != (int)m->now;
        }
        for (size_t k = 0; k < n_unmarked; k++)
            rowmarks_change(m, keys[unmarked[k]], numbers[unmarked[k]]);
        keys += batch;
        numbers += batch;
        n -= batch;
    }
}
