/*
 * A van over a simulated network. Each node has its own; a connection runs over the two links between its
 * nodes. By default it is a stream and keeps the contract of van/van.h: what the links lose is sent again
 * after a while, in order, and a connection whose link passes nothing for too long breaks. Classes named in
 * van_sim_set_faulty travel as datagrams instead: lost, repeated and reordered as the links have it, to show
 * that the protocol survives it. But what makes a connection is a stream always, as in every transport that
 * has connections: the first frame of each end is neither lost nor repeated, and nothing behind it arrives
 * before it. One thread; everything is decided by the simulation's seed. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMVAN_H
#define SIM_VAN_SIMVAN_H

#include "sim/van/simnet.h"
#include "van/van.h"

#define SIMVAN_RESEND_NS  (200 * ENV_MS)
#define SIMVAN_GIVE_UP_NS (15 * ENV_SEC)
enum {
    SIMVAN_WINDOW_BYTES = 1 << 20
}; /* of one connection and direction on its way; the rest waits in the queue */

/* A van for the node of that name. A node that was crashed gets a new one when it starts again. */
MUST_USE paramo_err van_sim_create(struct simnet *net, const char *node, struct van **van);
/* Bits (1 << class) of the classes that this van sends as datagrams. */
void van_sim_set_faulty(struct van *van, unsigned classes);
/* Breaks this van's connections to and from a node, both ends, with all that is on its way; to itself and
 * every other: UINT32_MAX. */
void van_sim_reset(struct van *van, uint32_t node);
/* Told of each frame that leaves (it is still the sender's) and of each that arrives, to look on. */
struct simvan_watch {
    void (*leaves)(void *arg, uint32_t from, uint32_t to, const struct van_frame *frame);
    void (*arrives)(void *arg, uint32_t from, uint32_t to, const uint8_t head[VAN_HEAD]);
    void *arg;
};
MUST_USE paramo_err van_sim_watch(struct simnet *net, const struct simvan_watch *watch);
/* The node is gone from one event to the next: its listeners refuse, the other ends of its connections are
 * reset (when the news has travelled), its own hear nothing more and wait for their van_close. */
void van_sim_crash(struct van *van);

#endif
