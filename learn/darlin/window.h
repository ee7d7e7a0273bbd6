/*
 * Gradients of a part's columns, with bounds of the curvature that hold for all steps in progress together.
 *
 * A block's gradient is computed without the steps of the `delay` blocks before it. All these steps and its own may
 * move a row's margin. For row r and the blocks in progress let
 *     width(r) = sum of |x|,    way(r) = sum of |x| reach    over the keys that r has in these blocks.
 * The diagonal matrix with sum over r of D(r) |x| width(r) for each key is at least X' D X, with D(r) >= 0, because
 * their difference is diagonally dominant. So
 *     u = sum over rows of curvature(row, way(r)) |x| width(r)
 * bounds the curvature along the block's step and those before it together (the terms L_cov and L_var of Li, Andersen,
 * Smola, 2013). Without delay, and with one key of the block in each row, u is the bound for that key alone.
 *
 * A reach of 0 is infinite. A key whose reach has its sign bit set is left out. One thread at a time. It never knows of
 * penalties or servers. Tests: test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_WINDOW_H
#define LEARN_DARLIN_WINDOW_H

#include "learn/darlin/design.h"

struct window {
    size_t rows, blocks; /* delay + 1 */
    float *width, *way;  /* [blocks][rows] */
    double *bound;       /* [rows]: scratch */
};

PARAMO_MUST_USE paramo_err window_new(size_t rows, unsigned delay, struct window *window);
void window_free(struct window *window);
/* No step is in progress. */
void window_clear(struct window *window);
/* Block number `slot` of a pass replaces the block delay + 1 slots before it. Adds the gradient of each of its columns
 * c, from .. end - 1, to g[c - from], and the bound to u[c - from]. reach[c - from]: that of its key. */
void window_gradient(struct window *window, struct design *design, size_t slot, size_t from, size_t end,
                     const double *reach, double *g, double *u);

#endif
