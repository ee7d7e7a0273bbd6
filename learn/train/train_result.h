/*
 * The result of a training job: its epochs, and whether it learned something. It never knows how a job runs. Tests:
 * test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_TRAIN_RESULT_H
#define LEARN_TRAIN_TRAIN_RESULT_H

#include "learn/data/reader.h"
#include "learn/eval/metrics.h"
#include "learn/model/model.h"
#include "learn/train/filter_sums.h"
#include "learn/train/pace.h"

struct train_epoch {
    uint64_t rows;
    uint64_t positives; /* with a label above 0.5 */
    double mean_label;
    double loss;       /* progressive mean */
    double guess_loss; /* mean of the best guess for all rows; 0: not known, or all labels are the same */
    double seconds, valid_seconds; /* learning; measuring */
    double sent, received;         /* bytes, of all workers, validation not included */
    uint64_t keys, nonzero;        /* rows of w, and those that are not 0 */
    double objective, violation;   /* of --solver darlin: after the pass; the sum over the keys visited */
    uint64_t violated, active;     /* keys that violated their condition; keys visited */
    int has_valid;                 /* the model was measured; with binary labels: on rows of both classes */
    struct metrics_result valid;   /* on --valid, or on the held-out rows: then without the AUC (NaN) */
};

struct train_result {
    struct objective objective;
    int leader;         /* this process led the job; otherwise the rest is not filled in */
    size_t epochs;      /* learned, including those before a checkpoint that the job began with */
    size_t first_epoch; /* this many epochs are not known */
    /* [epochs], freed by train_result_free; rows 0: not known, because this worker did not lead then */
    struct train_epoch *epoch;
    uint64_t rows;  /* learned in this run */
    double seconds; /* from the first batch to the last epoch's end */
    uint32_t num_servers, num_workers;
    uint64_t batch; /* as used */
    int by_epoch;   /* a schedule could not look within epochs: the number of parts is not known */
    double alpha[MODEL_MAX_TABLES]; /* learning rates of the model's tables, as used */
    uint64_t dealt_again;  /* parts that a worker began and did not finish, so that another learned them */
    uint32_t dead_workers; /* died while the job ran */
    char warning[PARAMO_ERROR_MAX]; /* what seems to be wrong with the training; "": nothing */
    unsigned hold_out;              /* percent, as used */
    int sorted;                     /* the rows are sorted by label, or nearly */
    size_t best_epoch;              /* from 1; 0: the model was not measured */
    double best_loss;               /* that epoch's, on the rows that measure */
    double held_out[MSUMS];         /* of the last epoch: what was measured on the held-out rows */
    uint64_t measured;              /* rows */
    double base_loss;               /* on these rows, of the guess that is best for the learned rows */
    int interrupted, stopped_early, saved;
    int converged;                             /* of --solver darlin */
    uint32_t blocks;                           /* of keys, of --solver darlin */
    uint32_t delayed;                          /* the most steps that a gradient lacked, of --solver darlin */
    struct calibration calibration;            /* of the model that was saved */
    double uncalibrated_loss, calibrated_loss; /* of the rows it was fitted to, with margins in bins */
    struct reader_stats read;                  /* of the data, by this process */
    double pace[PACE_SUMS];                    /* of all workers, by enum pace_sum; zeros with asp */
    size_t filters;
    struct filter_sum filter[FILTER_SUMS_MAX]; /* of all workers */
};

/* Is the saved model no better than the same guess for each row, and not by chance? 0 also if it was not measured. */
int train_nothing_learned(const struct train_result *result);
void train_result_free(struct train_result *result);

#endif
