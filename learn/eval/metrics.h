/*
 * Quality of predictions: log-loss, AUC, accuracy, calibration, in double precision over all rows seen.
 *
 * Margins are kept (4 bytes and a label bit a row), so AUC is exact: the share of (positive, negative) pairs
 * that the scores put in the right order, ties counting half. Margins rather than probabilities, because high
 * probabilities round to 1. It never knows of files or models. Tests: test/learn/test_metrics.c, against the
 * O(n^2) definition.
 */
#ifndef LEARN_EVAL_METRICS_H
#define LEARN_EVAL_METRICS_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

struct metrics; /* collects; not thread-safe */

struct metrics_result {
    uint64_t rows, positives;
    double logloss;
    double auc; /* NaN unless there are both kinds of rows */
    double
        accuracy; /* share of rows whose probability lies on the label's side of 0.5 (0.5 itself: positive) */
    double calibration; /* mean probability / mean label; NaN without a positive row */
};

PARAMO_MUST_USE paramo_err metrics_new(struct metrics **metrics);
void metrics_free(struct metrics *metrics);
void metrics_reset(struct metrics *metrics);
/* NUMERIC if a margin is not finite. */
PARAMO_MUST_USE paramo_err metrics_add(struct metrics *metrics, const float *margin, const float *label,
                                       size_t n);
/* INVALID if there are no rows. */
PARAMO_MUST_USE paramo_err metrics_finish(struct metrics *metrics, struct metrics_result *result);

#endif
