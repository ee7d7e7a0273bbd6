/*
 * A set of partitions, one bit each, in words of 64. This module never knows what the set is for. Tests:
 * test/ring/test_partition_set.c.
 */
#ifndef RING_PARTITION_SET_H
#define RING_PARTITION_SET_H

#include <stdbool.h>
#include <stdint.h>

#include "ring/ring.h"

enum { PARTITION_WORDS = RING_PARTITIONS / 64 };

static inline bool partition_set_has(const uint64_t partitions[PARTITION_WORDS], unsigned partition)
{
    return partitions[partition / 64] >> (partition % 64) & 1;
}
static inline void partition_set_add(uint64_t partitions[PARTITION_WORDS], unsigned partition)
{
    partitions[partition / 64] |= UINT64_C(1) << (partition % 64);
}
static inline void partition_set_remove(uint64_t partitions[PARTITION_WORDS], unsigned partition)
{
    partitions[partition / 64] &= ~(UINT64_C(1) << partition % 64);
}
/* Adds the partitions [first, end). */
static inline void partition_set_add_run(uint64_t partitions[PARTITION_WORDS], unsigned first, unsigned end)
{
    for (unsigned word = first / 64; first < end; first = 64 * ++word) {
        uint64_t bits = UINT64_MAX << (first % 64);
        partitions[word] |= end < 64 * word + 64 ? bits & ~(UINT64_MAX << (end % 64)) : bits;
    }
}
/* The first partition in the set, from `from` (at most RING_PARTITIONS) on. RING_PARTITIONS: none. */
static inline unsigned partition_set_next(const uint64_t partitions[PARTITION_WORDS], unsigned from)
{
    unsigned word = from / 64;
    uint64_t bits = word < PARTITION_WORDS ? partitions[word] & UINT64_MAX << (from % 64) : 0;
    while (!bits && ++word < PARTITION_WORDS)
        bits = partitions[word];
    return bits ? 64 * word + (unsigned)__builtin_ctzll(bits) : RING_PARTITIONS;
}
/* The first partition that is not in the set, from `from` on. RING_PARTITIONS: none. */
static inline unsigned partition_set_next_absent(const uint64_t partitions[PARTITION_WORDS], unsigned from)
{
    unsigned word = from / 64;
    uint64_t bits = word < PARTITION_WORDS ? ~partitions[word] & UINT64_MAX << (from % 64) : 0;
    while (!bits && ++word < PARTITION_WORDS)
        bits = ~partitions[word];
    return bits ? 64 * word + (unsigned)__builtin_ctzll(bits) : RING_PARTITIONS;
}
/* for (partition_set_each(partition, partitions)): one partition of the set after the other, in time
 * proportional to the size of the set and PARTITION_WORDS. */
#define partition_set_each(partition, partitions)                                                            \
    unsigned partition = partition_set_next(partitions, 0);                                                  \
    partition < RING_PARTITIONS;                                                                             \
    partition = partition_set_next(partitions, partition + 1)

/* Adds to begins the first partition of each run of partitions that are all in the set, or all not in it. */
static inline void partition_set_run_starts(const uint64_t partitions[PARTITION_WORDS],
                                            uint64_t begins[PARTITION_WORDS])
{
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        begins[i] |=
            partitions[i] ^ (partitions[i] << 1 | (i ? partitions[i - 1] >> 63 : ~partitions[0] & 1));
}
/* for (partition_set_runs(first, end, begins)): one run after the other. `begins` has the first partition
 * of each run, and partition 0. */
#define partition_set_runs(first, end, begins)                                                               \
    unsigned first = 0, end = partition_set_next(begins, 1);                                                 \
    first < RING_PARTITIONS;                                                                                 \
    first = end, end = partition_set_next(begins, end + 1)

#endif
