/*
 * Mini-batches: a block's rows cut into batches, each with its sorted unique keys and, for each feature, the place of
 * its key among them. Push and pull need keys in this form, and models need indices.
 *
 * A block of n rows gives ceil(n / batch_rows) batches of sizes that differ by at most one, so the cut
 * depends on the block and the setting only, never on timing. The last key of every batch is BATCH_BIAS_KEY,
 * the model's constant feature; no feature's index names it unless the data has a feature of that id, which
 * is then part of the bias.
 *
 * A batch_list points into its block: keep the block until the list is filled again. A block with places gives the same
 * batches as one with keys, in a third of the time. It never knows of models or servers. Tests:
 * test/learn/test_batch.c.
 */
#ifndef LEARN_DATA_BATCH_H
#define LEARN_DATA_BATCH_H

#include "learn/data/block.h"

#define BATCH_BIAS_KEY BLOCK_BIAS_KEY

struct batch {
    size_t rows;
    size_t unique;          /* keys, the bias included: at least 1 */
    const uint64_t *key;    /* [unique], ascending; key[unique - 1] is BATCH_BIAS_KEY */
    paramo_keyset *keyset;  /* that contains the keys, or NULL: there is none */
    const uint32_t *places; /* [unique]: of the keys in keyset; NULL without it */
    const float *label;     /* [rows]: as in the block */
    const float *weight;    /* [rows], or NULL: all 1 */
    /* [rows + 1]: row r has features start[r] - start[0] .. start[r + 1] - start[0] - 1 */
    const uint32_t *start;
    const uint32_t *index; /* [features]: place of the feature's key in key[] */
    const float *value;    /* [features], or NULL: all 1 */
    const uint16_t *field; /* [features], or NULL: the reader was not asked for fields */
};

struct batch_list {
    size_t n;
    struct batch *batch;
    size_t most_unique, most_rows; /* over the batches */
    /* memory, kept from block to block */
    size_t batch_cap, key_cap, index_cap, place_cap;
    uint64_t *key;
    uint32_t *index, *place;
};

struct batcher; /* scratch of one thread */

PARAMO_MUST_USE paramo_err batcher_new(struct batcher **batcher);
void batcher_free(struct batcher *batcher);

/* Finds the distinct keys of the block, which has keys; the caller frees them. */
PARAMO_MUST_USE paramo_err batcher_keys(struct batcher *batcher, const struct block *block,
                                        struct block_keys **keys);

/* list is zeroed before its first use. MEMORY leaves it empty. */
PARAMO_MUST_USE paramo_err batcher_cut(struct batcher *batcher, const struct block *block, size_t batch_rows,
                                       struct batch_list *list);
/* Like batcher_cut(), for one of `shares` workers that learn each batch together, with batch_rows rows each: only share
 * number `share`, from 0. Together, the shares are the batches of shares * batch_rows rows, row for row. */
PARAMO_MUST_USE paramo_err batcher_cut_share(struct batcher *batcher, const struct block *block,
                                             size_t batch_rows, uint32_t share, uint32_t shares,
                                             struct batch_list *list);
void batch_list_free(struct batch_list *list);

#endif
