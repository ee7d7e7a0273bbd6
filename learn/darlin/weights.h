/*
 * The weights of a DARLIN job as a whole: where they begin, how their keys are cut into blocks, and the model that they
 * become. Errors as the functions of paramo.h that are used. Called by the customer's thread. Tests:
 * test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_WEIGHTS_H
#define LEARN_DARLIN_WEIGHTS_H

#include "learn/darlin/solver.h"
#include "learn/train/job.h"

/* Puts the weights of --model-in, if there is one, into the table. */
PARAMO_MUST_USE paramo_err weights_begin(struct customer *c, paramo_table *weights);

/* Cuts the keys into blocks with about the same number of entries, each a run of ascending keys; the bias is a block
 * of its own. A row then has few keys of a block, and a key that many rows have is alone. counts: the table of sums,
 * in which the first value of a row is how many entries its key has. features: of a row, on average. *first: the
 * least key of each block, which the caller frees; *keys: of all of them. */
PARAMO_MUST_USE paramo_err weights_cut(paramo_worker *worker, paramo_table *counts,
                                       const struct darlin_options *options, double features,
                                       uint64_t **first, uint32_t *blocks, double *keys);

/* Fills the model's table with the weights that are not 0. */
PARAMO_MUST_USE paramo_err weights_finish(struct customer *c, paramo_table *weights);

/* Adds the scores of this worker's held-out rows to the value `key`. guess: the margin of the best guess for all
 * rows. */
PARAMO_MUST_USE paramo_err weights_measure(struct customer *c, const struct solver *solver, double guess,
                                           const char *key);
/* The leader: all workers have added their scores. Measures on --valid, judges the model, and saves it. */
PARAMO_MUST_USE paramo_err weights_measured(struct customer *c, double guess, const char *key);

#endif
