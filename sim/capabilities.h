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
/* What a connection between the machine and a server in one of these places (bits) may lack: both ends must have a
 * capability. */
uint64_t capabilities_lacked(const struct machine *m, uint32_t servers);
/* All connections between servers, and between workers and servers. */
void capabilities_check(struct world *w);

#endif
