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

/* The readers of a job's rows, for several jobs, one after the other, that differ only in the model's settings: the
 * text is parsed once. */
struct train_rows {
    struct reader *reader, *valid; /* valid: NULL if a part of the rows is held out */
    unsigned hold_out;             /* percent, as used */
    double row_features;           /* of struct model_info */
};

struct train_result;

struct train_options {
    const char *const *data, *const *valid; /* files; there may be none to validate */
    size_t data_n, valid_n;
    const char *model_in, *model_out; /* or NULL */
    struct reader_options reader;
    struct model_info model; /* to begin with; epochs and rows are filled in */
    uint64_t epochs;         /* 0: up to TRAIN_EPOCHS if the model is measured after each, otherwise one */
    unsigned hold_out;       /* percent of the rows, not with valid (learn/data/holdout.h) */
    int growing;    /* epochs have train_passes() passes over the rows, and the first is shuffled, too */
    int alone;      /* one process is the whole job, with any environment */
    unsigned folds; /* of the cross-validation that gave `measured` */
    /* [epochs]: the metrics of each epoch, by cross-validation; NULL: there are none */
    const struct metrics_result *measured;
    struct admission_rule admission; /* of new features */
    uint32_t expire;                 /* parts after which an idle feature leaves the model; 0: never */
    struct rate_schedule schedule;   /* of the learning rate */
    uint64_t shuffle;                /* rows of a window, from the second epoch on; 0: never */
    double negatives;                /* logistic: share of the rows with label 0 that is learned; 0: all */
    int balance; /* weights of classes from the first rows, in place of those of the model */
    enum calibration_kind calibrate; /* logistic: on the rows that are measured */
    uint64_t batch;                  /* rows; 0: train_batch, from train_first_batch on */
    uint32_t servers, workers;       /* embedded */
    uint32_t ahead;
    uint32_t bound;             /* of struct pace; PACE_FREE: asp */
    paramo_aggregate aggregate; /* of the model's tables; not NONE: bound is that of bsp */
    const char *push_filter; /* chain of pushes; with an aggregate, it must fit the tables; NULL: not given */
    int deterministic; /* with an aggregate: each worker reads all rows, and learns its share of each batch */
    uint32_t patience; /* stop after this many epochs without a better log-loss; 0: never */
    int drop_state;    /* save without the optimizers' state */
    int snapshot;      /* take one of the model after each epoch (shared_model.h); not in one process */
    int quiet;         /* 1: no progress; 2: no warnings either */
    const struct train_rows *rows; /* of train_rows_open for the same data; NULL: the job opens its own */
    /* Called by the leader's thread after each epoch but the last: does the job continue? The job is paused during
     * this call. NULL: it continues. One process only. */
    int (*continues)(void *arg, const struct train_result *so_far);
    void *continues_arg;
    /* embedded: when the job ends as if interrupted, on the clock of progress_now; 0: never */
    double deadline;
    struct darlin_options darlin; /* --solver darlin */
};

/* Opens the rows of a job; parsed rows are kept. The caller closes them when no job uses them. */
PARAMO_MUST_USE paramo_err train_rows_open(const struct train_options *options, struct train_rows *rows);
void train_rows_close(struct train_rows *rows);

#define TRAIN_EPOCHS_MAX 100000 /* arbitrary */
#define TRAIN_EPOCHS     20     /* at most, where none are named; arbitrary */
#define TRAIN_PATIENCE   2      /* where no epochs are named; arbitrary */

/* Rows of a batch where none are named, so that all workers together have TRAIN_IN_FLIGHT rows in flight. The gradient
 * of each row lacks the updates of the others (docs/TRAINING.md, "Several workers"). */
#define TRAIN_IN_FLIGHT 512
uint64_t train_batch(uint32_t workers, uint32_t ahead);
/* Small data is learned better in small batches, large data faster in large ones. So where no batch is named, batches
 * begin with fewer rows and grow (loader_batch_rows). Both have at least TRAIN_BATCH_MIN rows. */
#define TRAIN_FIRST_IN_FLIGHT 64
#define TRAIN_BATCH_MIN       16
uint64_t train_first_batch(uint32_t workers, uint32_t ahead);
/* `rows`, or fewer if the values that these rows pull (info->row_features features each) do not fit a core's cache: the
 * rows that pull TRAIN_BATCH_VALUES values, but at least `least`. Values, gradients and answers of a few batches are in
 * flight. */
#define TRAIN_BATCH_VALUES (1 << 17) /* 512 kB; measured in docs/PERFORMANCE.md */
uint64_t train_batch_fitting(const struct model_info *info, uint64_t rows, uint64_t least);

/* Reads the manifest of a model that training can continue from. The caller releases info->columns. */
PARAMO_MUST_USE paramo_err train_take_settings(const char *dir, struct model_info *info);
/* Like train_take_settings(), for --solver darlin, which needs no state. The weights must be those of values that
 * are not scaled. */
PARAMO_MUST_USE paramo_err train_take_weights(const char *dir, struct model_info *info);

/* Passes over the rows in epoch number `round`, from 0, of a growing job: 1, 1, 1, 1, 2, 3, 4 ..., half of the passes
 * before it. So the models of its epochs form a regularisation path: with FTRL, beta / alpha divided by the passes so
 * far acts as an L2 penalty. */
uint64_t train_passes(uint32_t round);

#endif
