#include "learn/tune/crossval.h"

#include "learn/data/holdout.h"
#include "learn/io/input.h"
#include "learn/io/progress.h"
#include "learn/train/rows.h"
#include "learn/train/train.h"
#include "learn/tune/trial.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All arbitrary: some seconds at most. docs/TRAINING.md, "Few rows". */
#define BYTES_MOST    (8u << 20)  /* of the files */
#define PART_BYTES    (64u << 20) /* of text: rows of a part are shuffled, so each file is one */
#define FEATURES_MOST (1u << 19)  /* of all rows */
#define VALUES_MOST   (1u << 25)  /* of the model, that a fold learns over all passes; ... */
#define ROWS_LEARNED  (1u << 19)  /* ... and rows, or about */
#define LEAST_VALUES  (1u << 27)  /* of the rows, over the least number of passes */
#define PASSES_LEAST  20          /* as in a job that is not cross-validated */
#define EPOCHS_MOST   20          /* with train_passes: 2,398 passes */
#define ROWS_LEAST    10
#define LEAST_OTHERS  2    /* rows of another label: a fold has one, and others learn one */
#define ROWS_OF_MANY  1000 /* more rows are dealt to CROSSVAL_FOLDS_OF_MANY folds */
#define PATIENCE      3    /* epochs without a lower loss; the loss of a path has one valley */
#define LOWER         1e-3 /* lower by this share of it, else the path has come to its end */

/* What decides whether to cross-validate, and for how long. */
struct census {
    uint64_t rows, features;
    uint64_t values; /* of the model, that a pass learns */
    uint16_t field;  /* the greatest */
    float first;     /* label */
    uint64_t others; /* rows with another label than the first */
};

static int all_files(char *const *names, size_t n)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < n; i++) {
        struct stat s;
        if (stat(names[i], &s) != 0 || !S_ISREG(s.st_mode))
            return 0;
        bytes += (uint64_t)s.st_size;
    }
    return bytes <= BYTES_MOST;
}

/* Are all files regular, and small? */
static int are_small(const struct train_options *o)
{
    char **names = NULL;
    size_t n = 0;
    const int small = input_expand(o->data, o->data_n, &names, &n) == PARAMO_OK && all_files(names, n);
    input_free_names(names, n);
    return small;
}

static void count(struct census *c, const struct block *b)
{
    if (c->rows == 0 && b->rows > 0)
        c->first = b->label[0];
    for (size_t r = 0; r < b->rows; r++)
        c->others += b->label[r] != c->first;
    for (size_t i = 0; b->field && i < b->features; i++)
        c->field = b->field[i] > c->field ? b->field[i] : c->field;
    c->rows += b->rows;
    c->features += b->features + b->rows; /* and the bias */
}

/* The values of the rows of features that a pass learns. */
static uint64_t values_of(const struct model_info *model, const struct census *c)
{
    struct model_info info = *model;
    uint64_t values = 0;
    for (size_t i = 0; i < info.ops->settings; i++)
        if (info.ops->setting[i].field == FIELD_COUNT && info.setting[i] == 0)
            info.setting[i] = c->field + 1;
    for (size_t t = 0; t < info.ops->tables; t++)
        if (model_fixed_rows(&info, t) == 0)
            values += c->features * model_row_values(&info, t);
    return values;
}

/* Are there few rows, and enough? */
static int is_wanted(const struct train_options *o, struct census *c)
{
    struct reader *reader = NULL;
    const struct block *b = NULL;
    struct reader_options options;
    *c = (struct census){0};
    if (!are_small(o))
        return 0;
    rows_options(o, &o->model, &options);
    paramo_err err = reader_open(&options, o->data, o->data_n, &reader);
    while (err == PARAMO_OK && c->features <= FEATURES_MOST) {
        err = reader_next(reader, &b);
        if (err != PARAMO_OK || !b)
            break;
        count(c, b);
        reader_release(reader, b);
    }
    reader_close(reader);
    c->values = values_of(&o->model, c);
    return err == PARAMO_OK && c->features <= FEATURES_MOST && c->values * PASSES_LEAST <= LEAST_VALUES &&
           c->rows >= ROWS_LEAST && c->others >= LEAST_OTHERS;
}

