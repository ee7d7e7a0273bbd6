/*
 * A cut: the rows that a table has at one moment, given out bit by bit while it goes on changing. Each row is
 * given out once, as it was when the cut was opened: in its turn, or just before it changes (copy on write,
 * row by row: the keys of a push are scattered, so larger blocks would make one push copy most of the table).
 *
 *     any keys: in the order of their hashes; what lies behind the cursor has been given out
 *         0 ---- given out ---- cursor ---- only those in `ahead`: given out before their turn, or new ----
 *     dense: in blocks of consecutive rows, a bit for each that has been given out
 *
 * The order of hashes does not depend on how the index has grown. `ahead` is in 256 parts by hash, so that
 * growing one stops nothing for long, and those that the cursor has passed are freed.
 *
 * One cut of a table at a time, on its lane. Tests: test/table/test_table_cut.c.
 */
#ifndef TABLE_TABLE_CUT_H
#define TABLE_TABLE_CUT_H

#include "table/table.h"

struct table_cut;

/* row: table_row_values values with state (table_get_rows); of a VAR table `values` values. Borrowed. It must
 * not touch the table. */
typedef void (*table_cut_row)(void *arg, uint64_t key, const void *row, uint32_t values);

enum table_cut_kind {
    TABLE_CUT_ALL,
    TABLE_CUT_CHANGES /* what has changed since the last cut: rows that have, keys that have no row now */
};

/* track: changes from here on are remembered, for the next cut. INVALID: one is open, or CHANGES that are not
 * known. On an error nothing has begun. */
MUST_USE paramo_err table_cut_open(struct table *t, enum table_cut_kind kind, bool track, table_cut_row row,
                                   void *arg, struct table_cut **cut);
/* Are all changes since the last cut known, which was walked to its end and opened with `track`? They are not
 * after a table_clear, a cut that was given up, where memory to note them was missing, or after too many
 * removals. */
bool table_changes_known(const struct table *t);
/* CHANGES: the keys removed since the last cut that had no row when this one was opened. Borrowed until it is
 * closed. */
const uint64_t *table_cut_erased(const struct table_cut *cut, size_t *n);
/* Gives out some more, about so many bytes; *done: that was the last. MEMORY: a change could not be noted;
 * the cut is void, and its table goes on. */
MUST_USE paramo_err table_cut_step(struct table_cut *cut, size_t bytes, bool *done);
/* Would a change of these rows give some out before their turn? (NULL: of all rows.) */
bool table_cut_holds(const struct table_cut *cut, const uint64_t *keys, size_t n);
void table_cut_close(struct table_cut *cut); /* NULL is allowed */

#endif
