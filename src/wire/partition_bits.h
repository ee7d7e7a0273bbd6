/*
 * A set of partitions on the wire: one bit for each, the lowest first, as 64 u64. Chains, migrations and
 * notes carry such sets. It never knows what a partition is (ring/partition_set.h). Tests:
 * test/wire/test_sender_records.c.
 */
#ifndef WIRE_PARTITION_BITS_H
#define WIRE_PARTITION_BITS_H

#include "base/cursor.h"

enum {
    PARTITION_BITS = 4096, /* RING_PARTITIONS */
    PARTITION_BITS_WORDS = PARTITION_BITS / 64,
    PARTITION_BITS_BYTES = PARTITION_BITS / 8
};

static inline void partition_bits_encode(const uint64_t partitions[PARTITION_BITS_WORDS], struct writer *w)
{
    for (unsigned i = 0; i < PARTITION_BITS_WORDS; i++)
        write_u64(w, partitions[i]);
}

static inline void partition_bits_decode(struct reader *r, uint64_t partitions[PARTITION_BITS_WORDS])
{
    for (unsigned i = 0; i < PARTITION_BITS_WORDS; i++)
        partitions[i] = read_u64(r);
}

#endif
