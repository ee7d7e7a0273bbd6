/*
 * What a worker holds back of one table: a row of values for each key, which is not sent yet (error feedback: Seide et
 * al., "1-Bit Stochastic Gradient Descent", Interspeech 2014; Stich et al., "Sparsified SGD with Memory", NeurIPS'18).
 *
 *     blocks   64 KiB each: rows one after the other, each with its key and its stamp
 *     maps     from keys to rows, split by the key's hash, so that none takes long to grow
 *
 * Each row has the stamp at which it was put. So a flush finds the rows that were there when it began, although rows
 * are put and taken while it runs (residuals_old). It must never know why a row is held back. One owner.
 * Tests: test/filter/test_residuals.c.
 */
#ifndef FILTER_RESIDUALS_H
#define FILTER_RESIDUALS_H

#include "base/map.h"
#include "paramo/types.h"

enum { RESIDUALS_MAPS = 64, RESIDUALS_BLOCK = 64 << 10 };

struct residuals {
    struct map maps[RESIDUALS_MAPS];
    uint8_t **blocks;
    size_t blocks_count, blocks_room;
    size_t count;                 /* rows */
    size_t row_bytes, block_rows; /* bytes of a row's values; rows of a block */
    uint64_t stamp;               /* of the next row */
};

void residuals_init(struct residuals *r, size_t row_bytes);
void residuals_fini(struct residuals *r);
/* The key's values that are held back; NULL: none. Valid until the next put or take. */
void *residuals_get(const struct residuals *r, uint64_t key);
/* Holds back these values, in place of those that were there. MEMORY: nothing has changed; a key that is there
 * already needs no memory. */
MUST_USE paramo_err residuals_put(struct residuals *r, uint64_t key, const void *values);
/* Removes the key, if it is there. */
void residuals_take(struct residuals *r, uint64_t key);
/* Continues from *cursor (first: SIZE_MAX) towards 0 over at most `most` rows, and writes the keys of those that were
 * put before `stamp`; takes none out. Returns how many. *cursor 0: these were the last. Rows may be put and taken
 * between two calls: each old one that is left is found. */
size_t residuals_old(const struct residuals *r, uint64_t stamp, size_t *cursor, uint64_t *keys, size_t most);
/* About how many bytes a row takes, and all rows take. */
size_t residuals_row_bytes(const struct residuals *r);
size_t residuals_bytes(const struct residuals *r);

#endif
