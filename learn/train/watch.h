/*
 * Watches a training job's progressive loss: is the model better than guessing the mean rate of its data?
 *
 * A model that diverges or learns nothing scores worse than that guess, whose log-loss is the entropy of the
 * rate. Every model does so on its first rows. So several consecutive windows of rows count while an epoch
 * runs, and then the epoch as a whole. Pure arithmetic: it never knows of clusters, files or
 * output. Tests: test/learn/test_watch.c.
 */
#ifndef LEARN_TRAIN_WATCH_H
#define LEARN_TRAIN_WATCH_H

#include <stddef.h>
#include <stdint.h>

#define WATCH_ROWS                                                                                           \
    8192 /* of a window; a fresh model's first epoch with fewer rows is only warned of if it diverges */
#define WATCH_WINDOWS 3 /* in a row */

/* Sums over the rows learned. */
struct watch_sums {
    uint64_t rows, positives;
    double loss;
};

struct watch {
    struct watch_sums began; /* where this window began */
    unsigned bad;            /* windows in a row that were worse than the mean rate */
};

/* Log-loss of the rate's guess for each row; 0 without rows or with one kind of them only. */
double watch_mean_loss(uint64_t rows, uint64_t positives);
/* Begins an epoch, whose sums are 0. The first window of a fresh model does not count. */
void watch_begin(struct watch *watch, int fresh);
/* Takes the sums of the epoch so far. Returns 1 once WATCH_WINDOWS windows in a row were worse than the mean rate;
 * then *window has the sums of the last one. */
int watch_step(struct watch *watch, const struct watch_sums *sums, struct watch_sums *window);
/* Is a whole epoch worse than the mean rate? */
int watch_epoch(const struct watch_sums *sums, int fresh);
/* "training diverges: log-loss 2.1 over the last 8192 rows, ..." with a hint. at names the rows, rates the options
 * that set learning rates. */
void watch_text(char *out, size_t cap, const struct watch_sums *sums, const char *at, const char *rates);

#endif
