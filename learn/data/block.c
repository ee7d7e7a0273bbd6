#include "learn/data/block.h"
#include "learn/data/holdout.h"
#include "learn/data/label.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

struct block_shape block_shape(const struct block *b)
{
    return (struct block_shape){.rows = b->rows,
                                .features = b->features,
                                .has_value = b->value != NULL,
                                .has_field = b->field != NULL,
                                .has_weight = b->weight != NULL,
                                .has_place = b->place != NULL && b->row_place == NULL,
                                .has_row_place = b->row_place != NULL};
}

size_t block_bytes(const struct block_shape *s)
{
    const size_t key = s->has_row_place ? 0 : s->has_place ? sizeof(uint32_t) : sizeof(uint64_t);
    return s->features * (key + (s->has_value ? sizeof(float) : 0) + (s->has_field ? sizeof(uint16_t) : 0)) +
           s->rows * (sizeof(float) + (s->has_weight ? sizeof(float) : 0) +
                      (s->has_row_place ? sizeof(uint32_t) : 0)) +
           (s->rows + 1) * sizeof(uint32_t);
}

paramo_err block_alloc(struct block *block, const struct block_shape *s)
{
    /* widest elements first: every array is aligned without padding */
    char *p = malloc(block_bytes(s));
    if (!p)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of %zu rows (%zu bytes)", s->rows,
                                block_bytes(s));
    block->rows = s->rows;
    block->features = s->features;
    block->key = NULL;
    block->row_place = NULL;
    if (!s->has_row_place)
        block->place = NULL;
    if (s->has_row_place) {
        block->row_place = (uint32_t *)(void *)p;
        p += s->rows * sizeof *block->row_place;
    } else if (s->has_place) {
        block->place = (uint32_t *)(void *)p;
        p += s->features * sizeof *block->place;
    } else {
        block->distinct = NULL;
        block->distincts = 0;
        block->keyset = NULL;
        block->key = (uint64_t *)(void *)p;
        p += s->features * sizeof *block->key;
    }
    block->label = (float *)(void *)p;
    p += s->rows * sizeof *block->label;
    block->offset = (uint32_t *)(void *)p;
    p += (s->rows + 1) * sizeof *block->offset;
    block->weight = block->value = NULL;
    block->field = NULL;
    if (s->has_weight) {
        block->weight = (float *)(void *)p;
        p += s->rows * sizeof *block->weight;
    }
    if (s->has_value) {
        block->value = (float *)(void *)p;
        p += s->features * sizeof *block->value;
    }
    if (s->has_field)
        block->field = (uint16_t *)(void *)p;
    return PARAMO_OK;
}

void block_free(struct block *block)
{
    free(block->key         ? (void *)block->key
         : block->row_place ? (void *)block->row_place
                            : (void *)block->place); /* the first array, where the memory begins */
    block->key = NULL;
    block->place = block->row_place = NULL;
}

size_t block_keys_bytes(size_t distinct, size_t features)
{
    return sizeof(struct block_keys) + (distinct + 1) * (sizeof(uint64_t) + 2 * sizeof(uint32_t)) +
           features * sizeof(uint32_t);
}

paramo_err block_keys_new(const uint64_t *key, size_t n, const uint32_t *place, size_t features,
                          struct block_keys **keys)
{
    struct block_keys *k = malloc(sizeof *k + (n + 1) * sizeof *key + features * sizeof *place);
    if (!k)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the %zu keys of a block", n);
    k->n = n;
    k->key = (uint64_t *)(void *)(k + 1);
    k->place = (uint32_t *)(void *)(k->key + n + 1);
    memcpy(k->key, key, n * sizeof *key);
    memcpy(k->place, place, features * sizeof *place);
    k->key[n] = BLOCK_BIAS_KEY;
    const size_t own = n > 0 && key[n - 1] == BLOCK_BIAS_KEY ? n : n + 1;
    paramo_err err = paramo_keyset_new(k->key, own, &k->keyset);
    if (err != PARAMO_OK) {
        free(k);
        return err;
    }
    *keys = k;
    return PARAMO_OK;
}

