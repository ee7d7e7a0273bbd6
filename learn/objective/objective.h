/*
 * What is minimised: a loss of a row's margin and label, its derivative, and the meaning of a margin. Any model can be
 * trained for any objective: the model turns features into margins (learn/model/model.h), the objective turns margins
 * into losses and predictions. Each is one file, objective_<name>.c, and one entry of OBJECTIVES below.
 * docs/EXTENDING.md shows how to add one.
 *
 * An objective with several outputs (softmax) has a margin for each. The margins of n rows lie output by output: that
 * of output c for row r is margin[c * stride + r]. Residuals have the same layout.
 *
 * Some objectives have labels of any size (prices, seconds). Their margins are in units of label_scale, the spread of
 * the labels in the first rows of the data, so that the same learning rates fit. Losses are in units of the labels.
 *
 * Equal input gives equal bits on every machine: derivatives end in the model. It never knows of features, models or
 * servers. Tests: test/learn/test_objective.c.
 */
#ifndef LEARN_OBJECTIVE_OBJECTIVE_H
#define LEARN_OBJECTIVE_OBJECTIVE_H

#include "learn/data/label.h"
#include "learn/objective/vector.h"

#include <stddef.h>
#include <stdint.h>

#define OBJECTIVE_CLASSES_MAX 1000 /* arbitrary */
#define OBJECTIVE_STRIP       64   /* rows at once; arbitrary */

/* All objectives, a line each: X(name), defined as objective_<name> in objective_<name>.c. The first is the default. */
#define OBJECTIVES(X)                                                                                        \
    X(logistic)                                                                                              \
    X(hinge)                                                                                                 \
    X(squared)                                                                                               \
    X(poisson)                                                                                               \
    X(quantile)                                                                                              \
    X(softmax)

/* The metrics besides the loss, in the order in which they are shown. */
enum objective_metric {
    METRIC_AUC,         /* share of pairs of a positive and a negative row in the right order */
    METRIC_ACCURACY,    /* share of rows with the right class */
    METRIC_CALIBRATION, /* mean prediction / mean label */
    METRIC_RMSE,        /* root of the mean squared error */
    METRIC_MAE,         /* mean absolute error */
    METRIC_R2,          /* 1 - mean squared error / variance of the labels */
    METRIC_COVERAGE,    /* share of rows with a label at most the prediction */
    METRICS
};
#define METRIC_BIT(m) (1u << (m))

struct objective;

/* Sums over labels y, each with its row's weight w. */
struct label_sums {
    double weight, label, square; /* of w, w y, w y^2 */
};

typedef void objective_strip_fn(const struct objective *o, const float *margin, size_t stride,
                                const float *label, size_t n, double *loss, float *residual);

struct objective_ops {
    const char *name; /* of --objective, and in the manifest */
    const char *help;
    const char *loss, *key; /* names of its mean loss: "log-loss", and in JSON "logloss" */
    enum label_kind labels;
    int many;         /* has an output for each of --classes */
    double quantile;  /* the initial value of --quantile, which it has; 0: it has none */
    int scaled;       /* margins are in units of label_scale */
    int constants;    /* numbers that `tally` sums for `constant`; with `many`, there is one for each class */
    unsigned metrics; /* METRIC_BIT of those that are defined */
    /* The gain of a mean loss b over a mean loss a, in nats: a - b if this is 0, otherwise nats * log(a / b), as for a
     * likelihood whose width is fitted. */
    double nats;
    /* Of n <= OBJECTIVE_STRIP rows: loss[i], and residual[i], its derivative by the margin. [VECTOR_LEVELS]: all levels
     * give the same bits. */
    objective_strip_fn *const *strip;
    /* Writes the prediction for one row of margins to out[0 .. objective_outputs). */
    void (*predict)(const struct objective *o, const float *margin, size_t stride, double *out);
    /* Is the row's prediction of the right class? NULL if there are no classes. */
    int (*correct)(const struct objective *o, const float *margin, size_t stride, float label);
    /* Adds to sum[] what `constant` needs to know of n rows with labels y and weights w (NULL: all 1). 0: no memory. */
    int (*tally)(const struct objective *o, const float *y, const float *w, size_t n, double *sum);
    /* Writes the margins of the best guess for all rows, from their tally and their summed weight. */
    void (*constant)(const struct objective *o, double weight, const double *sum, float *margin);
    /* Mean loss of the best constant; 0: not known, or there is nothing to guess. NULL: never known. */
    double (*spread)(const struct objective *o, const struct label_sums *sums);
    /* Mean loss of margins that are 0. NULL: it depends on the labels. */
    double (*toss)(const struct objective *o);
    /* The number that is shown for a mean loss, an ascending function of it; NULL: the mean loss. */
    double (*shown)(double loss);
};

/* An objective with its settings: a part of a model. */
struct objective {
    const struct objective_ops *ops;
    uint32_t classes;   /* of softmax; otherwise 0 */
    double quantile;    /* of quantile: in (0, 1); otherwise 0 */
    double label_scale; /* 1 if labels are not scaled */
};

#define OBJECTIVE_DECLARE(name) extern const struct objective_ops objective_##name;
OBJECTIVES(OBJECTIVE_DECLARE)
#undef OBJECTIVE_DECLARE
#define OBJECTIVE_WORD(name) "|" #name
#define OBJECTIVE_WORDS      (&OBJECTIVES(OBJECTIVE_WORD)[1])

/* Number i, NULL after the last; and by its name, NULL if there is none. */
const struct objective_ops *objective_at(size_t i);
const struct objective_ops *objective_find(const char *name);
/* "auc", "rmse": in JSON, and as `paramo eval` prints them. */
const char *objective_metric_name(enum objective_metric metric);

/* With its initial settings. */
struct objective objective_of(const struct objective_ops *ops);
/* What is wrong with the settings, as words that follow the objective's name: "has no --classes"; NULL: nothing. */
const char *objective_valid(const struct objective *o);
/* The number of margins of a row: at least 1. */
uint32_t objective_outputs(const struct objective *o);
/* The number of sums of ops->tally. */
size_t objective_constants(const struct objective *o);
/* How labels are read for it. Its functions get no other label. */
struct label_rule objective_label_rule(const struct objective *o);

/* Sets residual = weight * derivative of the loss by the margin, for n rows. Returns sum plus the rows' losses, each
 * times its weight, added in row order, so that the result does not depend on how rows are divided among calls. weight
 * NULL: all 1. */
double objective_residuals(const struct objective *o, const float *margin, size_t stride, const float *label,
                           const float *weight, size_t n, double sum, float *residual);
/* The loss of one row. */
double objective_loss(const struct objective *o, const float *margin, size_t stride, float label);

void objective_add_labels(struct label_sums *sums, const float *label, const float *weight, size_t n);
/* The variance of the labels; never negative. */
double objective_variance(const struct label_sums *sums);
/* An ops->correct: a margin of at least 0 stands for label 1. */
int objective_correct_sign(const struct objective *o, const float *margin, size_t stride, float label);
/* An ops->tally that sums w y into *sum. */
int objective_tally_label(const struct objective *o, const float *y, const float *w, size_t n, double *sum);
/* The label_scale for data whose labels have these sums. */
double objective_label_scale(const struct objective *o, const struct label_sums *sums);
/* ops->spread and ops->toss; 0 if there is none. */
double objective_spread(const struct objective *o, const struct label_sums *sums);
double objective_toss(const struct objective *o);
/* ops->shown; the mean loss itself if there is none. */
double objective_shown(const struct objective *o, double loss);

#endif
