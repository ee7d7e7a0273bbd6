#include "learn/tune/folds.h"

#include "learn/data/holdout.h"
#include "learn/io/progress.h"
#include "learn/tune/trial.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 3    /* epochs without a lower loss; arbitrary: the loss along a path has one minimum */
#define LOWER    1e-3 /* a loss counts as lower if it falls by this share; arbitrary */

struct folds {
    struct objective objective;
    unsigned n;
    struct trial *fold[HOLDOUT_FOLDS_MAX];
    uint32_t most;                 /* epochs */
    uint32_t learned, best, lower; /* epochs, from 1; lower: the last one that was lower by more than LOWER */
    int ended;
    struct metrics_result *epoch; /* [most] */
};

static paramo_err begin_fold(const struct train_options *options, const struct folds *folds, unsigned fold,
                             struct trial **trial)
{
    struct train_options o = *options;
    o.hold_out = 100 / folds->n;
    o.reader.folds = folds->n;
    o.reader.fold = fold;
    o.reader.disk_cache = NULL;
    o.reader.part_bytes = FOLDS_PART_BYTES;
    o.epochs = folds->most;
    o.growing = o.alone = 1;
    o.workers = o.servers = 1;
    o.patience = 0;
    o.model_out = NULL;
    o.rows = NULL;
    o.quiet = 2;
    return trial_new(&o, trial);
}

paramo_err folds_new(const struct train_options *options, unsigned n, uint32_t epochs, struct folds **folds)
{
    assert(n > 1 && n <= HOLDOUT_FOLDS_MAX && epochs > 0);
    struct folds *f = calloc(1, sizeof *f);
    if (f) {
        f->objective = options->model.objective;
        f->n = n;
        f->most = epochs;
        f->epoch = calloc(epochs, sizeof *f->epoch);
    }
    paramo_err err =
        f && f->epoch ? PARAMO_OK : paramo_error_set(PARAMO_E_MEMORY, "out of memory for the folds");
    for (unsigned i = 0; err == PARAMO_OK && i < n; i++)
        err = begin_fold(options, f, i, &f->fold[i]);
    if (err != PARAMO_OK) {
        folds_free(f);
        return err;
    }
    *folds = f;
    return PARAMO_OK;
}

/* Learns the next epoch in all folds. sums: over all of them. *diverged: a fold has diverged. */
static paramo_err learn_epoch(const struct folds *f, double sums[MSUMS], int *diverged)
{
    paramo_err err = PARAMO_OK;
    *diverged = 0;
    memset(sums, 0, MSUMS * sizeof *sums);
    for (unsigned i = 0; err == PARAMO_OK && i < f->n; i++) {
        struct tune_outcome outcome = {0};
        double guess = 0;
        err = trial_run(f->fold[i], f->learned + 1, &outcome, &guess);
        if (err == PARAMO_OK)
            trial_held_out(f->fold[i], sums);
        *diverged |= err == PARAMO_OK && !isfinite(outcome.loss);
        if (err == PARAMO_OK && train_interrupted())
            err = paramo_error_set(PARAMO_E_INTERRUPTED, "interrupted: the training has not begun");
    }
    return err;
}

/* Adds the metrics of an epoch, and finds the best one so far. */
static void judge(struct folds *f, const double sums[MSUMS])
{
    struct metrics_result *last = &f->epoch[f->learned];
    metric_sums_finish(&f->objective, sums, last);
    f->learned++;
    if (f->lower == 0 || last->loss < (1 - LOWER) * f->epoch[f->lower - 1].loss)
        f->lower = f->learned;
    if (f->best == 0 || last->loss < f->epoch[f->best - 1].loss)
        f->best = f->learned;
}

paramo_err folds_run(struct folds *f, uint64_t epochs, struct tune_outcome *outcome)
{
    const double began = progress_now();
    while (!f->ended && f->learned < epochs) {
        double sums[MSUMS];
        paramo_err err = learn_epoch(f, sums, &f->ended);
        if (err != PARAMO_OK)
            return err;
        if (!f->ended)
            judge(f, sums);
        f->ended |= f->learned == f->most || f->learned >= f->lower + PATIENCE;
    }
    *outcome = (struct tune_outcome){.loss = f->best > 0 ? f->epoch[f->best - 1].loss : (double)INFINITY,
                                     .epochs = f->best,
                                     .ended = f->ended,
                                     .seconds = progress_now() - began};
    return PARAMO_OK;
}

const struct metrics_result *folds_epochs(const struct folds *f)
{
    return f->epoch;
}

void folds_free(struct folds *f)
{
    for (unsigned i = 0; f && i < f->n; i++)
        trial_free(f->fold[i]);
    if (f)
        free(f->epoch);
    free(f);
}
