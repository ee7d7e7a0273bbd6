/*
 * What a new model takes from the first rows of the data, before it learns: the scale of the labels, for objectives
 * that have one, and its bias, which is the best guess for all of these rows. So no weight is spent on the mean rate,
 * and prices are learned with the same rates as shares of one.
 *
 * The first rows are those of the data's first part; if all files are plain, of parts that are spread over the data,
 * so that sorted rows have a bias, too. They follow from the files alone. The leader does this before the job is
 * ready: no worker has learned then, and another leader may do it again. How many fields there are is known before:
 * it is the size of rows. Tests: test/learn/test_first_rows.c.
 */
#ifndef LEARN_TRAIN_FIRST_ROWS_H
#define LEARN_TRAIN_FIRST_ROWS_H

#include "learn/train/job.h"

/* Sets the label_scale of c->job->info, and puts the bias into the table of weights, and the means of centred columns
 * into that of scales. */
PARAMO_MUST_USE paramo_err first_rows_begin(struct customer *c);
/* Sets the weights of classes to those that give each class the same weight in the first rows, if that is asked for.
 * Each process does it, as the next. */
PARAMO_MUST_USE paramo_err first_rows_balance(struct job *job);
/* Sets info.row_features, if a learning rate or the batch is not given: that of the first part's rows. Each process
 * does it, before it joins. So a pipe is left out, which may bring its rows later: their number of features is not
 * known. */
PARAMO_MUST_USE paramo_err first_rows_length(struct job *job);
/* Sets the number of fields of a model that counts them, if no number was given, and checks those that it names. Each
 * process does it, before it joins: all of them read the same rows. */
PARAMO_MUST_USE paramo_err first_rows_fields(struct job *job);
/* Sets the scale of job->info to SCALE_CENTRED if it is AUTO and there are columns to centre, and job->centre to
 * them. Each process does it, before it joins; a pipe, whose rows may come later, has none. A model that is continued
 * is not changed. */
PARAMO_MUST_USE paramo_err first_rows_centre(struct job *job);

#endif
