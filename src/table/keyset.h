/*
 * A keyset: a list of keys that requests name by their places, and the rows that tables have for them. A shard in the
 * process of the worker finds the rows of a request there instead of looking its keys up (apply_rows.h).
 *
 *     keyset -> rows of table A -> rows of table B        a list that only grows; at most KEYSET_TABLES
 *                 owner, generation, row[n]
 *
 * The list is shared: any lane reads it, and adds to it. The rows in a table's element belong to the lane of its shard.
 * An element is found by its owner, a number that no two tables of a process have. It must never know requests
 * or tables. Tests: test/table/test_keyset_rows.c, test/node/test_keyset.c.
 */
#ifndef TABLE_KEYSET_H
#define TABLE_KEYSET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

/* Arbitrary: a model has two or three tables; more come when one process opens tables again and again. */
enum { KEYSET_TABLES = 8 };

#define KEYSET_NO_ROW UINT32_MAX /* TABLE_NO_ROW */

struct keyset_rows {
    struct keyset_rows *next;
    uint64_t owner, generation; /* table_generation() */
    uint32_t row[];             /* [n]; KEYSET_NO_ROW: not known */
};

struct paramo_keyset {
    const uint64_t *keys; /* [n], the maker's */
    size_t n;
    _Atomic(struct keyset_rows *) first;
    atomic_uint count;
};

/* The keys of one request by their places in a keyset. */
struct keyset_part {
    struct paramo_keyset *set;
    const uint32_t *places; /* [n] */
    size_t n;
};

/* A new number, never 0. Any thread. */
uint64_t keyset_owner_new(void);

/* For each i: is place i of the part in the set, and is its key keys[i]? */
bool keyset_part_fits(const struct keyset_part *part, const uint64_t *keys);
/* Writes the part's rows to rows[n], as the owner has noted them. False: not all are noted, or they are of another
 * generation, or a place is not in the set. */
bool keyset_find(const struct keyset_part *part, uint64_t owner, uint64_t generation, uint32_t *rows);
/* Notes the part's rows. Rows of other generations are forgotten. If there is no memory, or no room for
 * one more table, nothing is noted. */
void keyset_note(const struct keyset_part *part, uint64_t owner, uint64_t generation, const uint32_t *rows);

#endif
