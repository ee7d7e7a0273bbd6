/*
 * A model on disk: a directory of manifest.json and one safetensors file per table.
 *
 *     manifest.json                    settings, and each table's file, sizes and XXH3-128 checksum
 *     w-0123456789abcdef.safetensors   "keys" U64 [n], "values" F32 [n, dim]; with state "state" F32 [n, s]
 *     v-....safetensors                the other tables of the model; fm: the factors
 *     scale-....safetensors            if features were scaled (scale.h): their magnitudes
 *
 * Saving: the name of a table's file contains its checksum, so two files with different content never have the same
 * name. All new files are complete and synced before manifest.json is replaced by rename. Then the files that the
 * manifest does not name are removed. A crash at any point leaves the old model or the new one.
 *
 * A writer first removes the temporary files of an earlier writer that has not finished, with its manifest. So if a
 * second writer starts only when may_commit refuses the first, the first has either put its manifest into place before
 * the second begins to write, or never will.
 *
 * The files do not depend on when, where or by how many processes the model was trained: equal models are equal files.
 *
 * Opening checks everything, and an error names the reason. It never knows of servers: the caller of a save passes a
 * function that writes a table to a path. Tests: test/learn/test_modelio.c.
 */
#ifndef LEARN_STORE_MODELIO_H
#define LEARN_STORE_MODELIO_H

#include "learn/model/model.h"
#include "paramo/paramo.h"
#include "paramo/tensors.h"

#include <stddef.h>
#include <stdint.h>

struct model_table {
    char name[MODEL_NAME_MAX + 1];
    uint64_t n;
    uint32_t dim, state;  /* values of a row, and values of its optimizer state (0: saved without state) */
    const uint64_t *keys; /* [n], ascending */
    const float *values;  /* [n * dim], all finite */
    const float *states;  /* [n * state] */
    char *path;
    paramo_tensors *file;
};

struct model {
    struct model_info info;
    size_t n;
    struct model_table table[MODEL_MAX_TABLES]; /* as in info.ops->table */
    struct model_table scale;                   /* file NULL: there is no table of scales */
};

/* Opens and checks a model. NOT_FOUND: there is none; FORMAT: it is of another program or of a newer version; CORRUPT:
 * it is damaged. The message names the file and says what is wrong. */
PARAMO_MUST_USE paramo_err modelio_open(const char *dir, struct model *model);
/* Like modelio_open(), but reads the files into memory, so that later changes of the files do not matter. */
PARAMO_MUST_USE paramo_err modelio_load(const char *dir, struct model *model);
/* Releases info.columns, too. */
void modelio_close(struct model *model);
/* The values of a key's row, [dim]; NULL: there is none. */
const float *modelio_row(const struct model_table *table, uint64_t key);

/* Checks at the start of a job that a model can be saved in dir, so that the job does not fail at its end. Refuses a
 * directory with another program's manifest.json, and one that cannot be written. A missing directory is not created
 * yet, so that a job that is killed leaves no empty one. */
PARAMO_MUST_USE paramo_err modelio_prepare(const char *dir);

/* INVALID: path, which a program is about to write, is a file of the model in dir, perhaps under another name: its
 * manifest, a table or its names. OK if the directory cannot be read: opening the model reports that. */
PARAMO_MUST_USE paramo_err modelio_refuse_output(const char *dir, const char *path);

/* What a save needs from its caller. table() writes a table (by number) as a safetensors file to path and syncs it.
 * may_commit() (or NULL) is called when all files are written, before the manifest is replaced; its error ends the
 * save. */
struct modelio_writer {
    paramo_err (*table)(void *arg, size_t table, const char *path);
    paramo_err (*may_commit)(void *arg);
    void *arg;
    int scaled; /* there is a table of scales: number ops->tables */
};
PARAMO_MUST_USE paramo_err modelio_save(const char *dir, const struct model_info *info,
                                        const struct modelio_writer *writer);

#endif
