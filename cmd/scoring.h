/*
 * What predict and eval have in common: a model, data for it, and a run of the one over the other.
 */
#ifndef CMD_SCORING_H
#define CMD_SCORING_H

#include "cmd/dataargs.h"
#include "learn/eval/score.h"

struct scoring {
    const struct options *options;
    /* from scoring_open on */
    struct model model;
    struct reader *reader;
};

/* -1, or the exit code after a message that names the missing option. */
int scoring_check(const struct scoring *scoring);
/* Opens model and data. The caller calls scoring_close afterwards, also after an error. */
PARAMO_MUST_USE paramo_err scoring_open(struct scoring *scoring);
/* Hands all rows' margins to rows; then says on standard error which lines were skipped, and if the model
 * knows next to nothing of the data. */
PARAMO_MUST_USE paramo_err scoring_run(struct scoring *scoring, score_rows_fn rows, void *arg);
void scoring_close(struct scoring *scoring);

#endif
