/*
 * The manifest of a model's folder: manifest.json, with the model's settings, and a list of its tables' files that the
 * caller fills in (modelio.h). Its versions: 1 is for logistic models without scales, 2 for those with scales, 4 for
 * calibrated models and those with features of pairs, 3 for all others. A model gets the lowest version that fits, so
 * that older programs read all models that they understand. It never knows table files. Tests:
 * test/learn/test_modelio.c.
 */
#ifndef LEARN_STORE_MANIFEST_H
#define LEARN_STORE_MANIFEST_H

#include "learn/model/model.h"

#include <jansson.h>

#define MODEL_FORMAT  "paramo-model"
#define MODEL_VERSION 4

#define MANIFEST_ENTRY_MAX 64
#define MANIFEST_MAX       (1 << 20) /* bytes; arbitrary: most manifests have about 1 KiB */

/* "dir/name", which the caller frees; NULL: no memory. */
char *manifest_path(const char *dir, const char *name);
/* Reads the manifest of dir. The caller frees it. NOT_FOUND; FORMAT: it is not one of a model, or of a newer version;
 * CORRUPT. The message names the file. */
PARAMO_MUST_USE paramo_err manifest_load(const char *dir, json_t **manifest);
/* Like manifest_load(), from a text; errors call it `from`. */
PARAMO_MUST_USE paramo_err manifest_parse(const char *text, size_t len, const char *from, json_t **manifest);
/* Reads all but the tables. The caller releases info->columns in each case. Returns NULL, or the name of an entry that
 * is missing or not valid, for which `entry` is memory. */
const char *manifest_info(json_t *manifest, struct model_info *info, char entry[MANIFEST_ENTRY_MAX]);
/* A manifest with an empty list "tables"; NULL: no memory. scaled: there is a table of scales. */
json_t *manifest_of(const struct model_info *info, int scaled);
/* Reads an entry, a number from 0 to most. Returns 0 if there is none. */
int manifest_uint(json_t *object, const char *name, uint64_t most, uint64_t *out);

#endif
