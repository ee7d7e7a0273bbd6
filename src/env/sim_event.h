/*
 * An event of a simulated clock, as a lane of a simulation embeds it (env/lane_impl.h). What schedules and
 * fires it is in sim/env/sim.h: src/ never knows it. Tests: test/sim/test_sim.c.
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
