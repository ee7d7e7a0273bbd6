/*
 * paramo tune: finds good options for `paramo train`. The search is in learn/tune/search.c, the reports are in tuning.c
 * and tuning_plot.c. Tests: test/e2e/tune.sh, test/learn/test_tune.c.
 */
#include "cmd/dataargs.h"
#include "cmd/exitcode.h"
#include "cmd/given.h"
#include "cmd/plots.h"
#include "cmd/train_args.h"
#include "cmd/tuning.h"
#include "cmd/verbs.h"
#include "learn/io/progress.h"
#include "learn/train/train.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: paramo tune --model MODEL --data FILE... [--trials N] [options]\n"
    "\n"
    "Trains a model with many settings and finds those of the lowest loss on rows that none of them learns:\n"
    "a tenth of the data, or --valid; few rows are cross-validated. Rates, penalties, sizes and --batch are "
    "drawn from ranges; an option\n"
    "that is given stays as it is. Nine settings at a time learn a ninth of --epochs (20). The best three of "
    "them continue to a\n"
    "third, and the best one to all epochs. Later settings lie near the best ones. The data is\n"
    "parsed once. At the end the best settings are printed, and the command line that trains them on\n"
    "all rows.\n";

static const char more[] =
    "With one worker the same command has the same result, unless --time ends the search. With --log\n"
    "FILE the same command continues a search that was killed. --model-out\n"
    "trains the best settings on all rows, for the epochs that were best, and saves the model.\n"
    "\n" CODE_HELP "\n"
    "  paramo tune --model fm --data train.ffm --trials 36 --log tune.jsonl \\\n"
    "      --plot tune.svg --model-out model\n"
    "  paramo tune --model lr --data train.ffm --time 60 --range alpha=0.01:0.5\n";

#define TRIALS 36 /* arbitrary: four rounds */

static volatile sig_atomic_t interrupted;

static void on_signal(int sig)
{
    (void)sig;
    if (interrupted)
        _exit(CODE_INTERRUPTED);
    interrupted = 1;
    (void)train_interrupt();
    static const char text[] = "paramo tune: ending the search; again to leave at once\n";
    ssize_t ignored = write(STDERR_FILENO, text, sizeof text - 1);
    (void)ignored;
}

/* ---- one training ---- */

static void show(const struct tuning *t, size_t trial, uint64_t epochs, const struct tune_outcome *o,
                 const char *settings)
{
    struct progress progress;
    const struct objective *objective = &t->base.model.objective;
    progress_init(&progress, t->base.quiet);
    progress_line(&progress, "trial %zu, %" PRIu64 " epoch%s: %s %.5f in %.1f s:%s", trial, epochs,
                  epochs == 1 ? "" : "s", objective->ops->loss, objective_shown(objective, o->loss),
                  o->seconds, settings);
}

/* Is there a trial at this place of standing? */
static int stands(const struct tuning *t, size_t place)
{
    return t->standing[place].trial || t->standing[place].folds;
}

/* tune_search.drop: ends a trial that learns no more epochs. */
static void drop(void *arg, size_t number)
{
    struct tuning *t = arg;
    for (size_t i = 0; i <= TUNE_KEPT; i++)
        if (stands(t, i) && t->standing[i].number == number) {
            trial_free(t->standing[i].trial);
            folds_free(t->standing[i].folds);
            t->standing[i].trial = NULL;
            t->standing[i].folds = NULL;
        }
}

static void drop_all(struct tuning *t)
{
    for (size_t i = 0; i <= TUNE_KEPT; i++)
        if (stands(t, i))
            drop(t, t->standing[i].number);
}

/* The place of a trial in standing: it is paused there, or is made now. *none: its model is too large for a
 * cross-validation, and there is no trial. */
