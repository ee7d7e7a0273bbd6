/*
 * Writes a table's file without a node: the same bytes as paramo_table_save (safetensors: "keys" U64 [n], "values" F32
 * [n, dim]), without the state of an optimizer. It never knows of models. Tests: test/e2e/export.sh.
 */
#ifndef LEARN_STORE_TABLE_FILE_H
#define LEARN_STORE_TABLE_FILE_H

#include "paramo/paramo.h"

#include <stddef.h>
#include <stdint.h>

/* keys ascend. The file is synced; after an error there is no file. */
PARAMO_MUST_USE paramo_err table_file_write(const char *path, const uint64_t *keys, const float *values,
                                            uint64_t n, uint32_t dim);

#endif
