/*
 * A page: the next keys of a table in ascending order, as many as fit, found in short steps while the table
 * changes. A scan of any table needs memory for one page, and no step is long. This module never knows rows
 * or requests.
 *
 *     keys    from ------------- the page ------------- to -------------------------> (the next pages)
 *
 *     1. sweep   all keys in the order of their hashes (table_sweep); those from `from` to `to` are kept.
 *     2. shrink  when the room is full: `to` is lowered so that the whole page will fit, estimated from the
 *                keys swept so far, a random sample; keys beyond `to` are dropped. Step 1 goes on.
 *     3. sort    by radix, pass by pass (keysort.h).
 *     4. trim    memory is freed piece by piece: unmapping much of it at once takes long.
 *
 * A key in the range that has a row from the first step to the last is in the page. A key that has a row for
 * a part of the time is in it at most once. Keys of rows that are removed later stay: the caller checks for
 * the row (table_scan_rows). Not for DENSE, whose keys are in order. Tests: test/table/test_table_page.c.
 */
#ifndef TABLE_TABLE_PAGE_H
#define TABLE_TABLE_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/keysort.h"

struct table;

/* Does the caller want this key? */
typedef bool (*table_wants)(void *arg, uint64_t key);

enum table_page_phase {
    TABLE_PAGE_SWEEP,
    TABLE_PAGE_SHRINK,
    TABLE_PAGE_SORT,
    TABLE_PAGE_TRIM,
    TABLE_PAGE_DONE
};

struct table_page {
    const struct table *table;
    uint64_t from, to; /* to: UINT64_MAX in the last page */
    uint64_t *keys;    /* done: ascending */
    size_t n, room;
    enum table_page_phase phase;
    /* until it is done */
    uint64_t cursor;     /* for the sweep */
    size_t looked, kept; /* for the shrinking */
    uint64_t *scratch;   /* for the sort */
    size_t scratch_room;
    struct keysort *sort;
};

/* Opens a page of at most `room` keys (at least 1). After MEMORY nothing is open. */
MUST_USE paramo_err table_page_open(struct table_page *page, const struct table *t, uint64_t from,
                                    size_t room);
/* Handles about that many keys. *done: that was the last step. wants NULL: all keys. After MEMORY the page
 * can only be closed. */
MUST_USE paramo_err table_page_step(struct table_page *page, size_t keys, table_wants wants, void *arg,
                                    bool *done);
/* All memory of the page. */
size_t table_page_bytes(const struct table_page *page);
/* Frees the page, in time proportional to its memory. It may be zero-initialised or closed already. */
void table_page_close(struct table_page *page);
/* Frees a part of the page. True: the page is closed. */
bool table_page_close_step(struct table_page *page);

/* Counts rows, and parameters that are not zero, in steps. As in a page, a row that exists from the first
 * step to the last is counted once, any other row at most once. Zero-initialised at first. */
struct table_count {
    uint64_t cursor;
    uint64_t rows, nonzero;
    bool done;
};
/* Handles about that many values. */
void table_count_step(const struct table *t, struct table_count *count, size_t values, table_wants wants,
                      void *arg);

#endif
