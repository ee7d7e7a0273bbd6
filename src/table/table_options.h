/*
 * The meaning of a table's options: whether they are valid, whether two tables have the same, and the sizes
 * that follow from them. Pure functions. Their callers are the worker before it sends, the scheduler when a
 * table is announced twice, and table_create. Tests: test/table/test_table_options.c.
 */
#ifndef TABLE_TABLE_OPTIONS_H
#define TABLE_TABLE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "paramo/types.h"

/* The most values per row: 256 MiB of F32. Arbitrary. */
#define TABLE_DIM_MAX (UINT32_C(1) << 26)
/* The most rows of a dense table: keys, positions and products with a row's bytes never overflow. */
#define TABLE_DENSE_ROWS_MAX (UINT64_C(1) << 32)
enum { TABLE_REPLICAS_MAX = 3 };

/* Sets the defaults of types.h, and size. */
void table_options_default(paramo_table_options *o);
/* INVALID or TOO_LARGE, with a message that names the field. It ignores o->size: callers that take
 * options from outside the library complete them first. */
MUST_USE paramo_err table_options_check(const paramo_table_options *o);
/* The placement with AUTO resolved. */
paramo_placement table_options_placement(const paramo_table_options *o);
/* Bytes of one value. */
size_t table_dtype_size(paramo_dtype dtype);
/* The values of optimizer state per row (F32): dim for each plane, and one for the count. */
size_t table_state_values(const paramo_table_options *o);
/* The values per row of table_get_rows. */
size_t table_row_values(const paramo_table_options *o, bool with_state);
/* The values per row of table_get_stored: with what aggregate.h keeps, in units of the table's type. */
size_t table_stored_values(const paramo_table_options *o);
/* The bytes that aggregate.h keeps in a row: a head, and a sum for each column. */
size_t table_aggregate_bytes(uint32_t dim);
/* May a chunk be cut inside a row? Not for VAR and USER, nor for an aggregated table, nor if the optimizer counts the
 * pushes of a row. */
bool table_options_splittable(const paramo_table_options *o);

#endif
