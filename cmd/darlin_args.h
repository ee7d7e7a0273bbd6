/*
 * The options of --solver darlin. Tests: test/e2e/darlin.sh.
 */
#ifndef CMD_DARLIN_ARGS_H
#define CMD_DARLIN_ARGS_H

#include "cmd/options.h"
#include "learn/train/train_options.h"
#include "learn/train/train_result.h"

#include <jansson.h>

/* Was --solver darlin given? */
int darlin_args_on(const struct options *s);
/* Reads them into o->darlin and o->model, which the other options have filled in. Refuses what does not fit. Returns
 * -1 or the exit code. Without darlin it refuses darlin's options. */
int darlin_args_apply(const struct options *s, struct train_options *o);
/* Adds the entries of a pass, and of the job, to --json; prints the table of the summary. */
void darlin_args_report(json_t *epoch, const struct train_epoch *e);
void darlin_args_settings(json_t *job, const struct train_options *o, const struct train_result *r);
void darlin_args_table(const struct train_result *r);

#endif
