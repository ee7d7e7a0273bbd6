/*
 * The options of a training job: its data, the model that it begins with, and how long it learns. It never knows a
 * running job. Tests: test/learn/test_train.c.
 */
#ifndef LEARN_TRAIN_TRAIN_OPTIONS_H
#define LEARN_TRAIN_TRAIN_OPTIONS_H

#include "learn/darlin/darlin_options.h"
#include "learn/data/reader.h"
#include "learn/store/modelio.h"
#include "learn/train/admission.h"
#include "learn/train/pace.h"
#include "learn/train/rate_schedule.h"

/* The readers of a job's rows, for several jobs one after the other that differ in the model's settings only: the
 * text is parsed once. */
struct train_rows {
    struct reader *reader, *valid; /* valid: NULL if a part of the rows is held out */
    unsigned hold_out;             /* percent, as used */
    double row_features;           /* of struct model_info */
};

struct train_result;

struct train_options {
    const char *const *data, *const *valid; /* files; valid may be none */
    size_t data_n, valid_n;
    const char *model_in, *model_out; /* or NULL */
    struct reader_options reader;
    struct model_info model; /* to begin with; epochs and rows are filled in */
    uint64_t epochs;         /* 0: up to TRAIN_EPOCHS where the model is measured after each, else one */
    unsigned hold_out;       /* percent of the rows, not with valid (learn/data/holdout.h) */
    int growing;    /* epochs have train_passes() passes over the rows, and the first is shuffled, too */
    int alone;      /* one process is the whole job, with any environment */
    unsigned folds; /* of the next */
    /* of the epochs 0 .. epochs - 1, by cross-validation; NULL: they are not */
    const struct metrics_result *measured;
    struct admission_rule admission; /* of new features */
    uint32_t expire;                 /* parts after which an idle feature leaves the model; 0: never */
    struct rate_schedule schedule;   /* of the learning rate */
    uint64_t shuffle;                /* rows of a window, from the second epoch on; 0: never */
    double negatives;                /* share of the rows with label 0 that is learned, of logistic; 0: all */
    int balance; /* weights of classes from the first rows, in place of those of the model */
    enum calibration_kind calibrate; /* of logistic: on the rows that are measured */
    uint64_t batch;                  /* rows; 0: train_batch, from train_first_batch on */
    uint32_t servers, workers;       /* embedded */
    uint32_t ahead;
    uint32_t bound;             /* of struct pace; PACE_FREE: asp */
    paramo_aggregate aggregate; /* of the model's tables; not NONE: bound is that of bsp */
    const char *push_filter;    /* chain for pushes, which must fit the tables then; NULL: none was named */
    int deterministic; /* with an aggregate: each worker has all rows, and learns its share of each batch */
    uint32_t patience; /* stop after this many epochs without a better log-loss; 0: never */
    int drop_state;    /* save without the optimizers' state */
    int snapshot;      /* take one of the model after each epoch (shared_model.h); not in one process */
    int quiet;         /* 1: no progress; 2: no warnings either */
    const struct train_rows *rows; /* of train_rows_open for the same data; NULL: the job opens its own */
    /* Called by the leader's thread after each epoch that another may follow: does it follow? The job is paused for
     * the time of this call. NULL: it follows. One process only. */
    int (*continues)(void *arg, const struct train_result *so_far);
    void *continues_arg;
    /* embedded: when the job ends as if interrupted, on the clock of progress_now; 0: never */
    double deadline;
    struct darlin_options darlin; /* --solver darlin */
};

/* Opens the rows of a job, and keeps what is parsed. The caller closes them. Not while a job uses them. */
PARAMO_MUST_USE paramo_err train_rows_open(const struct train_options *options, struct train_rows *rows);
void train_rows_close(struct train_rows *rows);

#define TRAIN_EPOCHS_MAX 100000
#define TRAIN_EPOCHS     20 /* at most, where none are named; arbitrary */
#define TRAIN_PATIENCE   2  /* where no epochs are named; arbitrary */

/* Rows of a batch where none are named: as many as give TRAIN_IN_FLIGHT rows in flight over all workers. The
 * gradient of each row lacks the updates of the others (docs/TRAINING.md, "Several workers"). */
#define TRAIN_IN_FLIGHT 512
uint64_t train_batch(uint32_t workers, uint32_t ahead);
/* Small data is learned better in small batches, large data faster in large ones. So where none are named batches begin
 * with fewer rows and grow (loader_batch_rows). Both have at least TRAIN_BATCH_MIN rows. */
#define TRAIN_FIRST_IN_FLIGHT 64
#define TRAIN_BATCH_MIN       16
uint64_t train_first_batch(uint32_t workers, uint32_t ahead);
/* `rows`, or fewer where the values that rows of info->row_features features pull do not fit a core's cache: as many
 * as have TRAIN_BATCH_VALUES of them, but at least `least`. Values, gradients and answers of a few batches are in
 * flight. */
#define TRAIN_BATCH_VALUES (1 << 17) /* 512 kB; docs/PERFORMANCE.md has what was measured */
uint64_t train_batch_fitting(const struct model_info *info, uint64_t rows, uint64_t least);

/* Reads the manifest of a model that training can continue from. The caller releases info->columns. */
PARAMO_MUST_USE paramo_err train_take_settings(const char *dir, struct model_info *info);
/* Like train_take_settings(), for --solver darlin, which needs no state. The weights must be those of values that
 * are not scaled. */
PARAMO_MUST_USE paramo_err train_take_weights(const char *dir, struct model_info *info);

/* Passes over the rows in epoch number `round`, from 0, of a growing job: 1, 1, 1, 1, 2, 3, 4 ..., half of those
 * before it. So its epochs are models on a path: with FTRL, beta / alpha over the passes so far acts as an L2
 * penalty. */
uint64_t train_passes(uint32_t round);

#endif
