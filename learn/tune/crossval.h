/*
 * Decides by cross-validation how long to train on few rows: each row is measured by a model that has not learned it. A
 * tenth of 150 rows is too few to decide when to stop, and twenty passes over them are too few steps.
 *
 *     fold 0:  learns the rows of folds 1 2 3 ..., is measured on fold 0   |  all folds learn epoch 1, 2, ... in step:
 *     fold 1:  learns 0 2 3 ..., is measured on 1                          |  the losses of an epoch are summed over
 *     ...                                                                  |  all rows, and the job learns up to the
 *     the job: learns all rows for this number of epochs                   |  epoch with the least sum
 *
 * Epochs have more and more passes over the rows (train_passes). With FTRL, a larger number of passes acts as a smaller
 * L2 penalty, so the epochs are like the grid of penalties that other programs cross-validate: Friedman, Hastie and
 * Tibshirani, "Regularization Paths for Generalized Linear Models", J. Stat. Software 33, 2010.
 *
 * The folds are jobs of their own in this process, with one worker each, for any kind of job. So each process of a job
 * finds the same number of epochs, and finds it in every run. It never knows how a job learns. Tests:
 * test/learn/test_crossval.c.
 */
#ifndef LEARN_TUNE_CROSSVAL_H
#define LEARN_TUNE_CROSSVAL_H

#include "learn/train/train.h"

#define CROSSVAL_FOLDS         10 /* Kohavi, IJCAI 1995, on their number */
#define CROSSVAL_FOLDS_OF_MANY 5  /* for more than 1,000 rows: folds differ less, and take longer */

struct crossval {
    uint64_t epochs; /* the best number of epochs; 0: these rows are not cross-validated */
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

/* Reads the rows once. They are cross-validated if they are few, but enough, with more than one label. Pipes are read
 * up to the size that few rows may have, and kept (learn/io/kept_pipe.h), so that the job has their rows in any case.
 * Data that cannot be read is left to the job, which reports the error. INTERRUPTED: train_interrupt, during a wait for
 * a pipe. */
PARAMO_MUST_USE paramo_err crossval_plan(const struct train_options *options, struct crossval_plan *plan);

/* Cross-validates the job, if crossval_plan finds few rows. INTERRUPTED: train_interrupt. MEMORY. The caller calls
 * crossval_free. */
PARAMO_MUST_USE paramo_err crossval_run(const struct train_options *options, struct crossval *cv);
/* Sets the options for a job that learns all rows for the best number of epochs. cv must outlive the job. */
void crossval_apply(const struct crossval *cv, struct train_options *options);
void crossval_free(struct crossval *cv);

#endif
