/*
 * Replaces '*' in --columns by the columns of the first file that have no other role. It never knows of rows. Tests:
 * test/learn/test_csv.c.
 */
#ifndef LEARN_DATA_RESOLVE_COLUMNS_H
#define LEARN_DATA_RESOLVE_COLUMNS_H

#include "learn/data/columns.h"
#include "learn/data/formats.h"

/* Replaces the '*', if there is one. paths as in reader_open; INVALID: the first is standard input, which can be read
 * only once. */
PARAMO_MUST_USE paramo_err columns_resolve(struct columns *columns, enum parse_format format,
                                           const char *const *paths, size_t n);

#endif