void block_keys_free(struct block_keys *keys)
{
    if (keys)
        paramo_keyset_free(keys->keyset);
    free(keys);
}

struct block block_with_keys(const struct block *block, const struct block_keys *keys)
{
    struct block with = *block;
    with.place = keys->place;
    with.distinct = keys->key;
    with.distincts = keys->n;
    with.keyset = keys->keyset;
    return with;
}

/* Row r of `to` is row place[r] of `from`. */
static void copy_rows(const struct block *from, const uint32_t *place, struct block *to)
{
    uint32_t at = 0;
    for (size_t r = 0; r < to->rows; r++) {
        const uint32_t first = from->offset[place[r]], n = from->offset[place[r] + 1] - first;
        to->label[r] = from->label[place[r]];
        if (to->weight)
            to->weight[r] = from->weight[place[r]];
        to->offset[r] = at;
        if (to->row_place)
            to->row_place[r] = first;
        else if (to->place)
            memcpy(to->place + at, from->place + first, n * sizeof *to->place);
        else
            memcpy(to->key + at, from->key + first, n * sizeof *to->key);
        if (to->value)
            memcpy(to->value + at, from->value + first, n * sizeof *to->value);
        if (to->field)
            memcpy(to->field + at, from->field + first, n * sizeof *to->field);
        at += n;
    }
    to->offset[to->rows] = at;
}

paramo_err block_weigh(const struct block *from, const float *class_weight, uint32_t n, struct block *to)
{
    struct block_shape shape = block_shape(from);
    shape.has_weight = 1;
    *to = *from;
    paramo_err err = block_alloc(to, &shape);
    if (err != PARAMO_OK)
        return err;
    if (to->row_place)
        memcpy(to->row_place, from->row_place, from->rows * sizeof *to->row_place);
    else if (to->place)
        memcpy(to->place, from->place, from->features * sizeof *to->place);
    else
        memcpy(to->key, from->key, from->features * sizeof *to->key);
    memcpy(to->label, from->label, from->rows * sizeof *to->label);
    memcpy(to->offset, from->offset, (from->rows + 1) * sizeof *to->offset);
    if (to->value)
        memcpy(to->value, from->value, from->features * sizeof *to->value);
    if (to->field)
        memcpy(to->field, from->field, from->features * sizeof *to->field);
    for (size_t r = 0; r < from->rows; r++)
        to->weight[r] =
            (from->weight ? from->weight[r] : 1.0f) * label_weight(class_weight, n, from->label[r]);
    return PARAMO_OK;
}

paramo_err block_thin(const struct block *from, double share, uint64_t seed, struct block *to)
{
    struct block_shape shape = block_shape(from);
    uint32_t *place = malloc((from->rows + 1) * sizeof *place);
    if (!place)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of %zu rows", from->rows);
    shape.rows = shape.features = 0;
    for (size_t r = 0; r < from->rows; r++) {
        if (from->label[r] <= 0.5f && (double)(holdout_mix(seed + r) >> 11) * 0x1p-53 >= share)
            continue;
        place[shape.rows++] = (uint32_t)r;
        shape.features += from->offset[r + 1] - from->offset[r];
    }
    *to = *from;
    paramo_err err = block_alloc(to, &shape);
    if (err == PARAMO_OK)
        copy_rows(from, place, to);
    free(place);
    return err;
}

paramo_err block_shuffle(const struct block *from, size_t window, uint64_t seed, struct block *to)
{
    struct block_shape shape = block_shape(from);
    uint32_t *place = malloc((from->rows + 1) * sizeof *place);
    if (!place)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for a block of %zu rows", from->rows);
    if (from->key && from->place) {
        shape.has_row_place = 1;
        shape.has_place = 0;
    }
    assert(!from->row_place);
    *to = *from;
    paramo_err err = block_alloc(to, &shape);
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
