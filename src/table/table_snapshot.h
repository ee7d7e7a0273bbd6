/*
 * A snapshot: the rows of a table at one moment, or those that changed since the last snapshot. It is given
 * out bit by bit while the table goes on changing. Each row is given out once, as it was at the opening: in
 * its turn, or just before it changes (copy on write, row by row: the keys of a push are scattered, so larger
 * blocks would copy most of the table). Never knows files or checkpoints.
 *
 *     any keys: in the order of their hashes, which does not depend on how the index has grown
 *         0 ---- given out ---- cursor ---- to come: but for those that have changed since the opening ----
 *     dense: the same with blocks of consecutive rows
 *
 * The marks of the rows say what changed when (rowmarks.h; keyindex.h of small rows). Each opening begins an
 * epoch; the mark of a row:
 *
 *                              opening          a change             the walk comes by
 *     0, not changed           0                this epoch's         ALL gives it out; 0
 *     the last epoch's         the last one's   this epoch's         gives it out; 0
 *     this epoch's             -                this epoch's         stays
 *
 * A change that raises a mark ahead of the walk first gives the row out, if the walk would. So a row costs
 * one copy in an epoch, and a look at two bits afterwards. Behind the walk there are only 0 and this epoch's
 * marks, which the next opening makes the last epoch's. Marks exist while a snapshot is open, and until the
 * next one if it is to be of changes (track). Keys of removed rows are in a list of at most
 * TABLE_SNAPSHOT_ERASED.
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

/* row: table_row_values values with state (table_get_rows); of a VAR table `values` values. Borrowed. It must
 * not touch the table. */
typedef void (*table_snapshot_row)(void *arg, uint64_t key, const void *row, uint32_t values);

enum table_snapshot_kind {
    TABLE_SNAPSHOT_ALL,
    TABLE_SNAPSHOT_CHANGES /* what may have changed since the last cut: rows, and keys that have no row now */
};

/* track: changes are noted from now on, for the next snapshot. INVALID: one is open, or kind is CHANGES and
 * they are not known. On an error nothing has begun. */
MUST_USE paramo_err table_snapshot_open(struct table *t, enum table_snapshot_kind kind, bool track,
                                        table_snapshot_row row, void *arg, struct table_snapshot **snapshot);
/* Are all changes known since the last snapshot, which was opened with track, reached its end and was closed?
 * Not after a table_clear, an abandoned snapshot, a lack of memory to note them, or too many removals; nor
 * while one is open. */
bool table_changes_known(const struct table *t);
/* Forgets the changes: the next snapshot is of ALL. */
void table_changes_forget(struct table *t);
/* CHANGES: the keys removed since the last snapshot that had no row when this one was opened, ascending.
 * Borrowed until it is closed. */
const uint64_t *table_snapshot_erased(const struct table_snapshot *snapshot, size_t *n);
/* Gives out about this many more bytes (or looks at as many). *done: the snapshot is complete. MEMORY: a
 * change could not be noted; the snapshot is void, and the table goes on. */
MUST_USE paramo_err table_snapshot_step(struct table_snapshot *snapshot, size_t bytes, bool *done);
/* Would a change of these rows give some out before their turn? (NULL: of all rows.) */
bool table_snapshot_holds(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n);
/* NULL is allowed. A snapshot that is not done is abandoned. */
void table_snapshot_close(struct table_snapshot *snapshot);
/* Several snapshots were given up before their ends: one that is opened now clears all their marks in one step. False as
 * soon as table_clear_step has cleared them. */
bool table_snapshot_must_wait(const struct table *t);

#endif
