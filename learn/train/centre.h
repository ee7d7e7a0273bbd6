/*
 * Which columns are centred (SCALE_CENTRED, learn/model/scale.h): those that nearly every one of the first rows has,
 * with other values than 0 and 1, and far from 0 for their spread. Sparse features are never among them: that one is
 * there says more than its value.
 *
 * Their rows of the table of scales are put before any worker learns: how many values were seen, the sum of their
 * squared distances from the mean, and the mean, which stays. All processes see the same first rows, so all of them
 * know whether the job centres. It never knows of servers. Tests: test/learn/test_first_rows.c,
 * test/learn/test_scale.c.
 */
#ifndef LEARN_TRAIN_CENTRE_H
#define LEARN_TRAIN_CENTRE_H

#include "learn/data/block.h"
#include "paramo/paramo.h"

#define CENTRE_COLUMNS 4096 /* at most; arbitrary */

struct centre; /* of the first rows seen so far */

PARAMO_MUST_USE paramo_err centre_new(struct centre **centre);
void centre_free(struct centre *centre);
/* Has a block's beginning numbers at all, that is values other than 0 and 1? */
int centre_wanted(const struct block *block);
/* Adds a block's rows; each block has keys. The first block says which columns come into question. */
void centre_add(struct centre *centre, const struct block *block);
/* The keys that are centred, ascending, and their rows of scale_dim(SCALE_CENTRED) values; returns how many. Both are
 * centre's. */
size_t centre_rows(struct centre *centre, const uint64_t **keys, const float **rows);

#endif
