/*
 * The rows of a job: opens its readers, and decides what is held out and how many epochs there are at most.
 *
 * Each worker decides this for itself, from the options and the files only, so all decide the same. Tests:
 * test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_ROWS_H
#define LEARN_TRAIN_ROWS_H

#include "learn/train/job.h"

/* How a job reads its rows: reader options of the job, with what its model wants of them. */
void rows_options(const struct train_options *o, const struct model_info *info,
                  struct reader_options *options);
/* Sets the job's readers, hold_out and epochs. Nothing is held out if the held-out rows of a small data set would not
 * have both classes. */
PARAMO_MUST_USE paramo_err rows_open(struct job *job);

/* Prints a line, at the leader, if nothing is held out although it was asked for. */
void rows_tell(struct job *job);

#endif
