/*
 * Which rows are held out: learned by no worker, and used to measure the model after each epoch.
 *
 * A row is held out by a hash of its place: its file's number, its part of the file, and its number within the part.
 * Every process that reads the same files with the same part size holds out the same rows, for any number of
 * workers, and any of them may read a part. Compression changes nothing, since parts are cut from the text. Pure
 * arithmetic: it never knows of files or models. Tests: test/learn/test_holdout.c.
 */
#ifndef LEARN_DATA_HOLDOUT_H
#define LEARN_DATA_HOLDOUT_H

#include <stddef.h>
#include <stdint.h>

#define HOLDOUT_PERCENT_MAX 50
#define HOLDOUT_FOLDS_MAX   10

enum holdout_side { HOLDOUT_LEARN, HOLDOUT_MEASURE };

/* splitmix64's finalizer. */
static inline uint64_t holdout_mix(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Writes the side of each row of a part: about `percent` in a hundred are HOLDOUT_MEASURE. */
static inline void holdout_sides(uint32_t stream, uint64_t index, unsigned percent, size_t rows,
                                 uint8_t *side)
{
    const uint64_t part = holdout_mix(holdout_mix(stream) + index), limit = UINT64_MAX / 100 * percent;
    for (size_t r = 0; r < rows; r++)
        side[r] = holdout_mix(part + r) < limit ? HOLDOUT_MEASURE : HOLDOUT_LEARN;
}

/* Like holdout_sides(), for cross-validation: rows are dealt to `folds` folds, and those of fold number `fold` are
 * HOLDOUT_MEASURE. Each fold gets one of every `folds` consecutive rows, so folds are equally large, and rows that are
 * sorted by their label are dealt evenly. */
static inline void holdout_fold(uint32_t stream, uint64_t index, unsigned folds, unsigned fold, size_t rows,
                                uint8_t *side)
{
    const uint64_t part = holdout_mix(holdout_mix(stream) + index);
    uint8_t order[HOLDOUT_FOLDS_MAX] = {0};
    for (size_t r = 0; r < rows; r++) {
        const size_t at = r % folds;
        for (unsigned i = 0; at == 0 && i < folds; i++) { /* a new order: Fisher and Yates, from the inside */
            const size_t other = (size_t)(holdout_mix(part + r + i) % (i + 1));
            order[i] = order[other];
            order[other] = (uint8_t)i;
        }
        side[r] = order[at] == fold ? HOLDOUT_MEASURE : HOLDOUT_LEARN;
    }
}

#endif
