/*
 * The fault `migrate`: partitions that get another owner under load. It must never judge. Tests:
 * test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_MIGRATE_FAULT_H
#define SIM_MIGRATE_FAULT_H

#include <stdbool.h>

struct world;
struct fault;

/* False: no partition can migrate now. */
bool migrate_fault_strike(struct world *w, const struct fault *f);

#endif
