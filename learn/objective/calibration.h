/*
 * Calibration: maps the margins of a trained binary model to margins whose probabilities are right on rows that it did
 * not learn.
 *
 *   platt      margin' = a margin + b, with a and b that minimise the log-loss (J. Platt, "Probabilistic Outputs for
 *              Support Vector Machines", 1999; with its targets, and Newton's method as in H.-T. Lin, C.-J. Lin, R. C.
 *              Weng, "A Note on Platt's Probabilistic Outputs", Machine Learning 68, 2007)
 *   isotonic   the ascending step function with the least squared error (pool adjacent violators: Ayer et al., Annals
 *              of Mathematical Statistics 26, 1955; for probabilities: Zadrozny and Elkan, KDD 2002), with lines
 *              between the middles of its steps. One positive and one negative row are added to each step, so no
 *              probability is 0 or 1
 *
 * It is fitted to sums over bins of margins, so that several workers can add what they measured. Equal sums give equal
 * bits on every machine. It never knows of models or servers. Tests: test/learn/test_calibration.c.
 */
#ifndef LEARN_OBJECTIVE_CALIBRATION_H
#define LEARN_OBJECTIVE_CALIBRATION_H

#include <stddef.h>
#include <stdint.h>

/* The words of --calibrate, in the order of the enum. */
#define CALIBRATION_WORDS "none|platt|isotonic"
enum calibration_kind { CALIBRATION_NONE, CALIBRATION_PLATT, CALIBRATION_ISOTONIC, CALIBRATION_KINDS };

/* Bins have equal width from -CALIBRATION_MARGIN to CALIBRATION_MARGIN; margins beyond are in the outermost. */
#define CALIBRATION_BINS   256
#define CALIBRATION_MARGIN 16.0

/* Part of a model. */
struct calibration {
    enum calibration_kind kind;
    double a, b;    /* platt */
    uint32_t knots; /* isotonic: at least 1, margins ascending */
    /* [knots]; beyond them, `to` is that of the nearest. */
    float from[CALIBRATION_BINS], to[CALIBRATION_BINS];
};

/* The sums of each bin: rows, rows with label 1, and margins of all rows, all weighted. They are one array of doubles,
 * so that the sums of several workers can be added. */
enum { CALIBRATION_ROWS, CALIBRATION_POSITIVES, CALIBRATION_SUM, CALIBRATION_COLUMNS };
#define CALIBRATION_SUMS (CALIBRATION_COLUMNS * CALIBRATION_BINS)

/* The name of a kind, "platt"; and the kind of a name, or -1. */
const char *calibration_name(enum calibration_kind kind);
int calibration_find(const char *name);
/* Could calibration_fit have made it? */
int calibration_valid(const struct calibration *c);

/* Adds n rows; label above 0.5 is 1, weight NULL: all 1. */
void calibration_add(double sums[CALIBRATION_SUMS], const float *margin, const float *label,
                     const float *weight, size_t n);
/* Returns 0, and leaves c without a calibration, if the rows do not have both labels. */
int calibration_fit(enum calibration_kind kind, const double sums[CALIBRATION_SUMS], struct calibration *c);
/* The mean log-loss of the rows with c (NULL: without calibration), each at the mean margin of its bin. */
double calibration_loss(const struct calibration *c, const double sums[CALIBRATION_SUMS]);

/* Calibrates n margins, in place. */
void calibration_apply(const struct calibration *c, float *margin, size_t n);

#endif