static paramo_err standing(struct tuning *t, size_t number, const double *point, size_t *place, int *none)
{
    struct train_options o = t->base;
    struct crossval_plan plan = t->plan;
    size_t at = TUNE_KEPT + 1;
    *none = 0;
    for (size_t i = 0; i <= TUNE_KEPT; i++) {
        if (!stands(t, i))
            at = i;
        else if (t->standing[i].number == number) {
            *place = i;
            return PARAMO_OK;
        }
    }
    assert(at <= TUNE_KEPT); /* the search has dropped all but TUNE_KEPT trials */
    tune_apply(&t->space, point, &o);
    o.epochs = t->search.epochs;
    o.quiet = 2;
    o.deadline = t->deadline;
    t->standing[at].number = number;
    *place = at;
    if (t->plan.folds == 0) {
        o.rows = &t->rows;
        return trial_new(&o, &t->standing[at].trial);
    }
    paramo_err err = crossval_plan(&o, &plan);
    *none = err == PARAMO_OK && plan.folds == 0;
    return err != PARAMO_OK || *none ? err : folds_new(&o, plan.folds, plan.epochs, &t->standing[at].folds);
}

static paramo_err learn(struct tuning *t, size_t number, const double *point, uint64_t epochs,
                        struct tune_outcome *outcome)
{
    size_t at = 0;
    int none;
    paramo_err err = standing(t, number, point, &at, &none);
    if (err == PARAMO_OK && none)
        *outcome = (struct tune_outcome){.loss = (double)INFINITY, .ended = 1};
    if (err != PARAMO_OK || none)
        return err;
    if (t->plan.folds == 0)
        return trial_run(t->standing[at].trial, epochs, outcome, &t->guess);
    err = folds_run(t->standing[at].folds, epochs, outcome);
    if (err == PARAMO_OK && outcome->epochs > 0)
        t->guess = folds_epochs(t->standing[at].folds)[0].base;
    return err;
}

/* tune_search.train: the outcome comes from the journal, or from training. */
static paramo_err train_point(void *arg, size_t trial, const double *point, uint64_t epochs,
                              struct tune_outcome *outcome)
{
    struct tuning *t = arg;
    char settings[4096];
    int found = 0;
    (void)tune_text(&t->space, point, settings, sizeof settings);
    paramo_err err =
        t->journal ? journal_find(t->journal, trial, epochs, settings, outcome, &found) : PARAMO_OK;
    if (err != PARAMO_OK || found) {
        t->resumed += (uint64_t)found;
        return err;
    }
    if (interrupted || (t->deadline > 0 && progress_now() > t->deadline))
        return paramo_error_set(PARAMO_E_INTERRUPTED, "the search was interrupted");
    err = learn(t, trial, point, epochs, outcome);
    if (err != PARAMO_OK)
        return err;
    show(t, trial, epochs, outcome, settings);
    return t->journal ? journal_add(t->journal, trial, epochs, settings, outcome) : PARAMO_OK;
}

/* ---- settings ---- */

/* The options and the size of the data, by which the journal recognizes the search. NULL: no memory. The caller frees
 * it. */
static char *search_text(const struct tuning *t)
{
    static const enum option_id left_out[] = {OPT_TRIALS,    OPT_TUNE_TIME, OPT_TUNE_LOG, OPT_PLOT,
                                              OPT_MODEL_OUT, OPT_JSON,      OPT_QUIET};
    char *given = given_text(t->options, left_out, sizeof left_out / sizeof *left_out), *text = NULL;
    const uint64_t valid = t->rows.valid ? reader_size(t->rows.valid) : 0,
                   bytes = t->rows.reader ? reader_size(t->rows.reader) + valid : 0;
    if (given && (t->plan.folds > 0 ? asprintf(&text, "%s, on %u folds of %" PRIu64 " rows", given,
                                               t->plan.folds, t->plan.rows)
                                    : asprintf(&text, "%s, on %" PRIu64 " bytes", given, bytes)) < 0)
        text = NULL;
    free(given);
    return text;
}

/* The command line that trains the best settings on all rows. NULL: no memory. The caller frees it. */
static char *command_text(const struct tuning *t)
{
    static const enum option_id left_out[] = {OPT_TRIALS, OPT_TUNE_TIME, OPT_TUNE_LOG, OPT_PLOT,
                                              OPT_JSON,   OPT_QUIET,     OPT_RANGE,    OPT_EPOCHS,
                                              OPT_VALID,  OPT_HOLD_OUT,  OPT_PATIENCE};
    const struct tune_trial *best = &t->search.trial[t->search.best];
    char settings[4096], long_enough[64] = "";
    char *given = given_text(t->options, left_out, sizeof left_out / sizeof *left_out), *text = NULL;
    (void)tune_text(&t->space, best->point, settings, sizeof settings);
    if (t->plan.folds == 0) /* with folds, train cross-validates, and finds the same number of epochs */
        (void)snprintf(long_enough, sizeof long_enough, " --epochs %" PRIu64 " --hold-out 0",
                       best->outcome.epochs);
    if (given && asprintf(&text, "paramo train%s%s%s%s", given, settings, long_enough,
                          option_given(t->options, OPT_MODEL_OUT) ? "" : " --model-out model") < 0)
        text = NULL;
    free(given);
    return text;
}

