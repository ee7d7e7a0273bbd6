/*
 * A network of the simulation: nodes, and for each pair a link in each direction with delay, bandwidth and
 * faults, which may change during a run. A packet goes through a chain of small stages (as in quicly's
 * t/simulator.c): bottleneck, faults, delay. simnet_decide() decides every fault, from the simulation's seed.
 * It knows only the sizes of packets. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMNET_H
#define SIM_VAN_SIMNET_H

#include "sim/env/sim.h"

struct simnet;
struct simnet_node;

struct simnet_link {
    uint32_t from, to; /* numbers of the two nodes */
    /* Settings. A new link has the defaults of the net. */
    uint64_t delay_min_ns, delay_max_ns; /* drawn per packet */
    uint64_t bytes_per_sec;              /* 0: unlimited */
    uint32_t loss_ppm, repeat_ppm;
    uint32_t late_ppm; /* this share of the packets is late by late_ns */
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
/* Called after its vans are freed and before the simulation is. Drops the packets on their way. */
void simnet_destroy(struct simnet *net);
struct sim *simnet_sim(struct simnet *net);
/* From now on `decide` decides about each packet instead of the links' settings: for a simulation with a list
 * of faults. */
void simnet_set_decider(struct simnet *net, struct simnet_fate (*decide)(void *arg, struct simnet_link *link),
                        void *arg);
/* Settings of links that are made from now on: 0.1 to 0.2 ms without faults, unless changed. */
struct simnet_link *simnet_defaults(struct simnet *net);
/* The node of that name, made if it is missing; it lives as long as the net. */
MUST_USE paramo_err simnet_node(struct simnet *net, const char *name, struct simnet_node **node);
/* The link from one node to another (or to itself), made if it is missing. */
MUST_USE paramo_err simnet_link(struct simnet *net, const struct simnet_node *from,
                                const struct simnet_node *to, struct simnet_link **link);

/* The bottleneck: the time at which a packet of this size that enters now has passed it. */
uint64_t simnet_bottleneck(struct simnet *net, struct simnet_link *link, uint64_t bytes);
/* Decides about the faults and the delay of one packet. */
struct simnet_fate simnet_decide(struct simnet *net, struct simnet_link *link);

/* One pointer of the vans, kept with the net and freed with it. */
void *simnet_world(struct simnet *net);
void simnet_set_world(struct simnet *net, void *world, void (*world_free)(void *world));

#endif
