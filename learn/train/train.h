/*
 * A training job, as one process sees it: joins the cluster (or is all of it), runs its learners, and, if it
 * is the leader, validates after each epoch, decides whether to go on, and saves the model.
 *
 *     every customer:  round of learning | wait for the leader's word          | next round ...
 *     the leader:      round of learning | sums, validation, saving, the word  |
 *
 * The leader is customer 0 of the worker of rank 0; when that worker dies, of another (lead.h). A round ends
 * when every part has been reported done to the scheduler, so no barrier is needed, and the others learn a
 * dead worker's parts. Without DMLC_ROLE in the environment the process is the whole cluster (embedded), with
 * `workers` customers on as many threads. Tests: test/learn/test_train.c, test/e2e/train.sh, leader*.sh.
 */
#ifndef LEARN_TRAIN_TRAIN_H
#define LEARN_TRAIN_TRAIN_H

#include "learn/data/reader.h"
#include "learn/eval/metrics.h"
#include "learn/io/progress.h"
#include "learn/model/modelio.h"

#include "paramo/types.h"

struct train_options {
    const char *const *data, *const *valid; /* files; valid may be none */
    size_t data_n, valid_n;
    const char *model_in, *model_out; /* or NULL */
    struct reader_options reader;
    struct model_info model;   /* to begin with; epochs and rows are filled in */
    uint64_t epochs;           /* 0: up to TRAIN_EPOCHS where the model is measured after each, else one */
    unsigned hold_out;         /* percent of the rows, not with valid (learn/data/holdout.h) */
    uint64_t shuffle;          /* rows of a window, from the second epoch on; 0: never */
    uint64_t batch;            /* rows; 0: train_batch */
    uint32_t servers, workers; /* embedded */
    uint32_t ahead;
    uint32_t patience; /* stop after this many epochs without a better log-loss; 0: never */
    int drop_state;    /* save without the optimizers' state */
    int quiet;
};

#define TRAIN_EPOCHS_MAX 100000
#define TRAIN_EPOCHS     20 /* at most, where none are named; arbitrary */
#define TRAIN_PATIENCE   2  /* where no epochs are named; arbitrary */

/* Rows of a batch where none are named: as many as give TRAIN_IN_FLIGHT rows in flight over all workers. The
 * gradient of each row lacks the updates of the others (docs/TRAINING.md, "Several workers"). */
#define TRAIN_IN_FLIGHT 512
uint64_t train_batch(uint32_t workers, uint32_t ahead);

struct train_epoch {
    uint64_t rows;
    uint64_t positives;
    double logloss;                /* progressive */
    double mean_logloss;           /* of guessing the mean rate; 0 if there is one kind of rows only */
    double seconds, valid_seconds; /* learning; measuring */
    double sent, received;         /* bytes, of all workers, validation not included */
    uint64_t keys, nonzero;        /* rows of w, and those that are not 0 */
    int has_valid;                 /* the model was measured, on rows of both classes */
    struct metrics_result valid;   /* on --valid, or on the held-out rows: then without the AUC (NaN) */
};

struct train_result {
    int leader;                /* the rest is filled in only then */
    size_t epochs;             /* learned, those before a checkpoint that the job began with, too */
    size_t first_epoch;        /* nothing is known of this many epochs */
    struct train_epoch *epoch; /* [epochs], freed by train_result_free; rows 0: nothing is known of it, as
                                  this worker did not lead then */
    uint64_t rows;             /* learned in this run */
    double seconds;            /* from the first batch to the last epoch's end */
    uint32_t num_servers, num_workers;
    uint64_t batch;                 /* as used */
    double alpha[MODEL_MAX_TABLES]; /* learning rates of the model's tables, as used */
    uint64_t dealt_again;  /* parts that a worker began and did not finish, so that another learned them */
    uint32_t dead_workers; /* died while the job ran */
    char warning[PARAMO_ERROR_MAX]; /* what seems to be wrong with the training; "": nothing */
    unsigned hold_out;              /* percent, as used */
    int sorted;                     /* the rows are sorted by label, or nearly */
    size_t best_epoch;              /* from 1; 0: the model was not measured */
    double best_logloss;            /* that epoch's, on the rows that measure */
    uint64_t measured;              /* rows */
    double base_logloss;            /* of guessing the mean rate of the learned rows for each of them */
    int interrupted, stopped_early, saved;
    uint64_t bad_lines; /* skipped by this process */
    char first_bad[PARAMO_ERROR_MAX];
};

/* Reads the manifest of a model that training can continue from. */
PARAMO_MUST_USE paramo_err train_take_settings(const char *dir, struct model_info *info);
/* Runs the job to its end. INTERRUPTED: train_interrupt was called; the result is valid and says whether the
 * model was saved. A scheduler or server process returns when the job is over. */
PARAMO_MUST_USE paramo_err train_run(const struct train_options *options, struct train_result *result);
/* Is the model that was saved no better than guessing the mean rate, and not by chance? 0 also if it was not
 * measured. */
int train_nothing_learned(const struct train_result *result);
void train_result_free(struct train_result *result);
/* Ends the running job after the current batches; async-signal-safe. Returns 0 if no learning has begun yet,
 * so that there is nothing to end cleanly; 2: this process is a scheduler or server, which leaves. */
int train_interrupt(void);

#endif
