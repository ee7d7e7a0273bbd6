/*
 * An event of a simulated clock, which a lane of a simulation embeds (env/lane_impl.h). sim/env/sim.h
 * schedules and fires it; src/ never does. Tests: test/sim/test_sim.c.
 */
#ifndef ENV_SIM_EVENT_H
#define ENV_SIM_EVENT_H

#include <stddef.h>
#include <stdint.h>

struct sim;
struct sim_host;

struct sim_event {
    uint64_t at;
    uint64_t seq;
    size_t slot; /* 0: not scheduled */
    uint32_t tag;
    void (*fire)(struct sim_event *event);
};

#endif
