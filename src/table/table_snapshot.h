/*
 * A cut: the rows that a table has at one moment, or those of them that have changed since the last cut,
 * given out bit by bit while the table goes on changing. Each row is given out once, as it was when the cut
 * was opened: in its turn, or just before it changes (copy on write, row by row: the keys of a push are
 * scattered, so larger blocks would make one push copy most of the table).
 *
 *     any keys: in the order of their hashes, which does not depend on how the index has grown
 *         0 ---- given out ---- cursor ---- to come: but for those that have changed since the opening ----
 *     dense: the same with blocks of consecutive rows
 *
 * What has changed when is in the rows' marks (rowmarks.h; keyindex.h of small rows). Each opening begins an
 * epoch; the mark of a row:
 *
 *                              opening          a change             the walk comes by
 *     0, not changed           0                this epoch's         ALL gives it out; 0
 *     the last epoch's         the last one's   this epoch's         gives it out; 0
 *     this epoch's             -                this epoch's         stays
 *
 * A change that raises a mark that the walk has yet to come by gives the row out first, if the walk would. So
 * a row costs a copy once in an epoch and a look at two bits from then on. Behind the walk there are only 0
 * and this epoch's, which the next opening makes the last one's. There are marks while a cut is open, and
 * from one to the next if that is to be of changes (track). Keys whose rows were removed are in a list, at
 * most TABLE_SNAPSHOT_ERASED of them.
 *
 * One cut of a table at a time, on its lane. Tests: test/table/test_table_snapshot.c, test_rowmarks.c.
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

/* track: changes from here on are noted, for the next cut. INVALID: one is open, or CHANGES that are not
 * known. On an error nothing has begun. */
MUST_USE paramo_err table_snapshot_open(struct table *t, enum table_snapshot_kind kind, bool track,
                                        table_snapshot_row row, void *arg, struct table_snapshot **snapshot);
/* Are all changes known since the last cut, which was opened with `track`, walked to its end and closed? They
 * are not after a table_clear, a cut that was given up, where there was no memory to note them, or after too
 * many removals; nor while a cut is open. */
bool table_changes_known(const struct table *t);
/* They are not known any more: the next cut is of ALL. */
void table_changes_forget(struct table *t);
/* CHANGES: the keys removed since the last cut that had no row when this one was opened, ascending. Borrowed
 * until it is closed. */
const uint64_t *table_snapshot_erased(const struct table_snapshot *snapshot, size_t *n);
/* Gives out some more, about so many bytes (or looks at so many); *done: that was the last. MEMORY: a change
 * could not be noted; the cut is void, and its table goes on. */
MUST_USE paramo_err table_snapshot_step(struct table_snapshot *snapshot, size_t bytes, bool *done);
/* Would a change of these rows give some out before their turn? (NULL: of all rows.) */
bool table_snapshot_holds(const struct table_snapshot *snapshot, const uint64_t *keys, size_t n);
/* NULL is allowed. One that is not done is given up. */
void table_snapshot_close(struct table_snapshot *snapshot);

#endif
