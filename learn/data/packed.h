/*
 * The arrays of a block as bytes in a file, for the caches: its keys, with 32 bits each if all of them fit (most ids
 * and hashed keys do), then its other arrays as they lie in memory after the keys (block.h). It never knows the file's
 * owner, or the part of the block. Tests: test/learn/test_reader.c, test_disk_cache.c.
 */
#ifndef LEARN_DATA_PACKED_H
#define LEARN_DATA_PACKED_H

#include "learn/data/block.h"

struct packed {
    struct block_shape shape;
    int narrow; /* keys have 32 bits */
};

struct packed packed_of(const struct block *block);
size_t packed_bytes(const struct packed *packed);
/* Writes packed_bytes() at offset. *sum (or NULL): XXH3 of them. */
PARAMO_MUST_USE paramo_err packed_write(int fd, uint64_t offset, const struct packed *packed,
                                        const struct block *block, uint64_t *sum);
/* Allocates the arrays of block and reads them; the rest of block is left alone. On an error it has no arrays. *sum as
 * above; the caller checks it. */
PARAMO_MUST_USE paramo_err packed_read(int fd, uint64_t offset, const struct packed *packed,
                                       struct block *block, uint64_t *sum);

#endif
