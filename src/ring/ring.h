/*
 * The ring: the 64-bit position space in RING_PARTITIONS equal partitions, which shard owns each, and how
 * sorted keys fall on them. Pure functions: no state, no I/O. A partition is the only unit of ownership. A
 * table's placement maps keys to positions (docs/ARCHITECTURE.md). This module never knows replicas
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

/* Assigns all partitions to n shards by weight (all 1 if weights is NULL). Each shard's share is within
 * one partition of its due share, in long contiguous runs. With `before`, as few partitions move as the
 * shares allow. Shards with weight 0 own nothing. Without `before` shards own the ring in the order of
 * their numbers (so RANGE tables are contiguous by rank). */
MUST_USE paramo_err ring_assign(const uint32_t *weights, size_t n, const struct ring *before,
                                struct ring *ring);

/* A run of contiguous keys that one shard owns. The runs of one shard make a slice of the request. */
struct ring_run {
    uint32_t shard;
    uint32_t pad;
    size_t first, count; /* keys[first .. first+count-1] */
};
/* For placements that keep the order of keys: writes the maximal runs of consecutive keys with one owner,
 * in key order, to runs (room for cap). *count is their number (TOO_LARGE if it is more than cap). It
 * searches for partition boundaries, so that the cost depends on the runs, not on the keys. */
MUST_USE paramo_err ring_runs(const struct ring *ring, const struct ring_placement *placement,
                              const uint64_t *keys, size_t n, struct ring_run *runs, size_t cap,
                              size_t *count);
/* Like ring_runs(), for the n keys from `begin` on. */
MUST_USE paramo_err ring_range_runs(const struct ring *ring, const struct ring_placement *placement,
                                    uint64_t begin, size_t n, struct ring_run *runs, size_t cap,
                                    size_t *count);
/* The first row (DENSE) whose position is in the partition a: its rows are [ring_first_row(a),
 * ring_first_row(a + 1)). */
uint64_t ring_first_row(const struct ring_placement *placement, unsigned partition);

#endif
