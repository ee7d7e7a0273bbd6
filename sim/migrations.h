/*
 * The fault `migrate`: partitions that get another owner under load. It must never judge. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_MIGRATIONS_H
#define SIM_MIGRATIONS_H

#include <stdbool.h>

struct world;
struct fault;

/* False: no partition can migrate now. */
bool migrations_strike(struct world *w, const struct fault *f);

#endif
