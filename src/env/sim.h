/*
 * The simulated environment: a virtual clock, seeded randomness and one queue of events, ordered by time,
 * then by sequence. Lanes made with it have no threads: a posted task or a due timer becomes an event that
 * runs the lane. One thread. sim_step runs one event; nothing in here depends on addresses or on real time.
 * Tests: test/env/test_sim.c.
 */
#ifndef ENV_SIM_H
#define ENV_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "env/env.h"

struct sim;

struct sim_event {
    uint64_t at;
    uint64_t seq;
    size_t slot; /* 0: not scheduled */
    void (*fire)(struct sim_event *event);
};

MUST_USE paramo_err sim_create(uint64_t seed, struct sim **sim);
void sim_destroy(struct sim *sim);
struct env *sim_env(struct sim *sim);
uint64_t sim_now(const struct sim *sim);
/* From the simulation's own generator: for faults and delays. */
uint64_t sim_random(struct sim *sim);
/* Schedules an event (memory is the caller's until it fires or is cancelled). */
MUST_USE paramo_err sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at);
void sim_cancel(struct sim *sim, struct sim_event *event);
/* Runs the earliest event; false if there is none. */
bool sim_step(struct sim *sim);
/* Steps until done(arg), or virtual time passes until, or no event is left; returns done(arg). */
bool sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until);

#endif
