/*
 * Clearing a table: the table has an empty store at once, and the memory of the old one is freed in steps. Knows
 * nothing of lanes or timers; the caller makes the steps. Tests: test/table/test_table_clear.c.
 */
#ifndef TABLE_TABLE_CLEAR_H
#define TABLE_TABLE_CLEAR_H

#include <stdbool.h>

struct table;

/* Removes all rows; those of a DENSE table return to their initial values. The memory of the rows counts until
 * table_clear_step frees it. */
void table_clear(struct table *t);
/* Works for about a millisecond: frees some of that memory, or clears marks of an abandoned snapshot. False: nothing is
 * left. */
bool table_clear_step(struct table *t);
/* Is anything left to do? Deleting the last row leaves memory, too. */
bool table_clear_due(const struct table *t);
/* Is table_clear short for any number of rows? Not for a DENSE table, nor while an open snapshot has to read the
 * rows first. */
bool table_clear_is_short(const struct table *t);

/* ---- for table.c ---- */

/* Frees all that table_clear_step would. */
void table_remains_free(struct table *t);
/* Call it when the last row has been removed: hands the store's memory to table_clear_step. */
void table_emptied(struct table *t);

#endif
