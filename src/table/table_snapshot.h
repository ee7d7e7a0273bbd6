/*
 * A snapshot: the rows of a table at one moment, or those that changed since the last snapshot. It is given
 * out in steps while the table changes. Each row is given out once, as it was at the opening: in its turn,
 * or just before it changes (copy on write, row by row: the keys of a push are scattered, so larger blocks
 * would copy most of the table). This module never knows files or checkpoints.
 *
 *     any keys: in the order of their hashes, which does not depend on how the index has grown
 *         0 ---- given out ---- cursor ---- to come, except those that have changed since the opening ----
 *     dense: the same with blocks of consecutive rows
 *
 * The mark of a row says when the row changed (rowmarks.h; for small rows keyindex.h). Each opening begins an
 * epoch; the mark of a row:
 *
 *                              opening          a change             the walk reaches it
 *     0, not changed           0                this epoch's         ALL gives it out; 0
 *     the last epoch's         the last one's   this epoch's         gives it out; 0
 *     this epoch's             -                this epoch's         stays
 *
 * A change that sets a mark ahead of the walk first gives the row out, if the walk would. So a row costs one
 * copy per epoch, and a check of two bits afterwards. After the walk there are only 0 and this epoch's
 * marks; the next opening makes these the last epoch's. Marks exist while a snapshot is open, and, with
 * track, until the next one. Keys of removed rows are in a list of at most TABLE_SNAPSHOT_ERASED.
 *
 * A table has one snapshot at a time, on its lane. Tests: test/table/test_table_snapshot.c, test_rowmarks.c.
 */
#ifndef TABLE_TABLE_SNAPSHOT_H
#define TABLE_TABLE_SNAPSHOT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct table;

enum { TABLE_SNAPSHOT_ERASED = 1 << 17 /* one MiB, sorted in a few milliseconds. Arbitrary */ };

struct table_snapshot;

/* row: table_row_values values with state (table_get_rows); for a VAR table `values` values. Borrowed.
 * The callback must not use the table. */
typedef void (*table_snapshot_row)(void *arg, uint64_t key, const void *row, uint32_t values);

enum table_snapshot_kind {
    TABLE_SNAPSHOT_ALL,
    TABLE_SNAPSHOT_CHANGES /* changes since the last snapshot: rows, and keys whose row was removed */
};

/* track: notes changes from now on, for the next snapshot. INVALID: a snapshot is open, or kind is
 * CHANGES and the changes are not known. After an error nothing has begun. */
MUST_USE paramo_err table_snapshot_open(struct table *t, enum table_snapshot_kind kind, bool track,
                                        table_snapshot_row row, void *arg, struct table_snapshot **snapshot);
/* Are all changes since the last snapshot known? It must have been opened with track, have reached its
 * end and be closed. False after table_clear, an abandoned snapshot, a lack of memory for notes, or too
 * many removals, and while a snapshot is open. */
bool table_changes_known(const struct table *t);
/* Forgets the changes: the next snapshot must be ALL. */
void table_changes_forget(struct table *t);
/* CHANGES: the keys removed since the last snapshot that had no row when this one was opened, in
 * ascending order. Borrowed until the snapshot is closed. */
const uint64_t *table_snapshot_erased(const struct table_snapshot *snapshot, size_t *n);
/* Gives out, or checks, about that many more bytes. *done: the snapshot is complete. MEMORY: a change could
 * not be noted; the snapshot is void, but the table is not. */
MUST_USE paramo_err table_snapshot_step(struct table_snapshot *snapshot, size_t bytes, bool *done);
/* Would a change of these rows give some out before their turn? keys NULL: of all rows. */
bool table_snapshot_holds(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n);
/* NULL is allowed. Closing a snapshot that is not done abandons it. */
void table_snapshot_close(struct table_snapshot *snapshot);
/* True: several snapshots were abandoned, and one that is opened now would clear all their marks in one
 * step. False as soon as table_clear_step has cleared them. */
bool table_snapshot_must_wait(const struct table *t);

#endif
