/*
 * Rows of files to other files, as they stand: the first ones, a share of them, or all in another order. A header is
 * the first line of each file that is written. Files appear when they are whole (learn/io/output.h). Tests:
 * test/learn/test_raw_rows.c.
 */
#ifndef LEARN_DATA_REARRANGE_H
#define LEARN_DATA_REARRANGE_H

#include "learn/data/formats.h"
#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

struct rearrange_from {
    enum parse_format format;
    const char *const *paths; /* as in reader_open */
    size_t n;
};

/* The first `rows` rows. */
PARAMO_MUST_USE paramo_err rearrange_head(const struct rearrange_from *from, uint64_t rows, const char *out,
                                          uint64_t *written);
/* Each row goes to out with probability share, else to rest (NULL: nowhere), by a hash of seed and the row's number. */
PARAMO_MUST_USE paramo_err rearrange_split(const struct rearrange_from *from, double share, uint64_t seed,
                                           const char *out, const char *rest, uint64_t written[2]);
/* All rows, each order equally likely, by seed. Rows that do not fit in `memory` bytes go to temporary files: at random
 * to one of many, each of which is shuffled in memory. */
PARAMO_MUST_USE paramo_err rearrange_shuffle(const struct rearrange_from *from, uint64_t memory,
                                             uint64_t seed, const char *out, uint64_t *written);

#endif
