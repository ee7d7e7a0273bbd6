/*
 * How predictions fit the labels, over all rows seen, of models that predict numbers or classes: what `paramo eval
 * --plot` draws of them. Every row counts once; its weight does not count.
 *
 * Numbers: rows of neighbouring predictions in bins of as many rows each; the residual, label - prediction, in steps
 * of one width; the magnitudes of residuals by rank. 8 bytes a row are kept. Classes: how often which class was
 * predicted for rows of which class (the one of the greatest margin; of equals the first); how often the predicted
 * class was right, by its probability (Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, but with
 * bins of as many rows each); how often the true class is among the k best. 8 bytes a row, and 8 for each pair of
 * classes. It never knows of files or drawing. Tests: test/learn/test_fits.c.
 */
#ifndef LEARN_EVAL_FITS_H
#define LEARN_EVAL_FITS_H

#include "learn/eval/score.h"

#define FITS_BINS  20
#define FITS_STEPS 40
#define FITS_RANKS 10

/* Rows of neighbouring predictions, or probabilities of the predicted class. */
struct fits_bin {
    double prediction, label; /* means; of classes the label is 1 where the class is right */
    /* of numbers: a tenth of the labels is below, and above; of classes: Wilson's interval of 95 % */
    double low, high;
    double under, over; /* of numbers: a tenth of the residuals is below, and above */
    uint64_t rows;
};

struct fits_result {
    uint64_t rows;
    size_t bins;
    struct fits_bin bin[FITS_BINS];
    /* of numbers */
    double step_from, step_width; /* residuals: step i begins at step_from + i * step_width */
    double step
        [FITS_STEPS]; /* share of the rows; the first and the last have all beyond them, half a percent each */
    double error[101]; /* i percent of the rows have a residual of at most this magnitude */
    /* of classes */
    uint32_t classes;
    const uint64_t *confusion; /* [label * classes + predicted]; of the struct fits */
    double among[FITS_RANKS];  /* share of the rows whose label is among the best 1, 2 ... */
};

struct fits; /* collects; not thread-safe */
/* For an objective whose labels are numbers or classes. */
PARAMO_MUST_USE paramo_err fits_new(const struct objective *objective, struct fits **fits);
void fits_free(struct fits *fits); /* NULL is allowed */
PARAMO_MUST_USE paramo_err fits_add(struct fits *fits, const struct scored_rows *rows);
/* INVALID: there are no rows. */
PARAMO_MUST_USE paramo_err fits_finish(struct fits *fits, struct fits_result *result);

#endif
