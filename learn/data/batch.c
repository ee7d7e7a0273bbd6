#include "learn/data/batch.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/*
 * How a batch's keys are made unique (measured: four times as fast as sorting all features, since most features of a
 * click log repeat within a batch):
 *   1. Each feature's key is looked up in an open-addressing table of at least twice as many cells as features. A new
 *      key gets the next local number, and the feature's index is that number. A cell is in use if its stamp is the
 *      batch's.
 *   2. The unique keys are sorted by radix, with their local numbers, only over the bytes in which keys differ.
 *   3. Each index is replaced by its key's place in the sorted order.
 *
 * A block with places needs no hashing and no sorting: its distinct keys that occur in the batch are marked in a
 * set of bits, which is then read in order. That reads a word for 64 distinct keys of the block, so a batch that is
 * much smaller than its block is hashed, if the block has keys.
 */
struct cell {
    uint64_t key;
    uint32_t local;
    uint32_t stamp;
};

struct item {
    uint64_t key;
    uint32_t local;
};

struct batcher {
    size_t cells; /* a power of two, or 0 */
    struct cell *cell;
    uint32_t stamp;
    size_t items;
    struct item *item, *other;
    uint32_t *place; /* [items]: local number -> place */
    /* of blocks with places */
    size_t words, numbers;
    uint64_t *bits;   /* [words]: distinct keys that occur in the batch; all 0 between batches */
    uint32_t *number; /* [numbers]: place in the block -> place in the batch; undefined between batches */
};

paramo_err batcher_new(struct batcher **batcher)
{
    struct batcher *b = calloc(1, sizeof *b);
    if (!b)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for batches");
    *batcher = b;
    return PARAMO_OK;
}

void batcher_free(struct batcher *b)
{
    if (!b)
        return;
    free(b->cell);
    free(b->item);
    free(b->other);
    free(b->place);
    free(b->bits);
    free(b->number);
    free(b);
}

void batch_list_free(struct batch_list *list)
{
    free(list->batch);
    free(list->key);
    free(list->index);
    free(list->place);
    memset(list, 0, sizeof *list);
}

/* Makes room for at least n elements in *array. Its content is lost. */
static paramo_err grow(void *array, size_t *cap, size_t n, size_t size)
{
    void **p = array;
    if (n <= *cap)
        return PARAMO_OK;
    size_t want = n + n / 4;
    free(*p);
    *cap = 0;
    *p = want > SIZE_MAX / size ? NULL : malloc(want * size);
    if (!*p)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu features", n);
    *cap = want;
    return PARAMO_OK;
}

static paramo_err batcher_reserve(struct batcher *b, size_t features)
{
    size_t cells = 1024;
    while (cells < 2 * features)
        cells *= 2;
    if (cells > b->cells) {
        free(b->cell);
        b->cells = 0;
        b->cell = calloc(cells, sizeof *b->cell);
        if (!b->cell)
            return paramo_error_set(PARAMO_E_MEMORY, "out of memory: a batch of %zu features", features);
        b->cells = cells;
        b->stamp = 0;
    }
    if (features > b->items) {
        size_t item_cap = 0, other_cap = 0, place_cap = 0;
        b->items = 0;
        paramo_err err = grow(&b->item, &item_cap, features, sizeof *b->item);
        if (err == PARAMO_OK)
            err = grow(&b->other, &other_cap, features, sizeof *b->other);
        if (err == PARAMO_OK)
            err = grow(&b->place, &place_cap, features, sizeof *b->place);
        if (err != PARAMO_OK)
            return err;
        b->items = features;
    }
    return PARAMO_OK;
}

/* Sorts item[0..n), least significant byte first; returns where the result is (item or other). */
static struct item *sort_items(struct item *item, struct item *other, size_t n)
{
    uint64_t any = 0, all = UINT64_MAX;
    for (size_t i = 0; i < n; i++) {
        any |= item[i].key;
        all &= item[i].key;
    }
    uint64_t differ = any ^ all;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if ((differ >> shift & 0xff) == 0)
            continue;
        uint32_t at[256] = {0};
        for (size_t i = 0; i < n; i++)
            at[item[i].key >> shift & 0xff]++;
        for (uint32_t i = 0, sum = 0; i < 256; i++) {
            uint32_t count = at[i];
            at[i] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            other[at[item[i].key >> shift & 0xff]++] = item[i];
        struct item *swap = item;
        item = other;
        other = swap;
    }
    return item;
}

