/*
 * The model of overwritten rows: which values a read may return. It must never know how a request travels.
 * Tests: test/sim/test_ledger.c; scripts/mutants.
 */
#ifndef SIM_CELLS_H
#define SIM_CELLS_H

#include <stdbool.h>
#include <stdint.h>

struct world;
struct cell;
struct cell_set;

void cell_init(struct cell *cell);
/* Is there room for another write? */
bool cell_room(struct world *w, struct cell *cell);
void cell_write(struct cell *cell, uint64_t value, uint64_t from);
/* That write was acknowledged at this moment. */
void cell_written(struct cell *cell, uint64_t value, uint64_t from, uint64_t moment);
/* From now on the row may be missing: its server has died. */
void cell_lost(struct world *w, struct cell *cell);
bool cell_may_be(const struct cell *cell, uint64_t value, uint64_t from);
/* All values that it may have held since that moment. */
void cell_now(const struct cell *cell, uint64_t from, struct cell_set *set);
/* One of these values was written to it by a request that began then and has just ended. */
void cell_becomes(struct world *w, struct cell *cell, const struct cell_set *set, uint64_t from);

#endif
