/*
 * A table with one number for each feature, such as when it was seen last. It never knows what the number is for.
 * Tests: test/learn/test_sightings.c, test/learn/test_expiry.c.
 */
#ifndef LEARN_TRAIN_FEATURE_ROWS_H
#define LEARN_TRAIN_FEATURE_ROWS_H

#include "paramo/paramo.h"

PARAMO_MUST_USE paramo_err feature_rows_open(paramo_worker *worker, const char *name,
                                             paramo_optimizer optimizer, paramo_table **table);
/* Puts the same number for n features, in portions. */
PARAMO_MUST_USE paramo_err feature_rows_put(paramo_worker *worker, paramo_table *table, const uint64_t *key,
                                            size_t n, float number);

#endif
