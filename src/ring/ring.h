/*
 * The ring: the 64-bit position space in RING_PARTITIONS equal partitions, which shard owns each, and how
 * sorted keys fall on them. Pure functions: no state, no I/O. A partition is the only unit of ownership.
 * Positions come from keys by the table's placement (docs/ARCHITECTURE.md). Never knows replicas
 * (ring/place.h). Tests: test/ring/test_ring.c.
 */
#ifndef RING_RING_H
#define RING_RING_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "paramo/types.h"

enum { RING_PARTITIONS = 4096, RING_PARTITION_SHIFT = 52, RING_NONE = 0xffff };

/* owner[a]: index of the shard (in view order) that owns partition a, or RING_NONE. */
struct ring {
    uint16_t owner[RING_PARTITIONS];
};

/* How one table's keys become positions. */
struct ring_placement {
    paramo_placement kind; /* never AUTO */
    uint64_t rows;         /* DENSE */
};

/* UNIFORM, RANGE: the key; DENSE: key * 2^64 / rows, so that partitions hold contiguous equal runs of rows;
 * MIXED: mix64(key), a bijection. All but MIXED keep the order of keys. */
uint64_t ring_position(const struct ring_placement *placement, uint64_t key);
static inline unsigned ring_partition(uint64_t position)
{
    return (unsigned)(position >> RING_PARTITION_SHIFT);
}

/* Assigns all partitions to n shards by weight (all 1 when weights is NULL): each shard's share within one
 * partition of its due, in long contiguous runs; with `before`, as few partitions change hands as the shares
 * allow. Shards with weight 0 own nothing. Shard i of the result owns about i-th part of the ring in order
 * when before is NULL (so RANGE tables are contiguous by rank). */
MUST_USE paramo_err ring_assign(const uint32_t *weights, size_t n, const struct ring *before,
                                struct ring *ring);

/* A slice: the part of a request's keys that one shard owns, as runs of contiguous keys. */
struct ring_run {
    uint32_t shard;
    uint32_t pad;
    size_t first, count; /* keys[first .. first+count-1] */
};
/* Placements that keep order: writes the maximal runs of consecutive keys with one owner, in key order, to
 * runs (cap of them); *count is how many there are (TOO_LARGE if more than cap). Binary search by partition
 * boundaries: cost by runs, not by keys. */
MUST_USE paramo_err ring_runs(const struct ring *ring, const struct ring_placement *placement,
                              const uint64_t *keys, size_t n, struct ring_run *runs, size_t cap,
                              size_t *count);
/* First row (DENSE) whose position is in partition a: rows of partition a are [ring_first_row(a),
 * ring_first_row(a + 1)).
 */
uint64_t ring_first_row(const struct ring_placement *placement, unsigned partition);

#endif
