/*
 * Chooses the points to train, and their epochs: random search with successive halving (Jamieson and Talwalkar,
 * "Non-stochastic Best Arm Identification and Hyperparameter Optimization", AISTATS 2016), and steps around the best
 * points.
 *
 *     a round of 9 trials:   all 9 for 1/9 of the epochs -> the best 3 for 1/3 -> the best one for all
 *
 * A trial that learns more epochs continues where it was (trial.h). At most TUNE_KEPT trials wait for that.
 *
 * The first trial has the usual settings, and the other points of the first round are random. In later rounds a third
 * of the points is random, and the rest lies near one of the best three. A trial whose training has ended by itself
 * needs no more epochs.
 *
 * The points depend on the seed and the losses only, so a search continues where it was if its losses are known. It
 * never knows of models or files. Tests: test/learn/test_tune.c.
 */
#ifndef LEARN_TUNE_SEARCH_H
#define LEARN_TUNE_SEARCH_H

#include "learn/tune/space.h"

#define TUNE_ROUND      9
#define TUNE_KEPT       3      /* a third of a round's trials learns more */
#define TUNE_TRIALS_MAX 100000 /* arbitrary */

/* The result of one training. */
struct tune_outcome {
    double loss;     /* of the best epoch; infinite if the training diverged */
    uint64_t epochs; /* the best epoch, from 1 */
    int ended;       /* the training has ended by itself: more epochs do not change it */
    double seconds;
};

struct tune_trial {
    double point[TUNE_OPTIONS_MAX];
    uint64_t budget; /* epochs that it was trained for, at most; 0: it was not trained yet */
    struct tune_outcome outcome;
};

struct tune_search {
    const struct tune_space *space;
    uint64_t seed, epochs; /* epochs: at most */
    int growing; /* epochs have train_passes() passes; rungs have a ninth and a third of all passes */
    size_t most; /* trials */
    /* Trains a point until it has learned `epochs` epochs in all. INTERRUPTED ends the search, which keeps the earlier
     * results. */
    paramo_err (*train)(void *arg, size_t trial, const double *point, uint64_t epochs,
                        struct tune_outcome *outcome);
    /* This trial is not trained again. Called once or more for each trained one. May be NULL. */
    void (*drop)(void *arg, size_t trial);
    void *arg;
    /* results */
    struct tune_trial *trial; /* [n]; freed by tune_search_free */
    size_t n;
    size_t best; /* place of the lowest loss among those that were trained; valid if trained > 0 */
    size_t trained;
};

/* Runs until all trials are done (OK), or train returns an error. */
PARAMO_MUST_USE paramo_err tune_search_run(struct tune_search *search);
void tune_search_free(struct tune_search *search);

#endif
