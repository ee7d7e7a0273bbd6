/*
 * The keys of a JSON object in a line, for messages and for '*' (columns.h). It never knows of values. Tests:
 * test/learn/test_jsonl.c.
 */
#ifndef LEARN_DATA_PARSE_JSONL_H
#define LEARN_DATA_PARSE_JSONL_H

#include "learn/data/header.h"

/* Does the text begin with an object, after blanks and empty lines? */
int jsonl_begins(const char *text, size_t len);
/* The keys of the first object, as the names of a header; the caller calls table_header_free. FORMAT: the object is not
 * complete in its line. */
PARAMO_MUST_USE paramo_err jsonl_keys(const char *text, size_t len, struct table_header *keys);

#endif
