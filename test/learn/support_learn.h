/* Small random blocks for the learn tests, drawn from a seed. */
#ifndef TEST_LEARN_SUPPORT_LEARN_H
#define TEST_LEARN_SUPPORT_LEARN_H

#include "learn/block.h"

/* The next number of a small generator (splitmix64). */
uint64_t draw(uint64_t *state);
/* Uniform in [-1, 1). */
float draw_float(uint64_t *state);

/* rows of 0..most features, with keys below `keys` (repeats happen) times `stride`; values other than 1 if
 * wanted. */
struct block random_block(uint64_t seed, size_t rows, size_t most, uint64_t keys, uint64_t stride,
                          int values);

#endif
