/*
 * The initial parameters of a row: a function of (seed, key, column) only, so that a row starts the same on
 * every server, in every order and after every restart. Counter-based: column c of key k is draw c+1 of the
 * SplitMix64 stream (Steele et al., OOPSLA'14) that starts at a mix of seed and k. The normal distribution
 * uses its inverse, algorithm AS 241 (Wichura, Applied Statistics 37(3), 1988), and a logarithm of our own.
 * Both use only the operations +, -, *, / and sqrt of IEEE doubles, so that every compiler and machine gives
 * the same bits. Users rely on the same numbers from the same seed: never change them. It never knows stores. Tests:
 * test/table/test_rowinit.c.
 */
#ifndef TABLE_ROWINIT_H
#define TABLE_ROWINIT_H

#include <stdbool.h>
#include <stdint.h>

#include "paramo/types.h"

struct rowinit {
    paramo_init_kind kind;
    paramo_dtype dtype;
    float a, b;
    uint64_t seed;
};

void rowinit_setup(struct rowinit *r, const paramo_table_options *o);
/* Does a row depend on its key and column? */
bool rowinit_varies(const struct rowinit *r);
/* Writes columns col .. col+ncols-1 of key's row as the table's dtype. */
void rowinit_fill(const struct rowinit *r, uint64_t key, uint32_t col, uint32_t ncols, void *out);

/* The draw of a column: 64 uniform bits. */
uint64_t rowinit_bits(uint64_t seed, uint64_t key, uint32_t col);
/* The p-quantile of the standard normal distribution, 0 < p < 1; relative error about 1e-16. */
double rowinit_normal_quantile(double p);

#endif
