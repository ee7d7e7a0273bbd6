/*
 * How long to train on few rows, by cross-validation: each row is measured by a model that has not learned it. A
 * tenth of 150 rows is too few to decide when to stop, and twenty passes over them are too few steps.
 *
 *     fold 0:  learns the rows of folds 1 2 3 ..., is measured on fold 0   |  epoch 1, 2, ... of all folds in step:
 *     fold 1:  learns 0 2 3 ..., is measured on 1                          |  the losses of an epoch are summed over
 *     ...                                                                  |  all rows, and the least one says how many
 *     the job: learns all rows for as many epochs                          |  epochs the job learns
 *
 * Epochs have more and more passes over the rows (train_passes). With FTRL the passes so far are an L2 penalty that
 * falls, as the grid of penalties that other programs cross-validate: Friedman, Hastie and Tibshirani,
 * "Regularization Paths for Generalized Linear Models", J. Stat. Software 33, 2010.
 *
 * The folds are jobs of their own in this process, with one worker each, for any kind of job. So each process
 * of a job finds the same number, and it is the same in every run. Tests: test/learn/test_crossval.c.
 */
#ifndef LEARN_TUNE_CROSSVAL_H
#define LEARN_TUNE_CROSSVAL_H

#include "learn/train/train.h"

#define CROSSVAL_FOLDS         10 /* Kohavi, IJCAI 1995, on their number */
#define CROSSVAL_FOLDS_OF_MANY 5  /* of more than 1,000 rows: they differ less, and take longer */

struct crossval {
    uint64_t epochs; /* the best; 0: these rows are not cross-validated */
    uint64_t rows;
    unsigned folds;
    double seconds;
    struct metrics_result *epoch; /* [epochs]: over the rows of all folds */
};

/* How the rows of a job are cross-validated; folds 0: they are not. */
struct crossval_plan {
    uint64_t rows;
    unsigned folds;
    uint32_t epochs;     /* at most */
    double row_features; /* of struct model_info */
};

/* Reads the rows once: are there few, and enough, of more than one kind? Pipes are read up to the size that few rows
 * may have, and kept (learn/io/kept_pipe.h), so that the job has their rows in any case. Data that cannot be read is
 * left to the job, which says why. INTERRUPTED: train_interrupt, while a pipe has nothing. */
PARAMO_MUST_USE paramo_err crossval_plan(const struct train_options *options, struct crossval_plan *plan);

/* Cross-validates the job, if crossval_plan finds few rows. INTERRUPTED: train_interrupt. MEMORY. The caller frees. */
PARAMO_MUST_USE paramo_err crossval_run(const struct train_options *options, struct crossval *cv);
/* Makes options those of a job that learns all rows for the best number of epochs. cv must outlive the job. */
void crossval_apply(const struct crossval *cv, struct train_options *options);
void crossval_free(struct crossval *cv);

#endif