static uint32_t epochs_of(const struct census *c)
{
    const uint64_t a = VALUES_MOST / c->values, b = ROWS_LEARNED / c->rows, fits = a < b ? a : b;
    const uint64_t most = fits > PASSES_LEAST ? fits : PASSES_LEAST;
    uint32_t epochs = 0;
    for (uint64_t passes = 0; epochs < EPOCHS_MOST && passes < most; epochs++)
        passes += train_passes(epochs);
    return epochs;
}

static paramo_err begin_fold(const struct train_options *options, unsigned folds, unsigned fold,
                             uint32_t epochs, struct trial **trial)
{
    struct train_options o = *options;
    o.hold_out = 100 / folds;
    o.reader.folds = folds;
    o.reader.fold = fold;
    o.reader.disk_cache = NULL;
    o.reader.part_bytes = PART_BYTES;
    o.epochs = epochs;
    o.growing = o.alone = 1;
    o.workers = o.servers = 1;
    o.patience = 0;
    o.model_out = NULL;
    o.quiet = 2;
    return trial_new(&o, trial);
}

/* Learns the next epoch in all folds; sums: over them. *diverged: one has. */
static paramo_err learn_epoch(struct trial *const *fold, unsigned folds, uint32_t epoch, double sums[MSUMS],
                              int *diverged)
{
    paramo_err err = PARAMO_OK;
    *diverged = 0;
    memset(sums, 0, MSUMS * sizeof *sums);
    for (unsigned f = 0; err == PARAMO_OK && f < folds; f++) {
        struct tune_outcome outcome = {0};
        double guess = 0;
        err = trial_run(fold[f], epoch + 1, &outcome, &guess);
        if (err == PARAMO_OK)
            trial_held_out(fold[f], sums);
        *diverged |= err == PARAMO_OK && !isfinite(outcome.loss);
        if (err == PARAMO_OK && train_interrupted())
            err = paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not begun");
    }
    return err;
}

static paramo_err learn(const struct train_options *o, struct trial *const *fold, uint32_t epochs,
                        struct crossval *cv)
{
    int diverged = 0;
    uint32_t lower = 0; /* the last epoch that was, from 1 */
    for (uint32_t e = 0; e < epochs && e < lower + PATIENCE; e++) {
        double sums[MSUMS];
        paramo_err err = learn_epoch(fold, cv->folds, e, sums, &diverged);
        if (err != PARAMO_OK)
            return err;
        if (diverged)
            break;
        metric_sums_finish(&o->model.objective, sums, &cv->epoch[e]);
        if (lower == 0 || cv->epoch[e].loss < (1 - LOWER) * cv->epoch[lower - 1].loss)
            lower = e + 1;
        if (cv->epochs == 0 || cv->epoch[e].loss < cv->epoch[cv->epochs - 1].loss)
            cv->epochs = e + 1;
    }
    return PARAMO_OK;
}

paramo_err crossval_run(const struct train_options *options, struct crossval *cv)
{
    struct trial *fold[HOLDOUT_FOLDS_MAX] = {NULL};
    struct census census;
    *cv = (struct crossval){0};
    if (!is_wanted(options, &census))
        return PARAMO_OK;
    const double began = progress_now();
    const uint32_t epochs = epochs_of(&census);
    cv->rows = census.rows;
    cv->folds = census.rows > ROWS_OF_MANY ? CROSSVAL_FOLDS_OF_MANY : CROSSVAL_FOLDS;
    cv->epoch = calloc(epochs, sizeof *cv->epoch);
    paramo_err err = cv->epoch ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for the folds");
    for (unsigned f = 0; err == PARAMO_OK && f < cv->folds; f++)
        err = begin_fold(options, cv->folds, f, epochs, &fold[f]);
    if (err == PARAMO_OK)
        err = learn(options, fold, epochs, cv);
    for (unsigned f = 0; f < cv->folds; f++)
        trial_free(fold[f]);
    cv->seconds = progress_now() - began;
    if (err != PARAMO_OK && err != PARAMO_E_INTERRUPTED && err != PARAMO_E_MEMORY) { /* the job says why */
        cv->epochs = 0;
        return PARAMO_OK;
    }
    return err;
}

void crossval_apply(const struct crossval *cv, struct train_options *o)
{
    assert(cv->epochs > 0);
    o->epochs = cv->epochs;
    o->measured = cv->epoch;
    o->folds = cv->folds;
    o->growing = 1;
    o->reader.part_bytes = PART_BYTES;
    o->hold_out = 0;
    o->patience = 0;
}

void crossval_free(struct crossval *cv)
{
    free(cv->epoch);
    *cv = (struct crossval){0};
}
