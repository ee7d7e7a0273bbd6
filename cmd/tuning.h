/*
 * A search of `paramo tune`, with what its verb shows of it: a table, a document, a plot, and the command line of the
 * best. Tests: test/e2e/tune.sh.
 */
#ifndef CMD_TUNING_H
#define CMD_TUNING_H

#include "cmd/options.h"
#include "learn/tune/crossval.h"
#include "learn/tune/folds.h"
#include "learn/tune/journal.h"
#include "learn/tune/trial.h"

struct tuning {
    const struct options *options;
    struct train_options base; /* of each trial, except what is tuned */
    struct tune_space space;
    struct tune_search search;
    struct crossval_plan plan; /* folds 0: a part of the rows is held out, or --valid measures */
    struct train_rows rows;    /* without folds */
    struct {
        struct trial *trial; /* NULL: none */
        struct folds *folds; /* instead, of few rows */
        size_t number;
    } standing[TUNE_KEPT + 1]; /* that may learn more epochs; one of them runs */
    struct journal *journal;   /* NULL: none is kept */
    double began, deadline;    /* deadline 0: none */
    double guess;              /* loss of the same guess for each row; 0: not known */
    uint64_t resumed;          /* trainings that the journal had */
    int cut;                   /* the time was over, or the search was interrupted */
    char *command;             /* "paramo train ..." of the best; NULL: nothing was trained */
    int saved;
};

/* The table of the best trials and the command line, at most 80 columns wide. Returns 0 if it cannot be written. */
int tuning_print(const struct tuning *t);
/* The document of --json. */
int tuning_print_json(const struct tuning *t);
PARAMO_MUST_USE paramo_err tuning_plot(const struct tuning *t, const char *path);

#endif
