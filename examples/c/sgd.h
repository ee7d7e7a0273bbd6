/* What both SGD examples share: logistic regression on data that every process makes for itself. */
#ifndef SGD_H
#define SGD_H

#include <math.h>
#include <string.h>

#include "example.h"

enum { ROWS = 6000, DIM = 24, EPOCHS = 30 };
#define STEP 2.0 /* learning rate, for the mean gradient */

/* The same rows everywhere: column j of row i is +-1, the label what a hidden model says, one time in ten
 * not. */
static inline double row(unsigned i, double x[DIM])
{
    uint64_t bits = (i + 1) * UINT64_C(0x9e3779b97f4a7c15);
    double score = 0;
    for (unsigned j = 0; j < DIM; j++) {
        bits ^= bits >> 29;
        bits *= UINT64_C(0xbf58476d1ce4e5b9);
        bits ^= bits >> 32;
        x[j] = bits & 1 ? 1 : -1;
        score += x[j] * ((double)j - DIM / 2.0 + 0.5);
    }
    return (score > 0) != (bits % 10 == 7) ? 1 : -1;
}

/* Adds the gradient of the logistic loss over rows [first, last) to g; returns the loss. */
static inline double gradient(const double w[DIM], unsigned first, unsigned last, double g[DIM])
{
    double loss = 0, x[DIM];
    for (unsigned i = first; i < last; i++) {
        double label = row(i, x), margin = 0;
        for (unsigned j = 0; j < DIM; j++)
            margin += w[j] * x[j];
        margin *= label;
        loss += log1p(exp(-margin));
        double slope = -label / (1 + exp(margin));
        for (unsigned j = 0; j < DIM && g; j++)
            g[j] += slope * x[j];
    }
    return loss;
}

/* The rows of a worker: ranks have equal parts, one after the other. */
static inline unsigned part(unsigned rank, unsigned workers)
{
    return (unsigned)((uint64_t)ROWS * rank / workers);
}

/* All keys, with their values. */
static inline paramo_kv whole(const uint64_t keys[DIM], double vals[DIM])
{
    return pairs(keys, DIM, vals, DIM);
}

static inline void all_keys(uint64_t keys[DIM])
{
    for (unsigned j = 0; j < DIM; j++)
        keys[j] = j * (UINT64_MAX / DIM); /* over the whole range, so that every server has some */
}

#endif
