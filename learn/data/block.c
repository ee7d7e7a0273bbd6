#include "learn/data/block.h"
#include "learn/data/holdout.h"

#include <stdlib.h>
#include <string.h>

paramo_err block_alloc(struct block *block, size_t rows, size_t features, int has_value, int has_field,
                       size_t *bytes)
{
    /* widest elements first: every array is aligned without padding */
    size_t size =
        features * sizeof *block->key + rows * sizeof *block->label + (rows + 1) * sizeof *block->offset;
    if (has_value)
        size += features * sizeof *block->value;
    if (has_field)
        size += features * sizeof *block->field;
    char *p = malloc(size);
    if (p == NULL)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of %zu rows (%zu bytes)", rows,
                                size);
    block->rows = rows;
    block->features = features;
    block->key = (uint64_t *)(void *)p;
    p += features * sizeof *block->key;
    block->label = (float *)(void *)p;
    p += rows * sizeof *block->label;
    block->offset = (uint32_t *)(void *)p;
    p += (rows + 1) * sizeof *block->offset;
    block->value = NULL;
    block->field = NULL;
    if (has_value) {
        block->value = (float *)(void *)p;
        p += features * sizeof *block->value;
    }
    if (has_field)
        block->field = (uint16_t *)(void *)p;
    *bytes = size;
    return PARAMO_OK;
}

void block_free(struct block *block)
{
    free(block->key);
    block->key = NULL;
}

/* Row r of `to` is row place[r] of `from`. */
static void copy_rows(const struct block *from, const uint32_t *place, struct block *to)
{
    uint32_t at = 0;
    for (size_t r = 0; r < from->rows; r++) {
        const uint32_t first = from->offset[place[r]], n = from->offset[place[r] + 1] - first;
        to->label[r] = from->label[place[r]];
        to->offset[r] = at;
        memcpy(to->key + at, from->key + first, n * sizeof *to->key);
        if (to->value != NULL)
            memcpy(to->value + at, from->value + first, n * sizeof *to->value);
        if (to->field != NULL)
            memcpy(to->field + at, from->field + first, n * sizeof *to->field);
        at += n;
    }
    to->offset[from->rows] = at;
}

paramo_err block_shuffle(const struct block *from, size_t window, uint64_t seed, struct block *to)
{
    size_t bytes;
    uint32_t *place = malloc((from->rows + 1) * sizeof *place);
    if (place == NULL)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of %zu rows", from->rows);
    *to = *from;
    paramo_err err =
        block_alloc(to, from->rows, from->features, from->value != NULL, from->field != NULL, &bytes);
    for (size_t r = 0; err == PARAMO_OK && r < from->rows; r++) {
        /* "inside out": row r takes the place of one of its window's rows before it, or its own */
        const size_t first = r - r % window,
                     other = first + (size_t)(holdout_mix(seed + r) % (r - first + 1));
        place[r] = place[other];
        place[other] = (uint32_t)r;
    }
    if (err == PARAMO_OK)
        copy_rows(from, place, to);
    free(place);
    return err;
}
