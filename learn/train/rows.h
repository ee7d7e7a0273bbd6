/*
 * The rows of a job: opens its readers, and decides what is held out and how many epochs there are at most.
 *
 * Each worker decides this for itself, from the options and the files only, so all decide the same. Tests:
 * test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_ROWS_H
#define LEARN_TRAIN_ROWS_H

#include "learn/train/job.h"

/* Sets the job's readers, hold_out and epochs. Nothing is held out where the held-out rows of a small set would not
 * be of both classes. */
PARAMO_MUST_USE paramo_err rows_open(struct job *job);

/* The leader says on a line if nothing is held out though it was asked for. */
void rows_tell(struct job *job);

#endif
