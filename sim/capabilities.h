/*
 * Capability bits in the simulator: each start of a process is a build of its own, and both ends of every
 * connection must agree on the bits that both builds have. So a feature with a bit is on for some connections
 * and off for others. It must never know what a bit is for. Tests: test/sim/test_play.c.
 */
#ifndef SIM_CAPABILITIES_H
#define SIM_CAPABILITIES_H

#include "sim/world.h"

/* The bits of a process that starts now: a quarter has none, half has all. Drawn with dice of its own. */
uint64_t capabilities_draw(const struct world *w, uint32_t node);
/* What a connection between the machine and a server in one of these places (bits) may lack: both ends must have a
 * capability. */
uint64_t capabilities_lacked(const struct machine *m, uint32_t servers);
/* Checks all connections between servers, and between workers and servers. */
void capabilities_check(struct world *w);

#endif
