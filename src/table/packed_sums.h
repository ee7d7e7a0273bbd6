/*
 * Sums of aggregate.h as they travel: most of their 16 bytes are zeros at the lower end, and copies of the sign at the
 * upper one. One byte says how many were left out; the others follow, lowest first:
 *
 *     offset << 4 | count     `count` bytes from byte `offset` on; above them the sign of the last; below them zeros
 *     0                       the sum is 0
 *     0xf0                    all 16 bytes
 *
 * Pure. It never knows rows or keys. Tests: test/table/test_packed_sums.c.
 */
#ifndef TABLE_PACKED_SUMS_H
#define TABLE_PACKED_SUMS_H

#include <stdbool.h>

#include "table/aggregate.h"

enum { PACKED_SUM_MAX = 17 };

/* Returns the bytes written, at most PACKED_SUM_MAX for each of n sums. */
size_t packed_sums_put(const struct aggregate_sum *sums, size_t n, uint8_t *out);
/* The bytes of n packed sums; 0 if they are no such sums, or more than `bytes`. n is not 0. */
size_t packed_sums_bytes(const uint8_t *at, size_t bytes, size_t n);
/* Unpacks n sums for which packed_sums_bytes is not 0. Returns their bytes. */
size_t packed_sums_get(const uint8_t *at, size_t n, struct aggregate_sum *sums);

#endif
