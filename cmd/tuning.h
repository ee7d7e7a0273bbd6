/*
 * A search of `paramo tune`, and its reports: a table with the best command line, a document, and a plot. The functions
 * never know how the search chooses its trials. Tests: test/e2e/tune.sh.
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
    struct train_options base; /* the options of each trial, except those that are tuned */
    struct tune_space space;
    struct tune_search search;
    struct crossval_plan plan; /* folds 0: a part of the rows is held out, or --valid measures */
    struct train_rows rows;    /* open if there are no folds */
    struct {
        struct trial *trial; /* NULL: none */
        struct folds *folds; /* instead of trial, if few rows are cross-validated */
        size_t number;       /* of the trial */
    } standing[TUNE_KEPT +
               1];           /* trials that may learn more epochs; one of them runs, the others are paused */
    struct journal *journal; /* NULL: none is kept */
    double began, deadline;  /* deadline 0: none */
    double guess;            /* loss of the same guess for each row; 0: not known */
    uint64_t resumed;        /* trainings whose outcome was in the journal */
    int cut;                 /* the time was over, or the search was interrupted */
    char *command;           /* "paramo train ..." with the best settings; NULL: no trial has ended */
    int saved;               /* the best model is in the folder of --model-out */
};

/* Prints the table of the best trials and the best command line, at most 80 columns wide. Returns 0 if standard output
 * cannot be written. */
int tuning_print(const struct tuning *t);
/* Prints the document of --json. Returns 0 if it cannot be written. */
int tuning_print_json(const struct tuning *t);
PARAMO_MUST_USE paramo_err tuning_plot(const struct tuning *t, const char *path);

#endif
