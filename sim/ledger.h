/*
 * The model of sums: what was pushed, acknowledged and cleared, and what a pull may return. It must never
 * know how a request travels. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_LEDGER_H
#define SIM_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "paramo/errors.h"
#include "sim/sizes.h"

struct machine;
struct world;
struct op;
struct view;
struct dice;
struct ledger_key;

void ledger_init(struct world *w);
/* Sets the owners when the ring is first known, and when it changes. */
void ledger_owners(struct world *w, const struct view *view);
/* Was the shard the key's owner in that view? No, if that was before the key was last given back: then
 * nothing is known. */
bool ledger_owned(const struct ledger_key *key, unsigned shard, uint64_t view);
/* The index of a key; SIM_KEYS: unknown. */
unsigned ledger_index(const struct world *w, enum sim_table table, uint64_t key);
/* Fills in keys, digits and the possible answers. False: no digit is left to push. */
bool ledger_issue(struct world *w, struct op *op, struct dice *dice);
void ledger_done(struct world *w, struct op *op, paramo_err status);
/* Of these digits, which were acknowledged when a read began at that moment, those that it finds in each state that
 * the row may have had since: before a load or a loss, and after it. */
uint64_t ledger_least(const struct world *w, enum sim_table table, unsigned index, uint64_t must,
                      uint64_t from);
/* May a server have answered the read that is declared dead and does not know it, from its rows before a load? A table
 * without copies has no lease. Then nothing must be there. */
bool ledger_of_before_death(const struct world *w, enum sim_table table, const struct ledger_key *key,
                            uint64_t from);
/* The server is declared dead and may not know it: it may answer requests for the keys that it owns by its own view. */
void ledger_ghost(struct machine *server);
/* Is all of the key that was written and acknowledged since then present, wherever the key is now? deaths: number of
 * servers that had died then. */
bool ledger_stays(const struct world *w, enum sim_table table, unsigned index, uint64_t from,
                  const uint32_t deaths[SIM_SERVERS]);
/* The process in this place has died, and the sums of its handler with it. */
void ledger_server_died(struct world *w, unsigned place);
/* Is the value possible? must: it has to contain all that was acknowledged. */
void ledger_check(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                  uint64_t value, uint64_t must);
/* n values of a row that exists, from column `first` on; or 0. */
void ledger_columns_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                          unsigned first, const uint64_t *vals, unsigned n, uint64_t must, uint64_t from);
/* A row that was read; 0 values: it does not exist. must: the digits that were acknowledged when the read began.
 * from: the moment when it began; a cell's value that was overwritten before it is wrong. */
void ledger_row_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                      const uint64_t *vals, unsigned n, uint64_t must, uint64_t from);
/* A row of a file that was written since that moment; 0: at some time. It has all of `must`. */
void ledger_file_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                       const uint64_t *vals, unsigned n, uint64_t must, uint64_t from);
/* A row in a server's memory now. */
void ledger_memory_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                         const uint64_t *vals, unsigned n, uint64_t must);
/* The arrays belong to the caller again. The caller overwrites them; the library may not touch them. */
void ledger_poison(struct op *op);
void ledger_poisoned(struct world *w, const struct op *op);

#endif
