/*
 * Which faults of the schedule have struck something. It must never know how a fault is made. Tests:
 * test/sim/test_play.c.
 */
#ifndef SIM_HITS_H
#define SIM_HITS_H

#include <stddef.h>

struct world;

/* The fault has struck; it counts once. */
void hits_add(struct world *w, size_t fault);

#endif
