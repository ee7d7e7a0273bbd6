/*
 * The plots of --plot, each one SVG (learn/plot/chart.h). It never knows how the numbers were measured. Tests:
 * test/e2e/plots.sh.
 */
#ifndef CMD_PLOTS_H
#define CMD_PLOTS_H

#include "learn/eval/curves.h"
#include "learn/eval/fits.h"
#include "learn/eval/metrics.h"
#include "learn/train/train_result.h"

/* Can a file be written at path? A verb asks before its work, so that it does not fail afterwards. */
PARAMO_MUST_USE paramo_err plots_check(const char *path);
/* Draws ROC, precision and recall, reliability, and lift. data: the name of the rows, for the title. */
PARAMO_MUST_USE paramo_err plots_eval(const char *path, const char *model, const char *data,
                                      const struct objective *objective, const struct metrics_result *metrics,
                                      const struct curves_result *curves);
/* Draws, of predicted numbers: labels and residuals against predictions, and the distributions of residuals and of
 * their magnitudes. Of classes: the confusion matrix, reliability, recall and precision of each class, and how often
 * the label is among the classes of the highest probability. */
PARAMO_MUST_USE paramo_err plots_fits(const char *path, const char *model, const char *data,
                                      const struct objective *objective, const struct metrics_result *metrics,
                                      const struct fits_result *fits);
/* Draws the loss of each epoch: of the rows that were learned, and of those that measure. */
PARAMO_MUST_USE paramo_err plots_train(const char *path, const char *model, const char *data,
                                       const struct train_result *result);

#endif
