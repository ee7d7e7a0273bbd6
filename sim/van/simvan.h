/*
 * A van over a simulated network. Each node has its own; a connection runs over the two links between its
 * nodes.
 *
 * By default a connection is a stream and keeps the contract of van/van.h: lost packets are sent again after
 * a while, in order, and a connection whose link passes nothing for too long breaks. Frames of the classes
 * that van_sim_set_faulty() names travel as datagrams instead, which are lost, repeated and reordered as the
 * links say: the protocol must survive that. But the first frame of each end is always of the stream, as in
 * every transport with connections: it is not lost or repeated, and nothing after it arrives before it.
 *
 * One thread; the simulation's seed decides everything. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMVAN_H
#define SIM_VAN_SIMVAN_H

#include "sim/van/simnet.h"
#include "sim/van/simvan_rules.h"
#include "van/van.h"

/* A van for the node of that name. A node that has crashed gets a new one at its restart. */
MUST_USE paramo_err van_sim_create(struct simnet *net, const char *node, struct van **van);
/* The classes, as bits (1 << class), that this van sends as datagrams. */
void van_sim_set_faulty(struct van *van, unsigned classes);
/* Breaks this van's connections to and from a node, both ends, with all packets on their way. UINT32_MAX: the
 * connections with all nodes, itself included. */
void van_sim_reset(struct van *van, uint32_t node);
/* For observers of all vans of the net. */
MUST_USE paramo_err van_sim_watch(struct simnet *net, const struct simvan_watch *watch);
/* The node dies between two events. Its listeners refuse, and the other ends of its connections are reset
 * when the news has travelled. Its own ends hear nothing more and wait for van_close(). */
void van_sim_crash(struct van *van);

#endif
