/*
 * A network that exists in a simulation only: nodes, and between each two a link per direction with delay,
 * bandwidth and faults, which may change while it runs. A packet goes through a chain of small stages (as in
 * quicly's t/simulator.c): bottleneck -> faults -> delay; every fault is decided in simnet_decide, from the
 * simulation's seed. Knows packets by size only. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMNET_H
#define SIM_VAN_SIMNET_H

#include "sim/env/sim.h"

struct simnet;
struct simnet_node;

struct simnet_link {
    uint32_t from, to; /* numbers of its nodes */
    /* Settings; those of a new link are the net's defaults. */
    uint64_t delay_min_ns, delay_max_ns; /* drawn per packet */
    uint64_t bytes_per_sec;              /* 0: as fast as you like */
    uint32_t loss_ppm, repeat_ppm;
    uint32_t late_ppm; /* this share of the packets takes late_ns more */
    uint64_t late_ns;
    bool cut; /* nothing passes */
    /* State. */
    uint64_t busy_until;
    uint64_t packets, bytes, lost, repeated;
};

struct simnet_fate {
    unsigned copies; /* 0: lost */
    uint64_t delay[2];
};

MUST_USE paramo_err simnet_create(struct sim *sim, struct simnet **net);
/* After its vans, before the simulation. What is still on its way is dropped. */
void simnet_destroy(struct simnet *net);
struct sim *simnet_sim(struct simnet *net);
/* From now on decide says what becomes of each packet, instead of the links' settings: a simulation whose
 * faults come from a list. */
void simnet_set_decider(struct simnet *net, struct simnet_fate (*decide)(void *arg, struct simnet_link *link),
                        void *arg);
/* Settings of links that are made from now on: 0.1 to 0.2 ms, no faults, unless changed. */
struct simnet_link *simnet_defaults(struct simnet *net);
/* The node of that name, made if need be; it lives as long as the net. */
MUST_USE paramo_err simnet_node(struct simnet *net, const char *name, struct simnet_node **node);
/* The link from one node to another (or to itself), made if need be. */
MUST_USE paramo_err simnet_link(struct simnet *net, const struct simnet_node *from,
                                const struct simnet_node *to, struct simnet_link **link);

/* The bottleneck: when a packet of this size that enters now has passed it. */
uint64_t simnet_bottleneck(struct simnet *net, struct simnet_link *link, uint64_t bytes);
/* Faults and delay of one packet. */
struct simnet_fate simnet_decide(struct simnet *net, struct simnet_link *link);

/* What a van keeps with the net: one pointer, and how it is freed with the net. */
void *simnet_world(struct simnet *net);
void simnet_set_world(struct simnet *net, void *world, void (*world_free)(void *world));

#endif
