/*
 * What a table's options mean: whether they are valid, whether two are the same, and the sizes that follow
 * from them. Pure; asked by the worker before it sends, by the scheduler when a table is announced twice, and
 * by table_create. Tests: test/table/test_table_options.c.
 */
#ifndef TABLE_TABLE_OPTIONS_H
#define TABLE_TABLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "paramo/types.h"

/* Values per row at most: arbitrary, 256 MiB of F32. */
#define TABLE_DIM_MAX (UINT32_C(1) << 26)
/* Rows of a dense table at most, so that keys, positions and products with a row's bytes never overflow. */
#define TABLE_DENSE_ROWS_MAX (UINT64_C(1) << 32)
enum { TABLE_REPLICAS_MAX = 3 };

/* Defaults of types.h; size set. */
void table_options_default(paramo_table_options *o);
/* INVALID, or TOO_LARGE, with a message that names the field. o->size is not looked at: whoever takes options
 * from outside the library completes them first. */
MUST_USE paramo_err table_options_check(const paramo_table_options *o);
/* The placement with AUTO resolved. */
paramo_placement table_options_placement(const paramo_table_options *o);
/* Bytes of one value. */
size_t table_dtype_size(paramo_dtype dtype);
/* Values of optimizer state per row (F32): dim for each plane of the optimizer, and one for its count. */
size_t table_state_values(const paramo_table_options *o);
/* Values of a row as table_get_rows gives it. */
size_t table_row_values(const paramo_table_options *o, bool with_state);
/* May a chunk be cut inside a row? Not for VAR and USER, and not where the optimizer counts the pushes
 * of a row. */
bool table_options_cuttable(const paramo_table_options *o);

#endif
