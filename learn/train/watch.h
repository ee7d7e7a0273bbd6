/*
 * Watches a training job: does the model diverge while it trains, and is it better than the same guess for each row
 * (the mean rate, the mean label)?
 *
 * While an epoch runs, only the progressive loss is known: each batch is scored before it is learned. This loss may be
 * above that of the guess for long, if the model has just begun or positives are rare, and the model is healthy. So a
 * warning comes only if the loss is far above the guess's, and above that of margins that are all 0 (log-loss: a coin's
 * toss, ln 2), in several consecutive windows. Whether the model is good is decided after an epoch, on rows that it
 * never learns.
 *
 * Pure arithmetic: it never knows of clusters, files or output. Tests: test/learn/test_watch.c.
 */
#ifndef LEARN_TRAIN_WATCH_H
#define LEARN_TRAIN_WATCH_H

#include "learn/objective/objective.h"

#define WATCH_ROWS    8192 /* of a window; arbitrary */
#define WATCH_WINDOWS 3    /* in a row; arbitrary */

/* Sums over the rows learned. */
struct watch_sums {
    uint64_t rows;
    struct label_sums labels;
    double loss;
};

struct watch {
    const struct objective *objective;
    struct watch_sums began; /* where this window began */
    unsigned bad;            /* windows in a row that diverged */
};

/* Does a model with this mean loss diverge, if that of the best guess is `guess` (0: unknown)? */
int watch_diverges(const struct objective *o, double loss, double guess);

/* The order of a part's rows. A turn is a row with another label than the row before. If labels are numbers, it is a
 * change upwards after one downwards, or the reverse. */
struct watch_order {
    double turns, changes; /* changes: rows with another label than the row before */
    float before, up;      /* the last row's label; the last change */
    int begun;
};
/* Adds rows, which follow those of the call before. Zero it before the first rows of a part. */
void watch_order_add(struct watch_order *order, const struct objective *o, const float *label, size_t n);
/* Are rows sorted by their label, or nearly? turns and changes are summed over the parts. positives: rows with label 1;
 * count[] (softmax): rows of each class. *usual: the turns that a random order would have. */
int watch_sorted(const struct objective *o, uint64_t rows, uint64_t positives, const double *count,
                 double turns, double changes, double *usual);

/* Begins an epoch, whose sums are 0. The first window of a fresh model does not count. */
void watch_begin(struct watch *watch, const struct objective *o, int fresh);
/* Takes the sums of the epoch so far. Returns 1 once WATCH_WINDOWS windows in a row diverged; then *window has the
 * sums of the last one. */
int watch_step(struct watch *watch, const struct watch_sums *sums, struct watch_sums *window);
/* Does a whole epoch diverge? */
int watch_epoch(const struct objective *o, const struct watch_sums *sums);
/* Writes "training diverges: log-loss 2.1 over the epoch, ...". at names the rows. */
void watch_text(char *out, size_t cap, const struct objective *o, const struct watch_sums *sums,
                const char *at);

/* The mean losses of a job's measured epochs, for the verdict at its end. */
struct watch_verdict {
    double first, best, base; /* the first measured epoch's; the best one's; that of the guess */
    size_t epochs, best_epoch;
    uint64_t rows; /* that measure */
};
/* May chance explain a loss that is no better than the guess's? 1 if a model that is 1 % better than the guess has this
 * loss, or a worse one, on at least one in a hundred sets of `rows` rows. 0 if the model diverges.
 *   Given a calibrated model with a gain of g nats a row, the gain over n rows is about normal, mean K = n g,
 *   variance 2 K (Le Cam: local asymptotic normality of log-likelihood ratios). A loss that is no log-likelihood counts
 *   as that of a distribution whose width is fitted (objective_ops.nats). */
int watch_by_chance(const struct objective *o, double best, double base, uint64_t rows);
/* Writes "" if the best epoch is better than the guess, otherwise the figures and the course of the epochs. */
void watch_judge(char *out, size_t cap, const struct objective *o, const struct watch_verdict *verdict,
                 const char *at);

#endif
