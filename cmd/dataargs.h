/*
 * What the options that train, predict and eval share say: which data, in which format.
 */
#ifndef CMD_DATAARGS_H
#define CMD_DATAARGS_H

#include "cmd/options.h"
#include "learn/data/columns.h"
#include "learn/data/reader.h"

/* --format. */
enum parse_format data_args_format(const struct options *o);
/* Into reader, which it initialises. */
void data_args_apply(const struct options *o, struct reader_options *reader);
/* What --columns says of the files of --data; *columns NULL: it is not given. The caller releases it. Returns -1, or
 * the exit code after a message. */
int data_args_columns(const struct options *o, struct columns **columns);
/* Can the plot of --plot be written, and is it none of the files of --data and --valid? OK without --plot. */
PARAMO_MUST_USE paramo_err data_args_check_plot(const struct options *o);
/* Says on standard error how many lines were skipped, if any were, and what went wrong with --cache. */
void data_args_report(const char *verb, const struct reader_stats *stats);

#endif