/* Tunes all options that are not given. Returns -1, or the exit code. */
static int make_space(struct tuning *t)
{
    const struct options *s = t->options;
    const struct option_list *ranges = option_list(s, OPT_RANGE);
    tune_space_init(&t->space, &t->base.model);
    for (size_t i = t->space.n; i-- > 0;)
        if (given_by_name(s, t->space.option[i].name))
            tune_space_drop(&t->space, t->space.option[i].name);
    for (size_t i = 0; i < ranges->n; i++) {
        const char *wrong = tune_space_range(&t->space, ranges->item[i]);
        if (wrong)
            return options_wrong(s, "--range %s: %s", ranges->item[i], wrong);
    }
    return t->space.n > 0 ? -1
                          : options_wrong(s, "every option of the model is given: nothing is left to tune");
}

static int make_tuning(struct tuning *t)
{
    const struct options *s = t->options;
    int code = train_args_read(s, &t->base);
    if (code >= 0)
        return code;
    if (t->base.valid_n == 0 && t->base.hold_out == 0)
        return options_wrong(
            s, "trials are compared on rows that none of them learns: --hold-out or --valid is missing");
    t->search.most = option_given(s, OPT_TRIALS)      ? (size_t)option_number(s, OPT_TRIALS)
                     : option_given(s, OPT_TUNE_TIME) ? TUNE_TRIALS_MAX
                                                      : TRIALS;
    t->search.seed = option_number(s, OPT_TRAIN_SEED);
    t->search.epochs = t->base.epochs > 0 ? t->base.epochs : TRAIN_EPOCHS;
    t->base.patience =
        option_given(s, OPT_PATIENCE) ? (uint32_t)option_number(s, OPT_PATIENCE) : TRAIN_PATIENCE;
    t->base.model_out = NULL;
    return make_space(t);
}

/* ---- the search ---- */

/* Checks the files to write, before any work. */
static paramo_err check_outputs(const struct tuning *t)
{
    const char *out = option_text(t->options, OPT_MODEL_OUT);
    paramo_err err = data_args_check_plot(t->options);
    return err == PARAMO_OK && out ? modelio_prepare(out) : err;
}

/* Opens the rows, if there are no folds. */
static paramo_err open_rows(struct tuning *t)
{
    for (size_t i = 0; i < t->base.data_n; i++)
        if (strcmp(t->base.data[i], "-") == 0)
            return paramo_error_set(PARAMO_E_INVALID,
                                    "standard input cannot be read a second time, and the best settings are "
                                    "trained on all rows at the end: give a file");
    paramo_err err = train_rows_open(&t->base, &t->rows);
    if (err == PARAMO_OK && !t->rows.valid && t->rows.hold_out == 0)
        err = paramo_error_set(PARAMO_E_INVALID,
                               "%s: has too few rows to hold out rows of both labels: give --valid",
                               t->base.data[0]);
    return err;
}

static paramo_err open_all(struct tuning *t)
{
    const char *path = option_text(t->options, OPT_TUNE_LOG);
    paramo_err err = check_outputs(t);
    if (err == PARAMO_OK && train_args_left_open(t->options, &t->base))
        err = crossval_plan(&t->base, &t->plan);
    t->search.growing = t->plan.folds > 0;
    t->search.epochs = t->search.growing ? t->plan.epochs : t->search.epochs;
    t->base.epochs = t->search.epochs;
    if (err == PARAMO_OK && t->plan.folds == 0)
        err = open_rows(t);
    struct model_info known = t->base.model;
    known.row_features = t->plan.folds > 0 ? t->plan.row_features : t->rows.row_features;
    tune_space_rows(&t->space, &known);
    char *search = err == PARAMO_OK ? search_text(t) : NULL;
    if (err == PARAMO_OK && !search)
        err = paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    if (err == PARAMO_OK && path)
        err = journal_open(path, search, &t->journal);
    free(search);
    return err;
}

