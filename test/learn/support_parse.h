/* What the tests of parsers share: the rows and the bad lines of the last text, and the columns of a table. */
#ifndef TEST_LEARN_SUPPORT_PARSE_H
#define TEST_LEARN_SUPPORT_PARSE_H

#include "learn/data/columns.h"
#include "learn/data/parse.h"

#define BADS_MAX 16

extern struct parse_buffer buffer;
extern uint64_t bad_lines[BADS_MAX];
extern char bad_text[BADS_MAX][256];
extern int bads;

/* Parses text[0..len), of which a sanitizer sees the end, into buffer, and bad lines into bads. */
void parse_with(const struct parse_settings *settings, const char *text, size_t len);
/* The text of the first bad line begins so; row is for the message. */
void bad_begins(const char *row, const char *what);
/* A parse_bad_fn that goes on and keeps nothing. */
paramo_err bad_any(void *arg, uint64_t line, const char *what);
/* Of --columns; the caller releases them. */
struct columns *columns_of(const char *text);
/* For cmocka: frees the buffer, and removes the files of support_text.h. */
int parse_teardown(void **state);

#endif
