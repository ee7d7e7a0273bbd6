/*
 * The subcommands of `paramo data` that read files. Each returns the exit code. cmd_data.c has checked that the options
 * belong to the subcommand. Tests: test/e2e/data.sh.
 */
#ifndef CMD_DATA_FILES_H
#define CMD_DATA_FILES_H

#include "cmd/options.h"

int data_stat(const struct options *o);
int data_head(const struct options *o);
int data_split(const struct options *o);
int data_shuffle(const struct options *o);
int data_convert(const struct options *o);

#endif
