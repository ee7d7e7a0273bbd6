/*
 * The scale of features: values are divided by a running magnitude of their key, so that a model learns as well from
 * counts in millions as from shares of one.
 *
 * The weights belong to the divided values. When a magnitude grows, the weight stays, so its effect on the value itself
 * shrinks in proportion: the rule of Ross, Mineiro and Langford, "Normalized Online Learning", UAI 2013, algorithm NAG.
 * It needs no pass over the data before the training.
 *
 * The magnitudes are rows of a table of their own, SCALE_TABLE, one row a key; the bias has none. A row that is 0 or
 * missing divides by 1. Values of 0 and 1 have magnitude 1, so one-hot data gives the same bits with any scale. It
 * never knows of servers or files. Tests: test/learn/test_scale.c.
 */
#ifndef LEARN_MODEL_SCALE_H
#define LEARN_MODEL_SCALE_H

#include "learn/data/batch.h"

#define SCALE_TABLE   "scale"
#define SCALE_MAX_DIM 3
#define SCALE_WORDS   "none|maxabs|std|auto|centred"

/* Measured: on counts with heavy tails, such as raw Criteo rows, the log-loss is 0.2 to 0.9 % lower with 4 than with 10
 * or without a limit. */
#define SCALE_MOST 4.0f

enum scale_kind {
    SCALE_NONE,
    SCALE_MAXABS, /* the greatest |x| */
    /* The root of the mean x^2, over values that are not 0; divided values beyond SCALE_MOST are held there. No mean
     * is subtracted: data stays sparse. */
    SCALE_STD,
    SCALE_AUTO, /* none until a value is not 0 or 1, then std */
    /* std of the values less the mean of their column, for the columns that learn/train/centre.h chose before the
     * training; the mean of others is 0. A row that lacks a centred column has its mean. */
    SCALE_CENTRED,
    SCALE_KINDS
};

const char *scale_name(enum scale_kind kind);
/* The kind of that name, or -1. */
int scale_find(const char *name);

/* The table's rows: values of each, and how the servers join what is pushed to what they have. */
uint32_t scale_dim(enum scale_kind kind);
paramo_optimizer scale_optimizer(enum scale_kind kind);

/* Does the batch have a value that is not 0 or 1? */
int scale_wanted(const struct batch *batch);
/* Writes to own[i * dim] what the batch's values add to the row of key i, except the bias. known: the rows so far. */
void scale_measure(enum scale_kind kind, const struct batch *batch, const float *known, float *own);
/* Joins own to known. Writes to changed the places of the keys whose own rows the servers need, and returns their
 * number. A std that has seen a million values no longer changes. */
size_t scale_join(enum scale_kind kind, size_t keys, const float *own, float *known, uint32_t *changed);
/* What a row subtracts first, and what it divides by: never 0. */
float scale_mean(enum scale_kind kind, const float *row);
float scale_divisor(enum scale_kind kind, const float *row);
/* Writes the batch's values, divided and limited to SCALE_MOST. rows are as scale_join left them, and are used up. */
void scale_divide(enum scale_kind kind, const struct batch *batch, float *rows, float *value);

#endif
