/*
 * The owner's side of combined.h: makes one change of pushes that were collected, in one step for all rows and all
 * records. It must never know when pushes are combined: shard/collecting.h does. Tests: test/worker/test_combined.c.
 */
#ifndef SERVER_REPLICATION_COMBINING_H
#define SERVER_REPLICATION_COMBINING_H

#include "server/shard/kept.h"

enum { COMBINED_PUSHES_MAX = 256 }; /* arbitrary; their answers leave in one turn */

/* Can changes of the table be combined: has it followers that all read them, and does nothing migrate from here? */
bool combining_possible(const struct shard *s, const struct shard_table *t);
/* Applies the pushes of one clock, which are new, whole and checked (apply_check_rows, apply_check_keys), and sends
 * them as one change. They stay the caller's. False: nothing has happened, and each is to be applied by itself. */
bool combining_push(struct shard *s, struct shard_table *t, struct kept *const *pushes, size_t n);

#endif
