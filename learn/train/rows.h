/*
 * The rows of a job: opens its readers, and decides what is held out and how many epochs there are at most.
 *
 * Each worker decides this for itself, from the options and the files only, so all decide the same. It never knows of
 * servers. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_ROWS_H
#define LEARN_TRAIN_ROWS_H

#include "learn/train/job.h"

/* How a job reads its rows: its reader options, with what its model needs. */
void rows_options(const struct train_options *o, const struct model_info *info,
                  struct reader_options *options);
/* Sets the job's readers, hold_out and epochs, and takes what first_rows.h has for each process. Nothing is held out of
 * a small data set whose held-out rows would not have both classes, or would be fewer than two. */
PARAMO_MUST_USE paramo_err rows_open(struct job *job);

/* Prints lines, at the leader: nothing is held out although it was asked for; a schedule cannot change the rate within
 * epochs. */
void rows_tell(struct job *job);

#endif
