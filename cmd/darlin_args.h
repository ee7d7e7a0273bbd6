/*
 * The options of --solver darlin, and its part of the reports. It never knows how darlin solves. Tests:
 * test/e2e/darlin.sh.
 */
#ifndef CMD_DARLIN_ARGS_H
#define CMD_DARLIN_ARGS_H

#include "cmd/options.h"
#include "learn/train/train_options.h"
#include "learn/train/train_result.h"

#include <jansson.h>

/* Was --solver darlin given? */
int darlin_args_on(const struct options *s);
/* Reads them into o->darlin and o->model, which the other options have filled in. Refuses options that darlin does not
 * have, and without --solver darlin those that only darlin has. Returns -1 or the exit code. */
int darlin_args_apply(const struct options *s, struct train_options *o);
/* Adds a pass to its entry in the document of --json. */
void darlin_args_report(json_t *epoch, const struct train_epoch *e);
/* Adds the settings and the result of the solver to that document. */
void darlin_args_settings(json_t *job, const struct train_options *o, const struct train_result *r);
/* Prints the table of passes of the summary. */
void darlin_args_table(const struct train_result *r);

#endif
