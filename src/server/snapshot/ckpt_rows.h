/*
 * The payloads of checkpoint blocks: rows of a table with their optimizer state, keys that are gone, senders'
 * records. Rows are saved partition by partition, so that whoever owns the partitions later finds them;
 * taking them back checks everything and changes the table only by what is this shard's. Pure, but for the
 * table. Tests: test/server/test_ckpt_rows.c.
 */
#ifndef SERVER_SNAPSHOT_CKPT_ROWS_H
#define SERVER_SNAPSHOT_CKPT_ROWS_H

#include "cluster/checkpoint/ckpt.h"
#include "server/shard/dedup.h"
#include "table/table.h"

enum { CKPT_BLOCK_BYTES = 1 << 20 /* a block of rows is about so large, or one row. Arbitrary */ };

/* Orders keys by the partition they fall on, and leaves their order within a partition. out has room for n.
 */
MUST_USE paramo_err ckpt_by_partition(const struct ring_placement *placement, const uint64_t *keys, size_t n,
                                      uint64_t *out);
/* The next block of rows from keys[0 .. n) (as ckpt_by_partition leaves them; all have rows): as many as fill
 * a block, *took of them. The payload goes into the empty writer payload. */
MUST_USE paramo_err ckpt_rows_encode(const struct table *t, uint32_t table,
                                     const struct ring_placement *placement, const uint64_t *keys, size_t n,
                                     struct writer *payload, struct ckpt_block *block, size_t *took);
/* A block of rows that were copied before: keys in any order, without repeats; row i has row_bytes at
 * rows + i * row_bytes, or, where lens is not NULL, lens[i] values of row_bytes each, one after the other. */
MUST_USE paramo_err ckpt_rows_pack(uint32_t table, const struct ring_placement *placement,
                                   const uint64_t *keys, const uint32_t *lens, const void *rows, size_t n,
                                   size_t row_bytes, struct writer *payload, struct ckpt_block *block);
/* The same for keys that were removed. */
MUST_USE paramo_err ckpt_erased_encode(uint32_t table, const struct ring_placement *placement,
                                       const uint64_t *keys, size_t n, struct writer *payload,
                                       struct ckpt_block *block, size_t *took);
/* Does to the table what a block of ROWS, ERASED or CLEARED says, as far as its partitions are in mine (by
 * partition; NULL: all are). A dense table must hold its rows already (table_dense_own), and is never
 * CLEARED: its rows are there, so they are saved. CORRUPT: the payload is not what it should be, and nothing
 * was done. */
MUST_USE paramo_err ckpt_rows_apply(struct table *t, const struct ring_placement *placement, const bool *mine,
                                    const struct ckpt_block *block);

/* One sender's record. */
struct ckpt_window {
    uint32_t node, app, customer;
    uint64_t incarnation;
    struct dedup dedup;
};
void ckpt_windows_encode(const struct ckpt_window *windows, size_t n, struct writer *payload);
/* *clocks is from malloc, for the caller to free. */
MUST_USE paramo_err ckpt_windows_decode(const struct ckpt_block *block, struct ckpt_window **windows,
                                        size_t *n);

/* One number of a sender that is done on these partitions (one bit each), whatever the record says: parts.h.
 */
struct ckpt_note {
    uint32_t node, app, customer;
    uint64_t incarnation, number;
    uint64_t partitions[RING_PARTITIONS / 64];
};
enum { CKPT_NOTES_MAX = 1024 /* in a block. Arbitrary */ };
void ckpt_notes_encode(const struct ckpt_note *notes, size_t n, struct writer *payload);
/* *notes is from malloc, for the caller to free. */
MUST_USE paramo_err ckpt_notes_decode(const struct ckpt_block *block, struct ckpt_note **notes, size_t *n);

#endif
