/*
 * The names of keys: a dictionary from keys to the names that were hashed to them. It is gathered while rows are
 * parsed, and kept beside a model as names.tsv.
 *
 *     key<TAB>column<TAB>value        sorted by key; a number has no value
 *
 * Tabs, newlines and backslashes in names are \t, \n, \r and \\. If two names have the same key, the first one in the
 * order of bytes stays, so the file does not depend on the order of parsing. It never knows how names are hashed.
 * Tests: test/learn/test_names.c.
 */
#ifndef LEARN_DATA_NAMES_H
#define LEARN_DATA_NAMES_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

#define NAMES_FILE "names.tsv"

struct names;

PARAMO_MUST_USE paramo_err names_new(struct names **names);
void names_free(struct names *names); /* NULL is allowed */
/* Thread-safe. value NULL: the column is a number. Out of memory, the name is left out, and names_write fails. */
void names_note(struct names *names, uint64_t key, const char *column, size_t column_len, const char *value,
                size_t value_len);
size_t names_count(const struct names *names);
/* Writes the names, sorted, as a file of learn/io/output.h. */
PARAMO_MUST_USE paramo_err names_write(struct names *names, const char *path);

/* Reads a file that names_write wrote. NOT_FOUND: there is none; CORRUPT: with file and line. */
PARAMO_MUST_USE paramo_err names_load(const char *path, struct names **names);
/* "column<TAB>value", as in the file, or NULL. After names_load or names_write only. */
const char *names_find(const struct names *names, uint64_t key);

#endif
