/*
 * Reductions in the simulator: ranges and functions, drawn, and what their results may be. It must never know how a
 * shard computes. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_REDUCTIONS_H
#define SIM_REDUCTIONS_H

#include "sim/ops.h"

struct world;
struct dice;

/* Room for all values of a table. */
enum { SIM_ENTRIES = SIM_KEYS * SIM_WIDE };

void reduction_draw(struct op *op, struct dice *dice);
/* The request has succeeded. */
void reduction_judge(struct world *w, const struct op *op);
/* May it end with UNSUPPORTED? */
bool reduction_may_be_refused(const struct world *w, const struct op *op);

#endif
