/*
 * The manifest of a model's folder: manifest.json, with the model's settings, and a list of its tables' files that the
 * caller fills in (modelio.h). Its versions: 1 has logistic models without scales, 2 has those with scales, 4 has
 * calibrated models and those with features of pairs, 3 has all others. A model gets the lowest version that it can
 * have, so that older programs read what they understand. It never knows table files. Tests: test/learn/test_modelio.c.
 */
#ifndef LEARN_STORE_MANIFEST_H
#define LEARN_STORE_MANIFEST_H

#include "learn/model/model.h"

#include <jansson.h>

#define MODEL_FORMAT  "paramo-model"
#define MODEL_VERSION 4

#define MANIFEST_ENTRY_MAX 64
#define MANIFEST_MAX       (1 << 20) /* bytes; a manifest has about 1 KiB, so a longer file is none */

/* "dir/name", which the caller frees; NULL: no memory. */
char *manifest_path(const char *dir, const char *name);
/* Reads the manifest of dir: a model of a version that this program reads. The caller frees it. NOT_FOUND, FORMAT,
 * CORRUPT with a message that names the file. */
PARAMO_MUST_USE paramo_err manifest_load(const char *dir, json_t **manifest);
/* Like manifest_load(), from a text; errors call it `from`. */
PARAMO_MUST_USE paramo_err manifest_parse(const char *text, size_t len, const char *from, json_t **manifest);
/* Reads all but the tables. The caller releases info->columns in each case. Returns the entry that is missing or not
 * valid, perhaps in `entry`, or NULL. */
const char *manifest_info(json_t *manifest, struct model_info *info, char entry[MANIFEST_ENTRY_MAX]);
/* A manifest with an empty list "tables"; NULL: no memory. scaled: there is a table of scales. */
json_t *manifest_of(const struct model_info *info, int scaled);
/* The entry's value, 0 .. most; 0: there is none. */
int manifest_uint(json_t *object, const char *name, uint64_t most, uint64_t *out);

#endif
