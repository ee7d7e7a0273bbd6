#include "learn/tune/crossval.h"

#include "learn/data/holdout.h"
#include "learn/io/input.h"
#include "learn/io/kept_pipe.h"
#include "learn/io/progress.h"
#include "learn/train/rows.h"
#include "learn/tune/folds.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* All arbitrary: some seconds at most. docs/TRAINING.md, "Few rows". */
#define BYTES_MOST    (8u << 20) /* of the files */
#define FEATURES_MOST (1u << 19) /* of all rows */
#define VALUES_MOST   (1u << 25) /* values of the model that a fold learns over all passes, about */
#define ROWS_LEARNED  (1u << 19) /* rows that a fold learns over all passes, about */
#define LEAST_VALUES  (1u << 27) /* values that PASSES_LEAST passes learn, at most: more rows are not few */
#define PASSES_LEAST  20         /* as in a job that is not cross-validated */
#define EPOCHS_MOST   20         /* with train_passes: 2,398 passes */
#define ROWS_LEAST    10
#define LEAST_OTHERS  2    /* rows of another label: one is in a fold, and its other folds learn one */
#define ROWS_OF_MANY  1000 /* more rows are dealt to CROSSVAL_FOLDS_OF_MANY folds */

/* The counts that decide whether to cross-validate, and for how long. */
struct census {
    uint64_t rows, features, present; /* features: with a bias of each row; present: without, if not 0 */
    uint64_t values;                  /* of the model, that a pass learns */
    uint16_t field;                   /* the greatest */
    float first;                      /* label */
    uint64_t others;                  /* rows with another label than the first */
};

/* The bytes of a file or pipe; a pipe is kept. More than `most`: it is too large, or cannot be read. */
static paramo_err size_of(const char *name, uint64_t most, uint64_t *bytes)
{
    struct stat s;
    size_t kept = 0;
    int whole = 0;
    const int is_stdin = strcmp(name, "-") == 0;
    *bytes = most + 1;
    if (!is_stdin && stat(name, &s) != 0)
        return PARAMO_OK; /* the job reports the error */
    if (!is_stdin && S_ISREG(s.st_mode)) {
        *bytes = (uint64_t)s.st_size;
        return PARAMO_OK;
    }
    if (!is_stdin && S_ISDIR(s.st_mode))
        return PARAMO_OK;
    paramo_err err = kept_pipe_read(name, (size_t)most, train_interrupted, &kept, &whole);
    *bytes = err == PARAMO_OK && whole ? kept : most + 1;
    return err == PARAMO_E_INTERRUPTED ? err : PARAMO_OK;
}

/* Are all files small? */
static paramo_err are_small(const struct train_options *o, int *small)
{
    char **names = NULL;
    size_t n = 0;
    uint64_t left = BYTES_MOST, bytes = 0;
    paramo_err err = PARAMO_OK;
    *small = input_expand(o->data, o->data_n, &names, &n) == PARAMO_OK;
    for (size_t i = 0; *small && err == PARAMO_OK && i < n; i++, left -= *small ? bytes : 0) {
        err = size_of(names[i], left, &bytes);
        *small = err == PARAMO_OK && bytes <= left;
    }
    input_free_names(names, n);
    return err;
}

static void count(struct census *c, const struct block *b)
{
    if (c->rows == 0 && b->rows > 0)
        c->first = b->label[0];
    for (size_t r = 0; r < b->rows; r++)
        c->others += b->label[r] != c->first;
    for (size_t i = 0; i < b->features; i++)
        c->present += !b->value || b->value[i] != 0;
    for (size_t i = 0; b->field && i < b->features; i++)
        c->field = b->field[i] > c->field ? b->field[i] : c->field;
    c->rows += b->rows;
    c->features += b->features + b->rows; /* and the bias */
}

/* The values of features' rows that a pass learns. */
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
static paramo_err is_wanted(const struct train_options *o, struct census *c, int *wanted)
{
    struct reader *reader = NULL;
    const struct block *b = NULL;
    struct reader_options options;
    *c = (struct census){0};
    paramo_err err = are_small(o, wanted);
    if (err != PARAMO_OK || !*wanted)
        return err;
    rows_options(o, &o->model, &options);
    err = reader_open(&options, o->data, o->data_n, &reader);
    while (err == PARAMO_OK && c->features <= FEATURES_MOST) {
        err = reader_next(reader, &b);
        if (err != PARAMO_OK || !b)
            break;
        count(c, b);
        reader_release(reader, b);
    }
    reader_close(reader);
    c->values = values_of(&o->model, c);
    *wanted = err == PARAMO_OK && c->features <= FEATURES_MOST && c->values * PASSES_LEAST <= LEAST_VALUES &&
              c->rows >= ROWS_LEAST && c->others >= LEAST_OTHERS;
    return PARAMO_OK; /* the job reports an error of the rows */
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

paramo_err crossval_plan(const struct train_options *options, struct crossval_plan *plan)
{
    struct census census;
    int wanted = 0;
    *plan = (struct crossval_plan){0};
    paramo_err err = is_wanted(options, &census, &wanted);
    if (wanted)
        *plan = (struct crossval_plan){.rows = census.rows,
                                       .epochs = epochs_of(&census),
                                       .row_features = (double)census.present / (double)census.rows,
                                       .folds = census.rows > ROWS_OF_MANY ? CROSSVAL_FOLDS_OF_MANY
                                                                           : CROSSVAL_FOLDS};
    return err;
}

/* Keeps the metrics of n epochs. */
static paramo_err take(struct crossval *cv, const struct metrics_result *epoch, uint64_t n)
{
    cv->epoch = malloc(n * sizeof *cv->epoch);
    if (!cv->epoch)
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory for the folds");
    memcpy(cv->epoch, epoch, n * sizeof *epoch);
    cv->epochs = n;
    return PARAMO_OK;
}

paramo_err crossval_run(const struct train_options *options, struct crossval *cv)
{
    struct crossval_plan plan;
    struct folds *folds = NULL;
    struct tune_outcome outcome = {0};
    const double began = progress_now();
    *cv = (struct crossval){0};
    paramo_err err = crossval_plan(options, &plan);
    if (err != PARAMO_OK || plan.folds == 0)
        return err;
    cv->rows = plan.rows;
    cv->folds = plan.folds;
    err = folds_new(options, plan.folds, plan.epochs, &folds);
    if (err == PARAMO_OK)
        err = folds_run(folds, plan.epochs, &outcome);
    if (err == PARAMO_OK && outcome.epochs > 0)
        err = take(cv, folds_epochs(folds), outcome.epochs);
    folds_free(folds);
    cv->seconds = progress_now() - began;
    /* the job has other errors, too, and reports them */
    return err == PARAMO_E_INTERRUPTED || err == PARAMO_E_MEMORY ? err : PARAMO_OK;
}

void crossval_apply(const struct crossval *cv, struct train_options *o)
{
    assert(cv->epochs > 0);
    o->epochs = cv->epochs;
    o->measured = cv->epoch;
    o->folds = cv->folds;
    o->growing = 1;
    o->reader.part_bytes = FOLDS_PART_BYTES;
    o->hold_out = 0;
    o->patience = 0;
}

void crossval_free(struct crossval *cv)
{
    free(cv->epoch);
    *cv = (struct crossval){0};
}
