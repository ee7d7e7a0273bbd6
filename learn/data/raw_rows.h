/*
 * The rows of files as text, one after the other: lines, or records of tables with a header (header.h). For functions
 * that move rows without parsing them. One thread. It never knows what a row means. Tests: test/learn/test_raw_rows.c.
 */
#ifndef LEARN_DATA_RAW_ROWS_H
#define LEARN_DATA_RAW_ROWS_H

#include "learn/data/formats.h"
#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

struct raw_rows;

/* paths as in reader_open. */
PARAMO_MUST_USE paramo_err raw_rows_open(enum parse_format format, const char *const *paths, size_t n,
                                         struct raw_rows **rows);
void raw_rows_close(struct raw_rows *rows); /* NULL is allowed */

/* The next row with its newline, valid until the next call; *text NULL: there is none. Empty lines, and comments in
 * formats that have them, are left out. FORMAT with file and line: a row has no end or not the header's number of
 * columns, a header is not that of the first file, or table_text_check refuses a file. */
PARAMO_MUST_USE paramo_err raw_rows_next(struct raw_rows *rows, const char **text, size_t *len);
/* The header of the first file, with its newline, after the first raw_rows_next; len 0: there is none. */
const char *raw_rows_header(const struct raw_rows *rows, size_t *len);
/* Bytes of all files; 0: one of them is a pipe or compressed. */
uint64_t raw_rows_size(const struct raw_rows *rows);

#endif
