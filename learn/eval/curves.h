/*
 * The curves of a model that tells label 1 from label 0, over all rows seen: ROC, precision and recall, lift, and
 * reliability. Every row counts once, as for the AUC (metrics.h); in the reliability curve it counts by its weight.
 *
 * Rows are ordered by their margin; a threshold never parts rows of equal margins. 12 bytes a row are kept, and
 * curves are thinned to CURVES_POINTS points. It never knows of files or drawing. Tests: test/learn/test_curves.c.
 */
#ifndef LEARN_EVAL_CURVES_H
#define LEARN_EVAL_CURVES_H

#include "learn/eval/score.h"

#define CURVES_POINTS 1024 /* arbitrary */
#define CURVES_BINS   20   /* of reliability: bins with equal numbers of rows; arbitrary */

/* About the rows whose margins are not below a threshold. Thresholds descend from the highest margin. */
struct curves_threshold {
    double share;     /* of all rows */
    double recall;    /* of the positive rows: true positive rate */
    double fallout;   /* of the negative rows: false positive rate */
    double precision; /* share of positive ones among them */
    double lift;      /* precision / share of positive ones among all */
};

/* Rows of neighbouring margins. */
struct curves_bin {
    double prediction, label; /* weighted means */
    double low, high; /* of the mean label: Wilson's interval of 95 % (JASA 22, 1927) for `rows` rows */
    uint64_t rows;
};

struct curves_result {
    uint64_t rows, positives;
    size_t n, bins;
    /* [n]: the first has no rows, the last has all; precision and lift of the first are those of the second */
    struct curves_threshold at[CURVES_POINTS + 2];
    struct curves_bin bin[CURVES_BINS];
};

/* Wilson's interval of 95 % for a share p of n rows. */
void curves_interval(double p, double n, double *low, double *high);

struct curves; /* collects rows; not thread-safe */
PARAMO_MUST_USE paramo_err curves_new(const struct objective *objective, struct curves **curves);
void curves_free(struct curves *curves); /* NULL is allowed */
PARAMO_MUST_USE paramo_err curves_add(struct curves *curves, const struct scored_rows *rows);
/* INVALID if the rows are of one label only. */
PARAMO_MUST_USE paramo_err curves_finish(struct curves *curves, struct curves_result *result);

#endif
