/*
 * Quality of predictions, in double precision over all rows seen: the sums of metric_sums.h, and the AUC.
 *
 * For the AUC margins are kept (4 bytes and a label bit a row), so it is exact: the share of (positive, negative) pairs
 * that the scores put in the right order, ties counting half; each row counts once, without its weight. Margins rather
 * than probabilities, because high probabilities round to 1. It never knows of files or models. Tests:
 * test/learn/test_metrics.c, against the O(n^2) definition.
 */
#ifndef LEARN_EVAL_METRICS_H
#define LEARN_EVAL_METRICS_H

#include "learn/eval/metric_sums.h"

struct metrics; /* collects; not thread-safe */

/* objective is copied. */
PARAMO_MUST_USE paramo_err metrics_new(const struct objective *objective, struct metrics **metrics);
void metrics_free(struct metrics *metrics);
/* Begins again. objective: as before, copied again: a job learns its label_scale after it has opened its files. base:
 * margins of a guess for every row, one for each output, copied; NULL: there is none. */
void metrics_reset(struct metrics *metrics, const struct objective *objective, const float *base);
/* As metric_sums_add. MEMORY leaves it as it was. */
PARAMO_MUST_USE paramo_err metrics_add(struct metrics *metrics, const float *margin, size_t stride,
                                       const float *label, const float *weight, size_t n);
/* INVALID if there are no rows, or none with a weight. */
PARAMO_MUST_USE paramo_err metrics_finish(struct metrics *metrics, struct metrics_result *result);

#endif
