/*
 * Memory and growth of the index: pages and their numbers, segments that grow or split, the directory. Knows
 * hashes only; never searches. Private to keyindex.c. Tests: test/table/test_keyindex.c.
 */
#ifndef TABLE_KEYINDEX_GROW_H
#define TABLE_KEYINDEX_GROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "table/keyindex_layout.h"

/* Gives an empty index its first segment. On an error nothing has changed. */
MUST_USE paramo_err keyindex_first_segment(struct keyindex *x);
/* Makes room for one more key of that hash in its segment, which is full. It may have to be called again. On an
 * error nothing has changed. */
MUST_USE paramo_err keyindex_make_room(struct keyindex *x, uint64_t hash);
/* Frees `segments` segments from *cursor (0 at first) on. True: all memory is free, and x holds dangling pointers
 * until it is initialised. */
bool keyindex_free_step(struct keyindex *x, size_t *cursor, size_t segments);

#endif
