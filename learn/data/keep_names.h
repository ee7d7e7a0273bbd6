/*
 * Gathers the names of a model's features by reading its data again. It never knows of models. Tests:
 * test/e2e/tables.sh.
 */
#ifndef LEARN_DATA_KEEP_NAMES_H
#define LEARN_DATA_KEEP_NAMES_H

#include "learn/data/names.h"
#include "learn/data/reader.h"

/* Before training: do the features of any file have names? FORMAT: no. A file that cannot be opened, or whose format
 * cannot be detected, is left to the reader, which reports it. */
PARAMO_MUST_USE paramo_err keep_names_check(const struct reader_options *options, const char *const *paths,
                                            size_t paths_n);
/* Writes dir/names.tsv. options are those that the data was learned with. *n: the number of names; 0: the rows have no
 * features, and there is no file. */
PARAMO_MUST_USE paramo_err keep_names(const struct reader_options *options, const char *const *paths,
                                      size_t paths_n, const char *dir, size_t *n);

#endif
