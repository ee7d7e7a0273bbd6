/*
 * The bias of a new model: the log-odds of the mean label in the first part of the data. So the model predicts the mean
 * rate before it has learned anything, and no weight is spent on it. It never knows of rounds or files. Tests:
 * test/learn/test_base_rate.c.
 */
#ifndef LEARN_TRAIN_BASE_RATE_H
#define LEARN_TRAIN_BASE_RATE_H

#include "learn/data/batch.h"
#include "paramo/paramo.h"

/* Puts the bias into w, which has one value a row, unless a worker of the job has done so before: the part may be dealt
 * again when that worker dies, and the bias has been trained by then. */
PARAMO_MUST_USE paramo_err base_rate_put(paramo_node *node, paramo_worker *worker, paramo_table *w,
                                         const struct batch_list *list);

#endif
