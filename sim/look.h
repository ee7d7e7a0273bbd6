/*
 * The full look: the rows of all tables at all servers, and what each server keeps. It must never change the cluster.
 * Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_LOOK_H
#define SIM_LOOK_H

#include <stdbool.h>

struct world;

/* last: everything that is still kept must be needed. */
void look_all(struct world *w, bool last);

#endif
