/*
 * How the predictions of numbers or classes fit the labels, over all rows seen: what `paramo eval --plot` draws for
 * these models. Every row counts once; its weight does not count.
 *
 * Numbers: mean label and prediction in bins of neighbouring predictions, with equal numbers of rows; a histogram of
 * the residuals, label - prediction; the quantiles of their magnitudes. 8 bytes a row are kept.
 * Classes: the confusion matrix (the predicted class has the greatest margin; of equals, the first); how often the
 * predicted class is right, by its probability (Guo et al., "On Calibration of Modern Neural Networks", ICML 2017, but
 * with bins of equal numbers of rows); how often the true class is among the k best. 8 bytes a row are kept, and 8 for
 * each pair of classes. It never knows of files or drawing. Tests: test/learn/test_fits.c.
 */
#ifndef LEARN_EVAL_FITS_H
#define LEARN_EVAL_FITS_H

#include "learn/eval/score.h"

/* Arbitrary: what a plot can show. */
#define FITS_BINS  20
#define FITS_STEPS 40
#define FITS_RANKS 10

/* Rows of neighbouring predictions, or probabilities of the predicted class. */
struct fits_bin {
    double prediction, label; /* means; of classes the label is 1 where the class is right */
    /* of numbers: a tenth of the labels is below low, and a tenth above high; of classes: Wilson's interval of 95 % */
    double low, high;
    double under, over; /* of numbers: the same for the residuals */
    uint64_t rows;
};

struct fits_result {
    uint64_t rows;
    size_t bins;
    struct fits_bin bin[FITS_BINS];
    /* of numbers */
    double step_from, step_width; /* residuals: step i begins at step_from + i * step_width */
    /* share of the rows; the first and the last have the half percent beyond them, too */
    double step[FITS_STEPS];
    double error[101]; /* i percent of the rows have a residual of at most this magnitude */
    /* of classes */
    uint32_t classes;
    const uint64_t *confusion; /* [label * classes + predicted]; of the struct fits */
    double among[FITS_RANKS];  /* share of the rows whose label is among the best 1, 2 ... */
};

struct fits; /* collects rows; not thread-safe */
/* For an objective whose labels are numbers or classes. */
PARAMO_MUST_USE paramo_err fits_new(const struct objective *objective, struct fits **fits);
void fits_free(struct fits *fits); /* NULL is allowed */
PARAMO_MUST_USE paramo_err fits_add(struct fits *fits, const struct scored_rows *rows);
/* INVALID: there are no rows. */
PARAMO_MUST_USE paramo_err fits_finish(struct fits *fits, struct fits_result *result);

#endif
