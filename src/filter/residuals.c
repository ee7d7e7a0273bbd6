#include "filter/residuals.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"

/* Before a row's values. */
struct residual_head {
    uint64_t key, stamp;
};

enum { MAP_ENTRY = 2 * sizeof(struct map_slot) }; /* a map is at most half full */

static size_t stride(const struct residuals *r)
{
    return sizeof(struct residual_head) + ((r->row_bytes + 7) & ~(size_t)7);
}

void residuals_init(struct residuals *r, size_t row_bytes)
{
    memset(r, 0, sizeof *r);
    for (unsigned i = 0; i < RESIDUALS_MAPS; i++)
        map_init(&r->maps[i]);
    assert(row_bytes);
    r->row_bytes = row_bytes;
    r->block_rows = RESIDUALS_BLOCK / stride(r) ? RESIDUALS_BLOCK / stride(r) : 1;
    r->stamp = 1;
}

void residuals_fini(struct residuals *r)
{
    for (unsigned i = 0; i < RESIDUALS_MAPS; i++)
        map_fini(&r->maps[i]);
    for (size_t i = 0; i < r->blocks_count; i++)
        free(r->blocks[i]);
    free(r->blocks);
    memset(r, 0, sizeof *r);
}

static struct map *map_of(const struct residuals *r, uint64_t key)
{
    return (struct map *)(uintptr_t)&r->maps[mix64(key) >> 58];
}

static struct residual_head *row_at(const struct residuals *r, size_t i)
{
    assert(i < r->count || i < r->blocks_count * r->block_rows);
    return (struct residual_head *)(void *)(r->blocks[i / r->block_rows] + i % r->block_rows * stride(r));
}

/* The row's place; SIZE_MAX: none. */
static size_t find(const struct residuals *r, uint64_t key)
{
    const void *at = map_get(map_of(r, key), key);
    return at ? (size_t)(uintptr_t)at - 1 : SIZE_MAX;
}

void *residuals_get(const struct residuals *r, uint64_t key)
{
    size_t i = find(r, key);
    return i == SIZE_MAX ? NULL : row_at(r, i) + 1;
}

/* Room for one more row. */
static paramo_err block_add(struct residuals *r)
{
    if (r->count < r->blocks_count * r->block_rows)
        return PARAMO_OK;
    if (r->blocks_count == r->blocks_room) {
        size_t room = r->blocks_room ? 2 * r->blocks_room : 8;
        uint8_t **blocks = realloc(r->blocks, room * sizeof *blocks);
        if (!blocks)
            return err_memory(room * sizeof *blocks);
        r->blocks = blocks;
        r->blocks_room = room;
    }
    uint8_t *block = malloc(r->block_rows * stride(r));
    if (!block)
        return err_memory(r->block_rows * stride(r));
    r->blocks[r->blocks_count++] = block;
    return PARAMO_OK;
}

paramo_err residuals_put(struct residuals *r, uint64_t key, const void *values)
{
    size_t i = find(r, key);
    if (i == SIZE_MAX) {
        paramo_err err = block_add(r);
        if (!err)
            err = map_put(map_of(r, key), key, (void *)(uintptr_t)(r->count + 1));
        if (err)
            return err;
        i = r->count++;
        *row_at(r, i) = (struct residual_head){.key = key, .stamp = r->stamp};
    }
    memcpy(row_at(r, i) + 1, values, r->row_bytes);
    return PARAMO_OK;
}

void residuals_take(struct residuals *r, uint64_t key)
{
    size_t i = find(r, key);
    if (i == SIZE_MAX)
        return;
    (void)map_remove(map_of(r, key), key);
    size_t last = --r->count;
    if (i != last) { /* the last row takes its place */
        const struct residual_head *from = row_at(r, last);
        memcpy(row_at(r, i), from, stride(r));
        paramo_err err = map_put(map_of(r, from->key), from->key, (void *)(uintptr_t)(i + 1));
        assert(!err); /* it is there already */
        (void)err;
    }
    /* one free block stays for the next row */
    if (r->blocks_count > 1 && r->count <= (r->blocks_count - 2) * r->block_rows)
        free(r->blocks[--r->blocks_count]);
}

size_t residuals_old(const struct residuals *r, uint64_t stamp, size_t *cursor, uint64_t *keys, size_t most)
{
    size_t at = *cursor < r->count ? *cursor : r->count, n = 0;
    for (size_t seen = 0; at && seen < most; seen++) {
        const struct residual_head *row = row_at(r, --at);
        if (row->stamp < stamp)
            keys[n++] = row->key;
    }
    *cursor = at;
    return n;
}

size_t residuals_row_bytes(const struct residuals *r)
{
    return stride(r) + MAP_ENTRY;
}

size_t residuals_bytes(const struct residuals *r)
{
    return r->count * residuals_row_bytes(r);
}
