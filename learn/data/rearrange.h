/*
 * Writes rows of files, unchanged, to other files: the first ones, a share of them, or all in another order. Each file
 * that is written begins with the header. Files appear when they are complete (learn/io/output.h). It never knows what
 * a row means. Tests: test/learn/test_raw_rows.c.
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
/* Each row goes to out with probability share, otherwise to rest (NULL: nowhere), by a hash of seed and the row's
 * number. */
PARAMO_MUST_USE paramo_err rearrange_split(const struct rearrange_from *from, double share, uint64_t seed,
                                           const char *out, const char *rest, uint64_t written[2]);
/* All rows, in a random order that depends on seed. Rows that do not fit in `memory` bytes go to random temporary
 * files, each of which is then shuffled in memory. memory is above 0. */
PARAMO_MUST_USE paramo_err rearrange_shuffle(const struct rearrange_from *from, uint64_t memory,
                                             uint64_t seed, const char *out, uint64_t *written);

#endif
