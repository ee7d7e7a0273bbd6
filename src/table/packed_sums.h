/*
 * Sums of aggregate.h as they travel. Most of their 16 bytes are zeros at the lower end, and copies of the sign at the
 * upper one. One byte says which bytes follow it, lowest first; the others are left out:
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
/* How many bytes n > 0 packed sums take. 0: they are not valid, or longer than `bytes`. */
size_t packed_sums_bytes(const uint8_t *at, size_t bytes, size_t n);
/* Unpacks n sums that packed_sums_bytes has found valid. Returns how many bytes they took. */
size_t packed_sums_get(const uint8_t *at, size_t n, struct aggregate_sum *sums);

#endif
