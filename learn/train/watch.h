/*
 * Watches a training job: does the model diverge while it trains, and is it better than guessing the mean rate?
 *
 * While an epoch runs only the progressive log-loss is known: of rows that the model had not learned, by the model as
 * it was then. A model that has just begun, or whose positives are rare, may be above the mean rate's for long and is
 * healthy. So a warning comes only if the log-loss is far above the mean rate's, and above that of a coin's toss (ln 2),
 * in several consecutive windows. Whether the model is any good is decided after an epoch, on rows that it never learns.
 *
 * Pure arithmetic: it never knows of clusters, files or output. Tests: test/learn/test_watch.c.
 */
#ifndef LEARN_TRAIN_WATCH_H
#define LEARN_TRAIN_WATCH_H

#include <stddef.h>
#include <stdint.h>

#define WATCH_ROWS    8192 /* of a window */
#define WATCH_WINDOWS 3    /* in a row */

/* Sums over the rows learned. */
struct watch_sums {
    uint64_t rows, positives;
    double loss;
};

struct watch {
    struct watch_sums began; /* where this window began */
    unsigned bad;            /* windows in a row that diverged */
};

/* Log-loss of the rate's guess for each row; 0 without rows or with one kind of them only. */
double watch_mean_loss(uint64_t rows, uint64_t positives);
/* Log-loss of guessing the rate of one set of rows for each row of another. */
double watch_base_loss(const struct watch_sums *learned, uint64_t rows, uint64_t positives);
/* Is this log-loss that of a model that diverges, where guessing the mean rate gives `mean` (0: unknown)? */
int watch_diverges(double loss, double mean);
/* Are rows sorted by their label, or nearly? turns: rows with another label than the row before. *usual: how many
 * there would be in an order without meaning. */
int watch_sorted(uint64_t rows, uint64_t positives, double turns, double *usual);
/* Begins an epoch, whose sums are 0. The first window of a fresh model does not count. */
void watch_begin(struct watch *watch, int fresh);
/* Takes the sums of the epoch so far. Returns 1 once WATCH_WINDOWS windows in a row diverged; then *window has the
 * sums of the last one. */
int watch_step(struct watch *watch, const struct watch_sums *sums, struct watch_sums *window);
/* Does a whole epoch? */
int watch_epoch(const struct watch_sums *sums);
/* Writes "training diverges: log-loss 2.1 over the epoch, ...". at names the rows. */
void watch_text(char *out, size_t cap, const struct watch_sums *sums, const char *at);

/* The log-losses of a job's measured epochs, for its last word. */
struct watch_verdict {
    double first, best, base; /* the first measured epoch's; the best one's; guessing the mean rate */
    size_t epochs, best_epoch;
    uint64_t rows; /* that measure */
};
/* May chance explain a log-loss that is no better than guessing's? 1 if a model that is 1 % better than guessing has
 * such a log-loss, or a worse one, on at least one in a hundred sets of `rows` rows. 0 if the model diverges.
 *   Given a calibrated model with a gain of g nats a row, the gain over n rows is about normal, mean K = n g,
 *   variance 2 K (Le Cam: local asymptotic normality of log-likelihood ratios). */
int watch_by_chance(double best, double base, uint64_t rows);
/* "" if the best epoch is better than guessing. Else the figures, and what the epochs themselves showed. */
void watch_judge(char *out, size_t cap, const struct watch_verdict *verdict, const char *at);

#endif