/* Writes the unique keys of key[0..n) to out, and the place of each feature's key among them to index. Returns the
 * number of unique keys. */
static size_t unique_keys(struct batcher *b, const uint64_t *key, size_t n, uint64_t *out, uint32_t *index)
{
    size_t cells = 1024;
    while (cells < 2 * n)
        cells *= 2;
    if (++b->stamp == 0) { /* after 2^32 batches old stamps would count again */
        memset(b->cell, 0, b->cells * sizeof *b->cell);
        b->stamp = 1;
    }
    uint32_t stamp = b->stamp, unique = 0;
    size_t mask = cells - 1; /* the smallest part of the table that is enough: it stays in the CPU's cache */
    struct cell *cell = b->cell;
    struct item *item = b->item;
    for (size_t i = 0; i < n; i++) {
        size_t at = (size_t)(key[i] * UINT64_C(0x9e3779b97f4a7c15) >> 32) & mask;
        while (cell[at].stamp == stamp && cell[at].key != key[i])
            at = (at + 1) & mask;
        if (cell[at].stamp != stamp) {
            cell[at] = (struct cell){.key = key[i], .local = unique, .stamp = stamp};
            item[unique] = (struct item){.key = key[i], .local = unique};
            unique++;
        }
        index[i] = cell[at].local;
    }
    const struct item *sorted = sort_items(b->item, b->other, unique);
    for (uint32_t i = 0; i < unique; i++) {
        out[i] = sorted[i].key;
        b->place[sorted[i].local] = i;
    }
    for (size_t i = 0; i < n; i++)
        index[i] = b->place[index[i]];
    return unique;
}

/* Makes room for blocks of `distincts` distinct keys. */
static paramo_err places_reserve(struct batcher *b, size_t distincts)
{
    const size_t words = (distincts + 63) / 64;
    paramo_err err = grow(&b->number, &b->numbers, distincts, sizeof *b->number);
    if (err != PARAMO_OK || words <= b->words)
        return err;
    free(b->bits);
    b->bits = calloc(words, sizeof *b->bits);
    b->words = b->bits ? words : 0;
    return b->bits ? PARAMO_OK
                   : paramo_error_set(PARAMO_E_MEMORY, "out of memory: a block of %zu keys", distincts);
}

/* unique_keys() for features that have places. at: the places of the unique keys in the block. */
static size_t unique_places(struct batcher *b, const struct block *block, size_t first, size_t end,
                            uint64_t *out, uint32_t *at, uint32_t *index)
{
    const size_t words = (block->distincts + 63) / 64;
    uint64_t *bits = b->bits;
    uint32_t *number = b->number;
    size_t unique = 0;
    for (size_t r = first; r < end; r++) {
        const uint32_t *place = block_row_places(block, r);
        for (size_t i = 0, n = block->offset[r + 1] - block->offset[r]; i < n; i++)
            bits[place[i] / 64] |= UINT64_C(1) << place[i] % 64;
    }
    for (size_t w = 0; w < words; w++) {
        for (uint64_t left = bits[w]; left != 0; left &= left - 1) {
            const size_t p = 64 * w + (size_t)__builtin_ctzll(left);
            number[p] = (uint32_t)unique;
            at[unique] = (uint32_t)p;
            out[unique++] = block->distinct[p];
        }
        bits[w] = 0;
    }
    for (size_t r = first; r < end; r++) {
        const uint32_t *place = block_row_places(block, r);
        for (size_t i = 0, n = block->offset[r + 1] - block->offset[r]; i < n; i++)
            *index++ = number[place[i]];
    }
    return unique;
}

/* Is a batch of `features` features cut by places? */
static int by_places(const struct block *block, size_t features)
{
    return block->place && (!block->key || block->distincts / 64 <= 2 * features);
}

