/*
 * A block: parsed rows of a click log in compressed-row form, the unit in which data is read, cached and
 * dealt out.
 *
 * Row r has the features offset[r] .. offset[r+1]-1: key[], value[] and field[]. Keys are final (hashed if the format
 * or --hash-bits requires it) and not sorted within a row. A key may occur twice in a row (by a hash collision, or in
 * the data). A block does not change after a reader has handed it out. Its arrays are one allocation: it is freed,
 * counted and spilled as a whole. It never knows of files, models or servers. Tests: test/learn/test_parse_*.c,
 * test_block.c.
 *
 * A block that is read again can have block_keys: its distinct keys, and the place of each feature's key among them. A
 * copy with other rows then has places instead of keys, and a batch is cut from it without hashing (batch.h).
 */
#ifndef LEARN_DATA_BLOCK_H
#define LEARN_DATA_BLOCK_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

struct block {
    size_t rows;
    size_t features;  /* total over all rows */
    float *label;     /* [rows]: what the reader was asked for (label.h) */
    float *weight;    /* [rows], at least 0, or NULL: all 1 */
    uint32_t *offset; /* [rows + 1] */
    uint64_t *key;    /* [features], or NULL: there are places */
    float *value;     /* [features], or NULL: all 1 */
    uint16_t *field;  /* [features], or NULL: the reader was not asked for them */
    uint32_t *place;  /* [features], or NULL: feature i has the key distinct[place[i]] */
    /* [rows], or NULL. The block has the rows of another block in another order; place[] is that block's, and the
     * places of row r begin at place[row_place[r]] */
    uint32_t *row_place;
    const uint64_t *distinct; /* [distincts], ascending, not part of the block; NULL if there are no places */
    size_t distincts;
    /* of distinct[] and BLOCK_BIAS_KEY, which is last; NULL without places */
    paramo_keyset *keyset;
    uint32_t stream;     /* which input file, in the order given */
    uint64_t index;      /* which part of it */
    uint64_t first_line; /* line number of the part's first line, from 1; 0 if unknown */
};

/* Which arrays a block has, and how long they are. */
struct block_shape {
    size_t rows, features;
    int has_value, has_field, has_weight;
    int has_place;     /* instead of keys */
    int has_row_place; /* instead of keys and places */
};
/* The places of row r's features, in a block that has places. */
static inline const uint32_t *block_row_places(const struct block *block, size_t r)
{
    return block->place + (block->row_place ? block->row_place[r] : block->offset[r]);
}
struct block_shape block_shape(const struct block *block);
/* The bytes of a block's allocation. */
size_t block_bytes(const struct block_shape *shape);
/* Sets the counts of block, and its arrays to one new allocation with undefined contents. Leaves the rest alone. */
PARAMO_MUST_USE paramo_err block_alloc(struct block *block, const struct block_shape *shape);
void block_free(struct block *block);
/* The distinct keys of a block, and the place of each feature's key among them. */
struct block_keys {
    size_t n;
    uint64_t *key;         /* [n], ascending; after them BLOCK_BIAS_KEY */
    uint32_t *place;       /* [features] */
    paramo_keyset *keyset; /* of them, with BLOCK_BIAS_KEY */
};
#define BLOCK_BIAS_KEY UINT64_MAX /* the key of the models' constant feature */
/* The bytes of a block_keys, with what its keyset notes of two tables. */
size_t block_keys_bytes(size_t distinct, size_t features);
void block_keys_free(struct block_keys *keys);
/* Copies key[0..n) and place[0..features), which batcher_keys() finds. */
PARAMO_MUST_USE paramo_err block_keys_new(const uint64_t *key, size_t n, const uint32_t *place,
                                          size_t features, struct block_keys **keys);
/* The same block with these places besides its keys. It shares all arrays, so it is not for block_free. */
struct block block_with_keys(const struct block *block, const struct block_keys *keys);

/* A copy of `from` with its rows in an order that depends on seed only: each run of `window` rows is shuffled. If
 * `from` has keys and places, the copy has row_place[] instead, and `from` must stay. */
PARAMO_MUST_USE paramo_err block_shuffle(const struct block *from, size_t window, uint64_t seed,
                                         struct block *to);
/* A copy of `from` with each row's weight multiplied by label_weight(class_weight, n, its label). */
PARAMO_MUST_USE paramo_err block_weigh(const struct block *from, const float *class_weight, uint32_t n,
                                       struct block *to);
/* A copy of `from` with its rows of a label above 0.5 and about `share` of the others, in their order. The choice
 * depends only on seed and on the rows' numbers in the block. */
PARAMO_MUST_USE paramo_err block_thin(const struct block *from, double share, uint64_t seed,
                                      struct block *to);

#endif
