/*
 * An island: some members of chains and a client are cut off from the rest for longer than a lease and a death last.
 * The client reads what the workers of the other side write. It must never judge. Tests: test/sim/test_play.c;
 * scripts/mutants.
 */
#ifndef SIM_ISLAND_H
#define SIM_ISLAND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "sim/sizes.h"

struct world;
struct machine;
struct op;

/* Arbitrary, beside the 40,000 events of most schedules. */
enum { ISLAND_STILL = 60000 };

/* This fault waits from now on for a view that fits. */
void island_strike(struct world *w, size_t fault);
/* After each event. */
void island_step(struct world *w);
/* There is an island now. */
bool island_lasts(const struct world *w);
/* There is an island now, and no other fault may strike. */
bool island_still(const struct world *w);
/* Each worker takes part in the island: it reads, or writes, its keys. */
bool island_needs(const struct world *w);
/* The table, the kind and the keys of the worker's next request. False: there are none. */
bool island_draw(struct machine *m, struct op *op);
/* Ends the present island, and drops the faults that wait for a view. */
void island_heal(struct world *w);

#endif
