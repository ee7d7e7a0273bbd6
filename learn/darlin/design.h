/*
 * The rows of one part of the data, stored by column: for each key the rows that have it, and their values. It also has
 * each row's margin with the weights so far, and the first and second derivative of the loss by the margin.
 *
 *     key     [ 3 | 17 | 40 | bias ]      ascending
 *     start   [ 0 | 2 | 5 | 6 | ... ]     the entries of column c are start[c] .. start[c + 1] - 1
 *     row     [ 0 4 | 1 2 4 | 3 | 0 1 2 3 4 ]
 *     value   [ . . | . . . | . | 1 1 1 1 1 ], or NULL: all 1
 *
 * Loss: log(1 + e^m) - y m of the margin m and the label y (0 or 1), times the row's weight. One thread at a time. It
 * never knows of blocks, servers or penalties. Tests: test/learn/test_darlin.c.
 */
#ifndef LEARN_DARLIN_DESIGN_H
#define LEARN_DARLIN_DESIGN_H

#include "learn/data/batch.h"

struct design {
    size_t rows, keys, entries;
    uint64_t *key;                 /* [keys] */
    uint32_t *start;               /* [keys + 1] */
    uint32_t *row;                 /* [entries] */
    float *value;                  /* [entries], or NULL */
    float *label;                  /* [rows] */
    float *weight;                 /* [rows], or NULL: all 1 */
    double *before;                /* [rows]: margins as design_mark left them */
    double *margin, *slope, *bend; /* [rows]: m; (p - y) times the weight; p (1 - p), p = 1 / (1 + e^-m) */
    uint32_t *stamp, *touched;     /* [rows]: scratch */
    uint32_t turn;
};

/* Copies the rows of a block. bias: BATCH_BIAS_KEY gets a column of ones; otherwise it has the values of the data.
 * A block without rows gives a design without keys. MEMORY leaves *design zeroed. The caller frees it. */
PARAMO_MUST_USE paramo_err design_new(struct batcher *batcher, const struct block *block, int bias,
                                      struct design *design);
void design_free(struct design *design);

/* Sets all margins, to the sum of weight[c] times the value in column c, and the derivatives. */
void design_set(struct design *design, const double *weight);
/* Adds change[c - from] times column c to the margins, for the columns from .. end - 1, and sets the derivatives. */
void design_add(struct design *design, size_t from, size_t end, const double *change);
/* A new number for stamp[]: no row has it. */
uint32_t design_turn(struct design *design);
/* Notes the margins. */
void design_mark(struct design *design);
/* Moves the margins further, by `way` times their change since design_mark. */
void design_go(struct design *design, double way);
/* The sum of the rows' losses as it would be after design_go(design, way). */
double design_loss(const struct design *design, double way);

#endif
