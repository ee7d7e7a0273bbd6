#include "learn/data/block.h"

#include <stdlib.h>

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