paramo_err batcher_keys(struct batcher *b, const struct block *block, struct block_keys **keys)
{
    uint64_t *key = NULL;
    uint32_t *place = NULL;
    size_t key_cap = 0, place_cap = 0;
    paramo_err err = batcher_reserve(b, block->features);
    if (err == PARAMO_OK)
        err = grow(&key, &key_cap, block->features + 1, sizeof *key);
    if (err == PARAMO_OK)
        err = grow(&place, &place_cap, block->features + 1, sizeof *place);
    if (err == PARAMO_OK)
        err = block_keys_new(key, unique_keys(b, block->key, block->features, key, place), place,
                             block->features, keys);
    free(key);
    free(place);
    return err;
}

/* The row of the block at which share number `share` of batch i begins. */
static size_t share_at(const struct block *block, size_t i, size_t n, uint32_t share, uint32_t shares)
{
    size_t first = i * block->rows / n, end = (i + 1) * block->rows / n;
    return first + (end - first) * share / shares;
}

paramo_err batcher_cut_share(struct batcher *b, const struct block *block, size_t batch_rows, uint32_t share,
                             uint32_t shares, struct batch_list *list)
{
    size_t whole = batch_rows * shares, n = (block->rows + whole - 1) / whole, most = 0;
    assert(share < shares);
    list->n = list->most_unique = list->most_rows = 0;
    for (size_t i = 0; i < n; i++) {
        size_t features = block->offset[share_at(block, i, n, share + 1, shares)] -
                          block->offset[share_at(block, i, n, share, shares)];
        most = features > most ? features : most;
    }
    paramo_err err = block->key ? batcher_reserve(b, most) : PARAMO_OK;
    if (err == PARAMO_OK && block->place)
        err = places_reserve(b, block->distincts);
    if (err == PARAMO_OK)
        err = grow(&list->batch, &list->batch_cap, n, sizeof *list->batch);
    if (err == PARAMO_OK)
        err = grow(&list->index, &list->index_cap, block->features, sizeof *list->index);
    if (err == PARAMO_OK)
        err = grow(&list->key, &list->key_cap, block->features + n, sizeof *list->key);
    if (err == PARAMO_OK && block->place)
        err = grow(&list->place, &list->place_cap, block->features + n, sizeof *list->place);
    if (err != PARAMO_OK)
        return err;
    size_t used = 0;
    for (size_t i = 0; i < n; i++) {
        size_t first = share_at(block, i, n, share, shares), end = share_at(block, i, n, share + 1, shares);
        size_t from = block->offset[first], features = block->offset[end] - from;
        uint64_t *key = list->key + used;
        uint32_t *index = list->index + (from - block->offset[0]);
        const int placed = by_places(block, features);
        uint32_t *place = placed ? list->place + used : NULL;
        size_t unique = placed ? unique_places(b, block, first, end, key, place, index)
                               : unique_keys(b, block->key + from, features, key, index);
        if (unique == 0 || key[unique - 1] != BATCH_BIAS_KEY) {
            if (placed)
                place[unique] = (uint32_t)block->distincts; /* after the others in the keyset */
            key[unique++] = BATCH_BIAS_KEY;
        }
        used += unique;
        list->batch[i] = (struct batch){.rows = end - first,
                                        .unique = unique,
                                        .key = key,
                                        .keyset = placed ? block->keyset : NULL,
                                        .places = place,
                                        .label = block->label + first,
                                        .weight = block->weight ? block->weight + first : NULL,
                                        .start = block->offset + first,
                                        .index = index,
                                        .value = block->value ? block->value + from : NULL,
                                        .field = block->field ? block->field + from : NULL};
        list->most_unique = unique > list->most_unique ? unique : list->most_unique;
        list->most_rows = end - first > list->most_rows ? end - first : list->most_rows;
    }
    list->n = n;
    return PARAMO_OK;
}

paramo_err batcher_cut(struct batcher *b, const struct block *block, size_t batch_rows,
                       struct batch_list *list)
{
    return batcher_cut_share(b, block, batch_rows, 0, 1, list);
}
