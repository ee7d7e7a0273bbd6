/*
 * Rows whose last copy has died, and that return to a checkpoint. It must never read a file. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_LOSSES_H
#define SIM_LOSSES_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct machine;
struct view;
struct bounds;
struct ledger_key;

struct shard;
struct shard_table;

/* After an event of a scheduler. */
void losses_watch(struct machine *m);
/* A view that is newer than any before. The world still has the chains of the view before. */
void losses_came(struct world *w, const struct view *view, uint64_t before);
/* Lost rows return to this checkpoint. */
void losses_back(struct world *w, uint64_t number, const struct bounds *b);
/* A request that began then may have read the key's rows before they were lost. */
bool losses_between(const struct ledger_key *k, uint64_t from);
/* The key's rows are not restored in that table yet. */
bool losses_open(const struct ledger_key *k, const struct shard *shard, const struct shard_table *st);
/* Another job. */
void losses_forget(struct world *w);

#endif
