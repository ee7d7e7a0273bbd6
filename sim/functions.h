/*
 * Functions of rows in the simulator: ranges and functions, drawn, and what their results may be. It must never know
 * how a shard computes. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_FUNCTIONS_H
#define SIM_FUNCTIONS_H

#include <stdbool.h>

#include "sim/sizes.h"

struct world;
struct op;
struct dice;

/* Room for all values of a table. */
enum { SIM_ENTRIES = SIM_KEYS * SIM_WIDE };

void reduction_draw(struct op *op, struct dice *dice);
/* The request has succeeded. */
void reduction_judge(struct world *w, const struct op *op);
/* A function that adds the same digit to each key, as a push would, or one that leaves all values as they are: then
 * no push of others may be lost by it. */
void transform_draw(struct op *op, struct dice *dice);
/* May it end with UNSUPPORTED? */
bool function_may_be_refused(const struct op *op, uint32_t servers);

#endif
