/*
 * The weights of a DARLIN job as a whole: where they begin, how their keys are cut into blocks, and the model that they
 * become. Errors are those of the functions of paramo.h that it calls. Called by the customer's thread. It never knows
 * how weights are learned. Tests: test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_WEIGHTS_H
#define LEARN_DARLIN_WEIGHTS_H

#include "learn/darlin/solver.h"
#include "learn/train/job.h"

/* Puts the weights of --model-in, if there is one, into the table. */
PARAMO_MUST_USE paramo_err weights_begin(struct customer *c, paramo_table *weights);

/* Cuts the keys into blocks with about the same number of entries, each a run of ascending keys; the bias is a block
 * of its own. A row then has few keys of a block, and a key that many rows have is alone. counts: the table of sums;
 * the first value of a row is the number of entries of its key. features: the mean number in a row. *first: the least
 * key of each block, which the caller frees. *keys: the number of keys. */
PARAMO_MUST_USE paramo_err weights_cut(paramo_worker *worker, paramo_table *counts,
                                       const struct darlin_options *options, double features,
                                       uint64_t **first, uint32_t *blocks, double *keys);

/* Fills the model's table with the weights that are not 0. */
PARAMO_MUST_USE paramo_err weights_finish(struct customer *c, paramo_table *weights);

/* Scores this worker's held-out rows, and adds the sums (MSUMS) to the value `key`. guess: the margin of the best guess
 * for all rows. */
PARAMO_MUST_USE paramo_err weights_measure(struct customer *c, const struct solver *solver, double guess,
                                           const char *key);
/* The leader, after all workers have added these sums: measures the model on them or on --valid, judges it, and saves
 * it. */
PARAMO_MUST_USE paramo_err weights_measured(struct customer *c, double guess, const char *key);

#endif
