/*
 * Sums at the scheduler that all workers of a job add to (paramo_kv_add). It never knows what is summed. Tests:
 * test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_SUMMED_H
#define LEARN_TRAIN_SUMMED_H

#include "paramo/paramo.h"

/* Reads n doubles; zeros if no worker has added any. */
PARAMO_MUST_USE paramo_err summed_get(paramo_node *node, const char *key, double *values, size_t n);

#endif
