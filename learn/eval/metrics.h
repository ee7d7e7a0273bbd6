/*
 * Quality of predictions, in double precision over all rows seen: the sums of metric_sums.h, and the AUC.
 *
 * The AUC is exact: the share of (positive, negative) pairs that the scores put in the right order, ties counting half.
 * Each row counts once, without its weight. The margins of all rows are kept for it, 16 bytes a row: not probabilities,
 * because high ones round to 1. It never knows of files or models. Tests: test/learn/test_metrics.c, against the O(n^2)
 * definition.
 */
#ifndef LEARN_EVAL_METRICS_H
#define LEARN_EVAL_METRICS_H

#include "learn/eval/metric_sums.h"

struct metrics; /* collects rows; not thread-safe */

/* objective is copied. */
PARAMO_MUST_USE paramo_err metrics_new(const struct objective *objective, struct metrics **metrics);
void metrics_free(struct metrics *metrics);
/* Begins again, without rows. The objective is the same, but is copied again: a job learns its label_scale after it has
 * opened its files. base: margins of one guess for all rows, one for each output, copied; NULL: there is none. */
void metrics_reset(struct metrics *metrics, const struct objective *objective, const float *base);
/* As metric_sums_add. An error leaves it as it was. */
PARAMO_MUST_USE paramo_err metrics_add(struct metrics *metrics, const float *margin, size_t stride,
                                       const float *label, const float *weight, size_t n);
/* INVALID if there are no rows, or none with a weight. */
PARAMO_MUST_USE paramo_err metrics_finish(struct metrics *metrics, struct metrics_result *result);

#endif
