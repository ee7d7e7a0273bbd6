/*
 * What a checkpoint must hold and may hold, and the model after it is loaded. It must never read a file.
 * Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_BOUNDS_H
#define SIM_BOUNDS_H

#include <stdbool.h>
#include <stdint.h>

#include "sim/sizes.h"

struct world;

struct bounds;
struct load_attempt;
struct ledger_state;
/* Is the table one that checkpoints have? */
bool bounds_hold(enum sim_table table);
/* A checkpoint begins. The caller frees the bounds. */
struct bounds *bounds_begin(struct world *w);
uint64_t bounds_from(const struct bounds *b);
/* Its manifest exists: adds what the checkpoint may hold, for the tables that it has. */
struct bounds *bounds_end(const struct world *w, const struct bounds *begun, const bool has[SIM_TABLES]);
/* Until a load succeeds, each row may be as it was, or as in a checkpoint whose load was tried (ckpt_seen.until),
 * with what was pushed since. */
void bounds_load_begins(struct world *w, struct load_attempt *a);
/* The row's state if the last load took it from this checkpoint. False: the checkpoint lacks the table. */
bool bounds_loads(const struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                  struct ledger_state *state);
/* Digits of the key that may be in a checkpoint from which a read that began then may find the row loaded. */
uint64_t bounds_may_load(const struct world *w, enum sim_table table, unsigned index, uint64_t from);
/* May a cell in that checkpoint have this value? */
bool bounds_has_cell(const struct bounds *b, unsigned index, uint64_t value);
void bounds_loaded(struct world *w, const struct bounds *b, const struct load_attempt *a);
/* The lost rows of a key return to this checkpoint. again: they may return to it a second time, or to another
 * one. */
void bounds_returned(struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                     bool again);
/* All processes have died, and the next job begins with this checkpoint. */
void bounds_restored(struct world *w, const struct bounds *b);

#endif
