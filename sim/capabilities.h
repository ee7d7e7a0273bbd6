/*
 * Capability bits in the simulator: each start of a process is a build of its own, and both ends of every
 * connection must come to the bits that both builds have. A feature with a bit is so on for some connections
 * and off for others. It must never know what a bit is for. Tests: test/sim/test_play.c.
 */
#ifndef SIM_CAPABILITIES_H
#define SIM_CAPABILITIES_H

#include "sim/world.h"

/* The bits of a process that starts now: a quarter has none, half has all. By dice of their own. */
uint64_t capabilities_draw(const struct world *w, uint32_t node);
/* All connections between servers, and between workers and servers. */
void capabilities_check(struct world *w);

#endif