/* Trains the best settings on all rows, and saves the model. */
static paramo_err train_best(struct tuning *t)
{
    const struct tune_trial *best = &t->search.trial[t->search.best];
    struct train_options o = t->base;
    struct train_result result;
    tune_apply(&t->space, best->point, &o);
    o.epochs = best->outcome.epochs;
    o.valid_n = 0;
    o.hold_out = 0;
    o.quiet = 1;
    o.model_out = option_text(t->options, OPT_MODEL_OUT);
    struct crossval cv = {0};
    paramo_err err = t->plan.folds > 0 ? crossval_run(&o, &cv) : PARAMO_OK;
    if (cv.epochs > 0)
        crossval_apply(&cv, &o);
    o.patience = 0;
    if (err == PARAMO_OK) {
        err = train_run(&o, &result);
        t->saved = result.saved;
        train_result_free(&result);
    }
    crossval_free(&cv);
    return err;
}

static paramo_err search(struct tuning *t)
{
    const double seconds = (double)option_number(t->options, OPT_TUNE_TIME);
    t->began = progress_now();
    t->deadline = option_given(t->options, OPT_TUNE_TIME) ? t->began + seconds : 0;
    paramo_err err = open_all(t);
    if (err != PARAMO_OK)
        return err;
    t->search.space = &t->space;
    t->search.train = train_point;
    t->search.drop = drop;
    t->search.arg = t;
    err = tune_search_run(&t->search);
    drop_all(t);
    t->cut = err == PARAMO_E_INTERRUPTED;
    if (err != PARAMO_OK && !t->cut)
        return err;
    if (t->search.trained == 0 && !interrupted)
        return paramo_error_set(PARAMO_E_TIMEOUT, "no trial ended within --time: give the search more time");
    if (t->search.trained > 0 && !isfinite(t->search.trial[t->search.best].outcome.loss))
        return paramo_error_set(PARAMO_E_NUMERIC, "all trials diverged; a --range with lower rates may help");
    if (t->search.trained > 0 && !(t->command = command_text(t)))
        return paramo_error_set(PARAMO_E_MEMORY, "out of memory");
    if (t->search.trained > 0 && !interrupted && option_text(t->options, OPT_MODEL_OUT))
        return train_best(t);
    return PARAMO_OK;
}

/* Prints the result of a search. Returns the exit code. */
static int print(struct tuning *t)
{
    const char *plot = option_text(t->options, OPT_PLOT);
    const int ok = option_flag(t->options, OPT_JSON) ? tuning_print_json(t) : tuning_print(t);
    if (!ok)
        return code_fail("tune", PARAMO_E_IO, "standard output cannot be written");
    paramo_err err = plot && t->search.trained > 0 ? tuning_plot(t, plot) : PARAMO_OK;
    if (err != PARAMO_OK)
        return code_fail("tune", err, paramo_last_error());
    if (interrupted)
        return CODE_INTERRUPTED;
    if (t->guess > 0 && t->search.trial[t->search.best].outcome.loss >= t->guess) {
        (void)fprintf(
            stderr,
            "paramo tune: warning: the best trial is no better than guessing the mean rate for each row\n");
        return CODE_QUALITY;
    }
    return CODE_DONE;
}

int cmd_tune(int argc, char **argv)
{
    struct options o;
    struct tuning t = {.options = &o};
    int code = options_parse(&o, VERB_TUNE, argc, argv, usage, more);
    if (code < 0)
        code = make_tuning(&t);
    if (code < 0) {
        struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
        (void)sigaction(SIGINT, &action, NULL);
        (void)sigaction(SIGTERM, &action, NULL);
        paramo_err err = search(&t);
        code = err == PARAMO_OK              ? print(&t)
               : err == PARAMO_E_INTERRUPTED ? CODE_INTERRUPTED
                                             : train_args_failed(&o, &t.base, err);
    }
    free(t.command);
    tune_search_free(&t.search);
    journal_close(t.journal);
    train_rows_close(&t.rows);
    columns_release(t.base.model.columns);
    options_free(&o);
    return code;
}
