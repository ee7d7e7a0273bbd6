/*
 * Reports changes of a table to its snapshot before they happen. table.c and table_clear.c call these
 * functions; table_snapshot.c keeps the marks. Call them only while the table is marking (table_state.h).
 * This module never knows requests. Private to src/table. Tests: test/table/test_table_snapshot.c.
 */
#ifndef TABLE_TABLE_CHANGES_H
#define TABLE_TABLE_CHANGES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct table;

/* DENSE: call it before these rows change. */
void table_snapshot_touch(struct table *t, const uint64_t *keys, size_t n);
/* DENSE: call it before the rows first .. first+count-1 are added. */
void table_snapshot_touch_range(struct table *t, uint64_t first, uint64_t count);
/* SPARSE and VAR: call it before these rows are removed. */
void table_snapshot_remove(struct table *t, const uint64_t *keys, size_t n);
/* Call it before all rows are removed. */
void table_snapshot_touch_all(struct table *t);
/* Is a snapshot open that has not reached its end? */
bool table_snapshot_walks(const struct table *t);

/* For table_clear.c: clears some marks of an abandoned snapshot. False: none is left. */
bool table_marks_step(struct table *t);

#endif
