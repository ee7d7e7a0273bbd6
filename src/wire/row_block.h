/*
 * Rows of a table, or removed keys, as blocks of checkpoints and ROWS of migrations have them:
 *
 *     u32 rows, u32 bytes of each | keys, u64, ascending | [lens, u32, in values; padded to 8] | values
 *
 * Bytes of each are 0 if lens follow, and for removed keys, which have no values. It never knows tables: what
 * the values mean is theirs. Tests: test/server/test_ckpt_rows.c, fuzz/fuzz_ckpt.c.
 */
#ifndef WIRE_ROW_BLOCK_H
#define WIRE_ROW_BLOCK_H

#include "base/cursor.h"

void row_block_head_encode(size_t n, size_t row_bytes, const uint64_t *keys, struct writer *w);
void row_block_lens_encode(const uint32_t *lens, size_t n, struct writer *w);
/* The values come last: room for all of them at the end of a growing writer; NULL without memory. */
void *row_block_values(struct writer *w, size_t bytes);

struct row_block {
    uint32_t count, row_bytes;
    uint64_t *keys;     /* from malloc */
    struct reader rest; /* [lens], values */
};
/* CORRUPT: it is no such block. Free keys even then. */
MUST_USE paramo_err row_block_decode(const void *payload, size_t bytes, struct row_block *m);
/* Reads as many lens as there are rows; the values follow. lens has room for one more. */
void row_block_lens_decode(struct row_block *m, uint32_t *lens);

#endif
