/*
 * Turns the options of `paramo train` and `paramo tune` into those of a job (learn/train/train_options.h), and refuses
 * options that exclude each other. Tests: test/e2e/cli.sh, train.sh.
 */
#ifndef CMD_TRAIN_ARGS_H
#define CMD_TRAIN_ARGS_H

#include "cmd/options.h"
#include "learn/train/train_options.h"

/* Fills in the options, which begin as zeros and point into s. The caller releases o->model.columns. Returns -1, or
 * the exit code after a message. */
int train_args_read(const struct options *s, struct train_options *o);

/* Is no option given that decides how long the job learns, or that cross-validation does not support? Then few rows are
 * cross-validated. */
int train_args_left_open(const struct options *s, const struct train_options *o);

/* Prints the last error, which is that of a job, and returns its exit code. If labels do not fit the objective, the
 * message also names objectives for other labels. */
int train_args_failed(const struct options *s, const struct train_options *o, paramo_err err);

/* Initialises a new model of the kind --model, which was given, with its objective. Returns -1, or the exit code after
 * a message. */
int train_args_model(const struct options *s, struct model_info *info);

#endif
