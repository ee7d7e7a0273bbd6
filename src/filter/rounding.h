/*
 * Rows of values that a filter rounds, in place. It must never know messages. Tests: test/filter/test_rounding.c.
 */
#ifndef FILTER_ROUNDING_H
#define FILTER_ROUNDING_H

#include "base/hash.h"
#include "filter/filter.h"

/* Rows of a message: vals has those of all keys, one after the other. */
struct filter_rows {
    paramo_dtype dtype; /* F32 or F64 */
    void *vals;
    size_t n; /* values */
    /* The values that decide how much is lost: of the whole push, of which these may be some; of an answer, these. So a
     * push that is cut again after a change of owners is rounded as before. */
    const void *whole;
    size_t whole_n;
    const uint64_t *keys;
    uint32_t count;
    const uint32_t *lens; /* values of each key; NULL: row_values */
    uint32_t row_values;
    uint32_t column; /* the place of each row's first value in its row */
    uint64_t seed;   /* of the request: the same for each of its transmissions */
};

static inline bool filter_rows_rounds(paramo_dtype dtype)
{
    return dtype == PARAMO_F32 || dtype == PARAMO_F64;
}

/* A seed for each row, from which filter_rows_draw draws for each of its values. */
static inline uint64_t filter_rows_seed(const struct filter_rows *r, uint32_t row)
{
    return mix64(r->seed + r->keys[row] * UINT64_C(0x9e3779b97f4a7c15));
}

/* In [0, 1), in steps of 2^-53. */
static inline double filter_rows_draw(uint64_t row_seed, uint64_t column)
{
    return (double)(mix64(row_seed + column) >> 11) * 0x1p-53;
}

#endif
