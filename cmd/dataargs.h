/*
 * The options for data that several verbs share: files, format, columns, bad lines, --cache and --plot. It never knows
 * what a verb does with the rows. Tests: test/e2e/cli.sh, tables.sh, plots.sh.
 */
#ifndef CMD_DATAARGS_H
#define CMD_DATAARGS_H

#include "cmd/options.h"
#include "learn/data/columns.h"
#include "learn/data/reader.h"

/* The format of --format. */
enum parse_format data_args_format(const struct options *o);
/* Initialises reader with these options. */
void data_args_apply(const struct options *o, struct reader_options *reader);
/* The columns of --columns in the files of --data; *columns NULL: it is not given. The caller releases them. Returns
 * -1, or the exit code after a message. */
int data_args_columns(const struct options *o, struct columns **columns);
/* Can the plot of --plot be written, and is it none of the files of --data and --valid? OK without --plot. */
PARAMO_MUST_USE paramo_err data_args_check_plot(const struct options *o);
/* Reports on standard error skipped lines, errors of --cache, and --interactions that add no feature. */
void data_args_report(const char *verb, const struct reader_stats *stats);

#endif
