/*
 * The plots of the verbs, each one SVG (learn/plot/chart.h). Tests: test/e2e/plots.sh.
 */
#ifndef CMD_PLOTS_H
#define CMD_PLOTS_H

#include "learn/eval/curves.h"
#include "learn/eval/fits.h"
#include "learn/eval/metrics.h"
#include "learn/train/train_result.h"

/* Can a file be written there? For the beginning of a verb, so that it does not fail at its end. */
PARAMO_MUST_USE paramo_err plots_check(const char *path);
/* ROC, precision and recall, reliability, lift. data names the rows. */
PARAMO_MUST_USE paramo_err plots_eval(const char *path, const char *model, const char *data,
                                      const struct objective *objective, const struct metrics_result *metrics,
                                      const struct curves_result *curves);
/* Of predicted numbers: labels and residuals against predictions, how residuals are distributed, and how large they
 * are. Of classes: the confusion matrix, reliability, recall and precision of each class, and how often the label is
 * among the best. */
PARAMO_MUST_USE paramo_err plots_fits(const char *path, const char *model, const char *data,
                                      const struct objective *objective, const struct metrics_result *metrics,
                                      const struct fits_result *fits);
/* The loss of each epoch: of the rows that were learned, and of those that measure. */
PARAMO_MUST_USE paramo_err plots_train(const char *path, const char *model, const char *data,
                                       const struct train_result *result);

#endif
