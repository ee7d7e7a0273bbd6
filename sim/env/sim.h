/*
 * The simulated environment: a virtual clock, seeded randomness and one queue of events, ordered by time,
 * then by sequence. Its lanes have no threads: a posted task or a due timer becomes an event that runs the
 * lane. All runs in one thread. sim_step() runs one event. Nothing depends on addresses or on real time; a
 * hash over all events (sim_trace()) shows that: equal seeds have equal traces.
 *
 * Lanes live on hosts. The clock of a host may be ahead of the simulation's (a machine that was suspended),
 * and its lanes may stand still for a while (a stopped process); on sim_env() they do not. Blocking jobs
 * (env/blocking_job.h) are events, too, each some virtual milliseconds after it was posted. Tests:
 * test/sim/test_sim.c.
 */
#ifndef SIM_ENV_SIM_H
#define SIM_ENV_SIM_H

#include <stdbool.h>
#include <stdint.h>

#include "env/env.h"
#include "env/sim_event.h"

/* The kind of an event in the trace: the upper 8 bits. */
enum { SIM_TAG_OTHER, SIM_TAG_RUN, SIM_TAG_TIMER, SIM_TAG_WIRE, SIM_TAG_PACKET, SIM_TAG_BLOCKING_JOB };
#define SIM_TAG(kind, of) ((uint32_t)(kind) << 24 | ((uint32_t)(of)&0xffffff))

MUST_USE paramo_err sim_create(uint64_t seed, struct sim **sim);
void sim_destroy(struct sim *sim);
struct env *sim_env(struct sim *sim);
uint64_t sim_now(const struct sim *sim);
/* A number of the simulation's own generator, for faults and delays. */
uint64_t sim_random(struct sim *sim);
/* NULL: a wait on a lane (lane_wait()) runs the simulation, like an application that is alone. Otherwise the
 * wait is given to `wait`, which returns true when done(of) is, or false when the deadline (of the
 * simulation's clock; UINT64_MAX: none) has passed: an application whose thread the simulation plays
 * (sim/fiber.h). */
struct sim_waiter {
    bool (*wait)(void *arg, bool (*done)(void *of), void *of, uint64_t deadline);
    void *arg;
};
void sim_set_waiter(struct sim *sim, const struct sim_waiter *waiter);
/* Hooks around the turns of lanes and around blocking jobs. `turn` is called with the host before its lane or
 * blocking job runs, and with UINT32_MAX after. `hold` is called around allocations of the simulation itself
 * during a turn. */
struct sim_turns {
    void (*turn)(void *arg, uint32_t host);
    void (*hold)(void *arg, bool on);
    void *arg;
};
void sim_set_turns(struct sim *sim, const struct sim_turns *turns);
void sim_hold(struct sim *sim, bool on);
/* Zeroed memory for the simulation itself, with `hold` around the allocation. */
void *sim_calloc(struct sim *sim, size_t size);
/* Schedules an event (memory is the caller's until it fires or is cancelled). */
MUST_USE paramo_err sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at);
void sim_cancel(struct sim *sim, struct sim_event *event);
/* Runs the earliest event; false if there is none. */
bool sim_step(struct sim *sim);
/* The number of the host whose lane the last event ran; UINT32_MAX: the event was of another kind. */
uint32_t sim_lane_host(const struct sim *sim);
/* Was the last event one of the network? Then a packet has left or arrived, and no lane has run. */
bool sim_was_network(const struct sim *sim);
/* The time of the earliest event; UINT64_MAX: none. */
uint64_t sim_next_at(struct sim *sim);
/* The hash over time, sequence and tag of all events so far, and over all notes. */
uint64_t sim_trace(const struct sim *sim);
void sim_note(struct sim *sim, uint64_t value);
/* Steps until done(arg), until virtual time passes `until`, or until no event is left. Returns done(arg). */
bool sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until);

/* A host with its own clock; it lives as long as the simulation. number identifies the host in the trace. */
MUST_USE paramo_err sim_host_create(struct sim *sim, uint32_t number, struct sim_host **host);
struct env *sim_host_env(struct sim_host *host);
/* Its lanes do nothing before this time of the simulation's clock (0: they continue). */
void sim_host_pause(struct sim_host *host, uint64_t until);
uint64_t sim_host_paused_until(const struct sim_host *host);
/* Its clock jumps forward; timers that this passes are due now. */
void sim_host_jump(struct sim_host *host, uint64_t ns);
/* From now on its clock is faster by this many millionths, or slower if negative. */
void sim_host_drift(struct sim_host *host, int32_t ppm);
/* Like a pause, with the clock stopped, too: a suspended machine. */
void sim_host_freeze(struct sim_host *host, uint64_t until);
/* How long its clock has stood still since it showed this time, in all. */
uint64_t sim_host_stood(struct sim_host *host, uint64_t clock);
/* How far its clock has jumped since it showed this time, in all. */
uint64_t sim_host_jumped(const struct sim_host *host, uint64_t clock);
/* A slow disk: each blocking job takes this much longer if it begins before `until`. */
void sim_host_slow_blocking_jobs(struct sim_host *host, uint64_t ns, uint64_t until);

#endif
