/*
 * The linear model over one batch: margins, and the gradient of the summed loss. With the objective `logistic` it is
 * logistic regression.
 *
 * w and g have one value per unique key of the batch, in its order; the last is the bias. Sums run in row
 * order and, within a row, in feature order, so every build gives the same bits. Pure arithmetic: it never
 * knows of tables, servers or files. Tests: test/learn/test_lr.c.
 */
#ifndef LEARN_MODEL_MODEL_LR_H
#define LEARN_MODEL_MODEL_LR_H

#include "learn/data/batch.h"

/* margin[r] = bias + sum of w[i] x[i] over the row's features. */
void lr_margins(const struct batch *batch, const float *w, float *margin);
/* g[i] = sum over rows of residual[r] x[i]. */
void lr_gradient(const struct batch *batch, const float *residual, float *g);

#endif
