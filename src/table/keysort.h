/*
 * Sorts 64-bit keys in ascending order, for scans of whole tables: in linear time for any input order, and
 * in steps of any size. It never knows tables. Tests: test/table/test_keysort.c.
 */
#ifndef TABLE_KEYSORT_H
#define TABLE_KEYSORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEYSORT_DIGITS = 8, KEYSORT_VALUES = 256 };

struct keysort {
    uint64_t *from, *to; /* sorted so far; room for the next pass */
    size_t n, at;        /* of the pass */
    unsigned pass;       /* 0 counts; 1 .. KEYSORT_DIGITS sort by a byte each, the lowest first */
    size_t counts[KEYSORT_DIGITS][KEYSORT_VALUES];
};

/* scratch has room for n keys. */
void keysort_start(struct keysort *sort, uint64_t *keys, uint64_t *scratch, size_t n);
/* Handles about that many keys of the current pass. One pass counts, and at most 8 sort. True: the sorted
 * keys are in sort->from, and sort->to is unused. These are the two arrays of keysort_start, in either
 * order. */
bool keysort_step(struct keysort *sort, size_t keys);
/* Sorts all at once. The sorted keys are in keys. */
void keysort(uint64_t *keys, uint64_t *scratch, size_t n);

#endif
