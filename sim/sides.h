/*
 * Nodes that are cut off from others: netsplits, splits, vanished hosts, also in the middle of a migration.
 * It must never judge. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_SIDES_H
#define SIM_SIDES_H

#include <stddef.h>
#include <stdint.h>

struct world;
struct machine;
struct fault;

/* The machine is cut off from all others. */
void sides_vanish(struct world *w, const struct machine *m, uint64_t ns, size_t fault);
void sides_strike(struct world *w, const struct fault *f, size_t fault);
/* These nodes do not reach the others, and are not reached by them. */
void sides_cut(struct world *w, uint32_t nodes, uint64_t ns, size_t fault);
/* After each event. */
void sides_step(struct world *w);
/* Faults that wait for a migration no longer wait. */
void sides_heal(struct world *w);

#endif
