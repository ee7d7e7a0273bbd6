/*
 * What the options of `paramo train` and `paramo tune` say of the job. Tests: test/e2e/cli.sh, train.sh.
 */
#ifndef CMD_TRAIN_ARGS_H
#define CMD_TRAIN_ARGS_H

#include "cmd/options.h"
#include "learn/train/train_options.h"

/* Fills in the options, which begin as zeros and point into s. The caller releases o->model.columns. Returns -1, or
 * the exit code after a message. */
int train_args_read(const struct options *s, struct train_options *o);

/* Does no option say how long the job learns, or on which rows that is decided? Then few rows are cross-validated. */
int train_args_left_open(const struct options *s, const struct train_options *o);

/* Prints the last error, which is that of a job, and returns its exit code. Where labels do not fit the objective,
 * the line names those that they fit. */
int train_args_failed(const struct options *s, const struct train_options *o, paramo_err err);

/* A new model of --model, which was given, with its objective. The same. */
int train_args_model(const struct options *s, struct model_info *info);

#endif
