/*
 * Shared by predict, eval and explain: opens the model and its data, and scores all rows. It never knows what a verb
 * does with the scores. Tests: test/e2e/train.sh, explain.sh.
 */
#ifndef CMD_SCORING_H
#define CMD_SCORING_H

#include "cmd/dataargs.h"
#include "learn/eval/score.h"

struct scoring {
    const struct options *options;
    /* set by scoring_open */
    struct model model;
    struct reader *reader;
};

/* -1, or the exit code after a message that names the missing option. */
int scoring_check(const struct scoring *scoring);
/* Opens model and data. The caller calls scoring_close afterwards, also after an error. */
PARAMO_MUST_USE paramo_err scoring_open(struct scoring *scoring);
/* Gives the margins of all rows to `rows`. Then reports on standard error how many lines were skipped, and warns if the
 * model has almost none of the data's features. */
PARAMO_MUST_USE paramo_err scoring_run(struct scoring *scoring, score_rows_fn rows, void *arg);
void scoring_close(struct scoring *scoring);

#endif
