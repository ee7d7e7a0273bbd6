/*
 * The names of a model's features, in the file that `paramo train --keep-names` writes. Tests: test/e2e/tables.sh,
 * explain.sh.
 */
#ifndef CMD_MODEL_NAMES_H
#define CMD_MODEL_NAMES_H

#include "learn/data/names.h"
#include "paramo/paramo.h"

/* NOT_FOUND: the model in dir has no names. The caller frees them. */
PARAMO_MUST_USE paramo_err model_names_open(const char *dir, struct names **names);
/* Like model_names_open(), but *names is NULL if the model has no names. */
PARAMO_MUST_USE paramo_err model_names_try(const char *dir, struct names **names);
/* Writes "site=news"; for a feature without a name "3:1207" (field and key), or "1207" if field is negative. The text
 * is cut at cap - 1 bytes, or before the character that ends later. names may be NULL. Returns out. */
char *model_names_text(const struct names *names, uint64_t key, int field, char *out, size_t cap);

#endif
