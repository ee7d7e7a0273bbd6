/*
 * What a new model takes from the first rows of the data, before it learns: the scale of the labels, for objectives
 * that have one, and its bias, which is the best guess for all of these rows. So no weight is spent on the mean rate,
 * and prices are learned with the same rates as shares of one.
 *
 * The first rows are those of the data's first part or, if all files are plain, of parts that are spread over the data,
 * so that sorted rows give a good bias, too. They follow from the files alone. The leader does this before the job is
 * ready. No worker has learned then, so another leader may do it again. The number of fields must be known earlier,
 * because the size of rows follows from it. It never knows of epochs. Tests: test/learn/test_first_rows.c.
 */
#ifndef LEARN_TRAIN_FIRST_ROWS_H
#define LEARN_TRAIN_FIRST_ROWS_H

#include "learn/train/job.h"

/* Sets the label_scale of c->job->info, puts the bias into the table of weights, and puts the means of centred columns
 * into the table of scales. */
PARAMO_MUST_USE paramo_err first_rows_begin(struct customer *c);
/* With --balance, sets the weights of classes so that each class has the same weight in the first rows. Each process
 * does it before it joins. */
PARAMO_MUST_USE paramo_err first_rows_balance(struct job *job);
/* Sets info.row_features to the mean of the first part's rows, if a learning rate or the batch is not given. Each
 * process does it before it joins. A pipe is left out, because its rows may come later: row_features stays 0. */
PARAMO_MUST_USE paramo_err first_rows_length(struct job *job);
/* Sets the number of fields of a model that counts them, if no number was given, and checks the fields that the model
 * names. Each process does it before it joins: all of them read the same rows. */
PARAMO_MUST_USE paramo_err first_rows_fields(struct job *job);
/* Sets job->centre to the columns to centre, if the scale of job->info is AUTO or CENTRED, and makes it CENTRED if
 * there are any. Each process does it before it joins. A pipe is left out, because its rows may come later. A model
 * that is continued is not changed. */
PARAMO_MUST_USE paramo_err first_rows_centre(struct job *job);

#endif
