#include "learn/data/interact.h"
#include "learn/data/parse_line.h"

#include <assert.h>
#include <string.h>

#define ODD UINT64_C(0x9e3779b97f4a7c15)

int interactions_add(struct interactions *in, uint16_t a, uint16_t b)
{
    const struct field_pair pair = {a < b ? a : b, a < b ? b : a};
    for (uint32_t i = 0; i < in->n; i++)
        if (in->pair[i].a == pair.a && in->pair[i].b == pair.b)
            return 0;
    if (in->n == INTERACTIONS_MAX)
        return 0;
    in->pair[in->n++] = pair;
    return 1;
}

/* Writes the features that a pair of fields gives in one row to `to`, from place `at` on (NULL: counts them only).
 * Returns their number. */
static uint64_t pair_features(const struct field_pair *pair, const struct block *from, size_t row,
                              uint64_t mask, struct block *to, uint64_t at)
{
    const size_t first = from->offset[row], end = from->offset[row + 1];
    uint64_t n = 0;
    for (size_t i = first; i < end; i++)
        for (size_t j = pair->a == pair->b ? i + 1 : first; from->field[i] == pair->a && j < end; j++) {
            if (from->field[j] != pair->b)
                continue;
            if (to) {
                const uint64_t key = parse_mix(parse_mix(from->key[i] + ODD) ^ from->key[j]) & mask;
                to->key[at + n] = key - (key == UINT64_MAX); /* UINT64_MAX is the bias */
                if (to->value)
                    to->value[at + n] = from->value[i] * from->value[j];
            }
            n++;
        }
    return n;
}

paramo_err interact_block(const struct interactions *in, unsigned hash_bits, const struct block *from,
                          struct block *to)
{
    const uint64_t mask = parse_mask(hash_bits);
    struct block_shape shape = block_shape(from);
    uint64_t features = from->features;
    assert(from->field || from->features == 0);
    for (size_t r = 0; r < from->rows; r++)
        for (uint32_t p = 0; p < in->n; p++)
            features += pair_features(&in->pair[p], from, r, mask, NULL, 0);
    if (features > UINT32_MAX)
        return paramo_error_set(PARAMO_E_TOO_LARGE, "--interactions: %llu features in a part of the data",
                                (unsigned long long)features);
    shape.features = (size_t)features;
    shape.has_field = 0;
    *to = *from;
    paramo_err err = block_alloc(to, &shape);
    if (err != PARAMO_OK)
        return err;
    memcpy(to->label, from->label, from->rows * sizeof *to->label);
    if (to->weight)
        memcpy(to->weight, from->weight, from->rows * sizeof *to->weight);
    uint64_t at = 0;
    for (size_t r = 0; r < from->rows; r++) {
        const size_t first = from->offset[r], n = from->offset[r + 1] - first;
        to->offset[r] = (uint32_t)at;
        memcpy(to->key + at, from->key + first, n * sizeof *to->key);
        if (to->value)
            memcpy(to->value + at, from->value + first, n * sizeof *to->value);
        at += n;
        for (uint32_t p = 0; p < in->n; p++)
            at += pair_features(&in->pair[p], from, r, mask, to, at);
    }
    to->offset[from->rows] = (uint32_t)at;
    return PARAMO_OK;
}
