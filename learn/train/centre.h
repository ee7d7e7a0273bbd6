/*
 * Which columns are centred (SCALE_CENTRED, learn/model/scale.h): those that nearly all of the first rows have, with
 * values other than 0 and 1, and with a mean that is far from 0 compared with their spread. Sparse features are never
 * centred: their presence says more than their value.
 *
 * Their rows are put into the table of scales before any worker learns: the number of values seen, the sum of their
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
/* Do the first rows of a block have numbers, that is values other than 0 and 1? */
int centre_wanted(const struct block *block);
/* Adds a block's rows; each block has keys. The candidates are columns of the first block. */
void centre_add(struct centre *centre, const struct block *block);
/* The keys of the columns to centre, ascending, and their rows of scale_dim(SCALE_CENTRED) values; returns how many.
 * centre owns both. */
size_t centre_rows(struct centre *centre, const uint64_t **keys, const float **rows);

#endif
