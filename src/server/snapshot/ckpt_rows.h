/*
 * Blocks of checkpoints with rows of a table and their optimizer state, or with removed keys. wire/ has their bytes
 * (row_block.h, sender_records.h). Rows are saved partition by partition, so that the later owner of the partitions
 * finds them. Decoding checks everything, and changes the table only on the caller's partitions. Pure, but for the
 * table. It must never know files, or when a checkpoint is taken. Tests: test/server/test_ckpt_rows.c.
 */
#ifndef SERVER_SNAPSHOT_CKPT_ROWS_H
#define SERVER_SNAPSHOT_CKPT_ROWS_H

#include "cluster/checkpoint/ckpt.h"
#include "ring/partition_set.h"
#include "table/table.h"

enum { CKPT_BLOCK_BYTES = 1 << 20 /* the size of a block of rows, unless one row is larger. Arbitrary */ };

/* Sorts keys by partition, and keeps their order within a partition. out has room for n. */
MUST_USE paramo_err ckpt_by_partition(const struct ring_placement *placement, const uint64_t *keys, size_t n,
                                      uint64_t *out);
/* Encodes the first *took rows of keys[0 .. n) into the empty writer payload: as many as fill a block. The
 * keys are sorted by ckpt_by_partition, and each has a row. */
MUST_USE paramo_err ckpt_rows_encode(const struct table *t, uint32_t table,
                                     const struct ring_placement *placement, const uint64_t *keys, size_t n,
                                     struct writer *payload, struct ckpt_block *block, size_t *took);
/* Encodes rows that were copied before. The keys have any order and no repeats. Row i has row_bytes at rows +
 * i * row_bytes; if lens is not NULL, it has lens[i] values of row_bytes each, packed. */
MUST_USE paramo_err ckpt_rows_pack(uint32_t table, const struct ring_placement *placement,
                                   const uint64_t *keys, const uint32_t *lens, const void *rows, size_t n,
                                   size_t row_bytes, struct writer *payload, struct ckpt_block *block);
/* Like ckpt_rows_encode(), for keys that were removed. */
MUST_USE paramo_err ckpt_erased_encode(uint32_t table, const struct ring_placement *placement,
                                       const uint64_t *keys, size_t n, struct writer *payload,
                                       struct ckpt_block *block, size_t *took);
/* Applies a block of ROWS or ERASED to the table, on the partitions that are in mine (by partition; NULL: all).
 * A dense table must hold its rows already (table_dense_own). CORRUPT: the payload is wrong, and nothing was
 * changed. */
MUST_USE paramo_err ckpt_rows_apply(struct table *t, const struct ring_placement *placement, const bool *mine,
                                    const struct ckpt_block *block);
/* Adds the partitions of a block CLEARED that are in mine (NULL: all): the caller removes their rows, in steps
 * (server/shard/clearing.h). A dense table is never CLEARED, because all its rows are saved. CORRUPT: as above. */
MUST_USE paramo_err ckpt_cleared(const struct table *t, const bool *mine, const struct ckpt_block *block,
                                 uint64_t partitions[PARTITION_WORDS]);

#endif
