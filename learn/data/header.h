/*
 * The header of a table with delimiters (RFC 4180): the names of its columns, and their roles (columns.h).
 *
 * A record ends at a newline before which the number of quotes is even. This rule holds for the header, for parts of
 * files (stream.h) and for the rows (parse_csv.c). It never knows of values. Tests: test/learn/test_csv.c.
 */
#ifndef LEARN_DATA_HEADER_H
#define LEARN_DATA_HEADER_H

#include "learn/data/columns.h"

#include <stddef.h>

/* The columns of one file. */
struct table_plan {
    char delimiter;
    size_t n;                    /* columns of the file */
    const struct column *use[1]; /* [n]; NULL: ignored */
};

/* A header, cut into its cells. */
struct table_header {
    char delimiter;
    size_t n;
    char **name; /* [n], without the blanks around them */
    size_t *len; /* [n] */
};

/* FORMAT, with the way to convert it, if a file that begins with text is UTF-16, or one JSON array of objects. */
PARAMO_MUST_USE paramo_err table_text_check(const char *text, size_t len);
/* The number of cells of the record. */
size_t table_cells(const char *record, size_t len, char delimiter);

/* The newline that ends the record in which p lies, or NULL. *odd: is the number of quotes before p odd? On return, the
 * same for the newline, or for end. */
const char *table_record_end(const char *p, const char *end, int *odd);
/* Is the number of quotes in p..end odd? */
int table_quotes_odd(const char *p, const char *end);

/* The one of comma, semicolon, tab and bar that the first record has most often; a comma if it has none. */
char table_sniff(const char *text, size_t len);
/* Reads the first record. delimiter 0: table_sniff. whole: text is the whole file. FORMAT: the record has no end, its
 * quotes are not those of RFC 4180, or table_text_check refuses the text. */
PARAMO_MUST_USE paramo_err table_header_read(const char *text, size_t len, int whole, char delimiter,
                                             struct table_header *header);
/* Adds a copy of a name. The caller zeroes header before the first one. */
PARAMO_MUST_USE paramo_err table_header_add(struct table_header *header, const char *name, size_t len);
void table_header_free(struct table_header *header);
/* "a, b, c, ...": for messages. */
#define TABLE_LIST_MAX 200
const char *table_header_list(const struct table_header *header, char out[TABLE_LIST_MAX]);

/* Matches the columns with the header; the caller frees the plan. FORMAT: a column is missing (label and weight may be,
 * if they are not `needed`), or occurs twice. The plan points into columns. */
PARAMO_MUST_USE paramo_err table_plan_new(const struct columns *columns, const struct table_header *header,
                                          int needed, struct table_plan **plan);

#endif
