/*
 * Features of pairs of fields (`--interactions`): for each feature i of field a and each j of field b of a row, a
 * feature with the value x_i x_j, whose key is a hash of both keys. So a linear model has a weight for each pair of
 * their values.
 *
 * The features stand after those of the row, pair of fields by pair of fields, in the order of the row. It never
 * knows of formats or models. Tests: test/learn/test_interact.c.
 */
#ifndef LEARN_DATA_INTERACT_H
#define LEARN_DATA_INTERACT_H

#include "learn/data/block.h"

#define INTERACTIONS_MAX 64 /* arbitrary */

struct interactions {
    uint32_t n; /* 0: none */
    struct field_pair {
        uint16_t a, b; /* a < b; or equal: the pairs within a field */
    } pair[INTERACTIONS_MAX];
};

/* Adds a pair of fields, in any order. Returns 0 if the pair is there already, or there are too many. */
int interactions_add(struct interactions *interactions, uint16_t a, uint16_t b);

/* A copy of `from`, which has fields, with these features and without fields. Keys have hash_bits bits (0: 64).
 * TOO_LARGE: the block would have 2^32 features or more. */
PARAMO_MUST_USE paramo_err interact_block(const struct interactions *interactions, unsigned hash_bits,
                                          const struct block *from, struct block *to);

#endif
