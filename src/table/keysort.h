/*
 * Sorts 64-bit keys ascending, for scans of whole tables: linear time, whatever the order they come in.
 * Tests: test/table/test_keysort.c.
 */
#ifndef TABLE_KEYSORT_H
#define TABLE_KEYSORT_H

#include <stddef.h>
#include <stdint.h>

/* scratch has room for n keys; the sorted keys end in keys. */
void keysort(uint64_t *keys, uint64_t *scratch, size_t n);

#endif
