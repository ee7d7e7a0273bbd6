/*
 * The sums over rows that measure a model, and the metrics that follow from them. The sums of parts of the data can be
 * added, so several workers can measure one model. All but rows and positives are weighted by the rows' weights. It
 * never knows of files or servers. Tests: test/learn/test_metrics.c.
 */
#ifndef LEARN_EVAL_METRIC_SUMS_H
#define LEARN_EVAL_METRIC_SUMS_H

#include "learn/objective/objective.h"
#include "paramo/paramo.h"

enum metric_sum {
    MSUM_ROWS,
    MSUM_POSITIVES, /* rows with a label above 0.5 */
    MSUM_WEIGHT,
    MSUM_LABEL,
    MSUM_SQUARE, /* of the labels */
    MSUM_LOSS,
    MSUM_BASE, /* loss of the same guess for each row */
    MSUM_CORRECT,
    MSUM_PREDICTED,
    MSUM_ERROR,
    MSUM_ERROR2,  /* squared */
    MSUM_COVERED, /* rows with a label of at most the prediction */
    MSUMS
};

struct metrics_result {
    uint64_t rows, positives;
    double mean_label;
    double loss, base;     /* means; base: 0 if no guess was given */
    double value[METRICS]; /* NaN: not defined, for these rows or this objective */
};

/* Adds n rows. margin and residual: as for objective_residuals; residual is scratch. weight NULL: all 1. base: margins
 * of the guess, one for each output, or NULL. NUMERIC: a margin is not finite. */
PARAMO_MUST_USE paramo_err metric_sums_add(const struct objective *o, double sums[MSUMS], const float *margin,
                                           size_t stride, const float *label, const float *weight,
                                           const float *base, size_t n, float *residual);
/* All but the AUC. There are rows. */
void metric_sums_finish(const struct objective *o, const double sums[MSUMS], struct metrics_result *result);
/* Do these rows measure anything? Binary labels must be of both kinds; of others, two rows are enough. */
int metric_sums_measure(const struct objective *o, const double sums[MSUMS]);

#endif
