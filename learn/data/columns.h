/*
 * The roles of a table's columns, by name: label, weight, category, number. They come from `--columns
 * label=click,cat=site;app,num=age`, and are kept in a model's manifest.
 *
 * Each feature column is a field, numbered in the order of the text. The value of a category gives a feature of value
 * 1 whose key is a hash of column name and value; a number gives a feature whose key is a hash of the column's name.
 * Columns that are not named are ignored. `cat=*` or `num=*` stands for all others, until columns_resolve
 * (resolve_columns.h) replaces it. It never knows of files and lines. Tests: test/learn/test_columns.c.
 */
#ifndef LEARN_DATA_COLUMNS_H
#define LEARN_DATA_COLUMNS_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

enum column_role {
    COLUMN_IGNORED,
    COLUMN_LABEL,
    COLUMN_WEIGHT,
    COLUMN_CATEGORY,
    COLUMN_NUMBER,
    COLUMN_ROLES
};

struct column {
    char *name; /* UTF-8, with a NUL after it */
    size_t len;
    enum column_role role;
    uint16_t field; /* of features, from 0 */
    uint64_t seed;  /* of the hashes of its values */
    uint64_t key;   /* of a number, before hash_bits */
};

/* Has a count of owners, and does not change once it has a second owner. */
struct columns;

/* The word of a role in the text: "label", "weight", "cat", "num", "ignore". */
const char *column_role_name(enum column_role role);
/* The role of a word; COLUMN_ROLES if there is none. */
enum column_role column_role_find(const char *word, size_t len);

PARAMO_MUST_USE paramo_err columns_new(struct columns **columns);
/* Reads the text of --columns: roles between commas, names of a role between semicolons; after a backslash, the next
 * character has no meaning of its own. INVALID, with what is wrong. There is at most one label; whether one is needed
 * depends on the use of the rows. */
PARAMO_MUST_USE paramo_err columns_parse(const char *text, struct columns **columns);
/* INVALID: the name occurs twice, is not UTF-8 or has a zero byte. TOO_LARGE: too many columns for a manifest. */
PARAMO_MUST_USE paramo_err columns_add(struct columns *columns, enum column_role role, const char *name,
                                       size_t len);
void columns_retain(struct columns *columns);
void columns_release(struct columns *columns); /* NULL is allowed */

size_t columns_count(const struct columns *columns);
const struct column *columns_at(const struct columns *columns, size_t i);
/* NULL: not named. */
const struct column *columns_find(const struct columns *columns, const char *name, size_t len);
/* The first column of the role; NULL: none. */
const struct column *columns_of_role(const struct columns *columns, enum column_role role);
int columns_same(const struct columns *a, const struct columns *b);

/* Is there a '*' that stands for the other columns of the file? */
int columns_has_rest(const struct columns *columns);
/* Gives one more column, found in a file, the role of '*'. Columns that are named keep theirs. */
PARAMO_MUST_USE paramo_err columns_take_rest(struct columns *columns, const char *name, size_t len);
/* columns_take_rest has got all columns of the file: removes the '*'. INVALID: there is no feature. */
PARAMO_MUST_USE paramo_err columns_end_rest(struct columns *columns);

#endif
