#include "env/sim.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "env/lane_impl.h"

struct sim {
    struct env env;
    uint64_t now;
    uint64_t seq;
    uint64_t random;
    struct sim_event **events; /* binary heap from 1, by (at, seq) */
    size_t count, capacity;
};

static struct sim *sim_of(struct env *env)
{
    return container_of(env, struct sim, env);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA'14). */
uint64_t sim_random(struct sim *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(sim->random);
}

static bool event_before(const struct sim_event *a, const struct sim_event *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void event_place(struct sim *sim, struct sim_event *event, size_t slot)
{
    sim->events[slot] = event;
    event->slot = slot;
}

static void event_sift(struct sim *sim, struct sim_event *event, size_t slot)
{
    while (slot > 1 && event_before(event, sim->events[slot / 2])) {
        event_place(sim, sim->events[slot / 2], slot);
        slot /= 2;
    }
    for (;;) {
        size_t child = 2 * slot;
        if (child > sim->count)
            break;
        if (child < sim->count && event_before(sim->events[child + 1], sim->events[child]))
            child++;
        if (!event_before(sim->events[child], event))
            break;
        event_place(sim, sim->events[child], slot);
        slot = child;
    }
    event_place(sim, event, slot);
}

paramo_err sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at)
{
    event->at = at > sim->now ? at : sim->now;
    event->seq = ++sim->seq;
    if (event->slot) {
        event_sift(sim, event, event->slot);
        return PARAMO_OK;
    }
    if (sim->count + 1 >= sim->capacity) {
        size_t capacity = sim->capacity ? 2 * sim->capacity : 64;
        struct sim_event **events = realloc(sim->events, capacity * sizeof(struct sim_event *));
        if (!events)
            return err_memory(capacity * sizeof(struct sim_event *));
        sim->events = events;
        sim->capacity = capacity;
    }
    event_sift(sim, event, ++sim->count);
    return PARAMO_OK;
}

void sim_cancel(struct sim *sim, struct sim_event *event)
{
    size_t slot = event->slot;
    if (!slot)
        return;
    event->slot = 0;
    struct sim_event *last = sim->events[sim->count--];
    if (last != event)
        event_sift(sim, last, slot);
}

bool sim_step(struct sim *sim)
{
    if (!sim->count)
        return false;
    struct sim_event *event = sim->events[1];
    sim_cancel(sim, event);
    sim->now = event->at;
    event->fire(event);
    return true;
}

bool sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until)
{
    while (!done(arg)) {
        if (!sim->count || sim->events[1]->at > until)
            return false;
        (void)sim_step(sim);
    }
    return true;
}

/* ---- the environment
 * --------------------------------------------------------------------------------------------- */

static uint64_t sim_env_now(struct env *env)
{
    return sim_of(env)->now;
}

static uint64_t sim_env_random(struct env *env)
{
    return sim_random(sim_of(env));
}

/* ---- lanes without threads
 * ------------------------------------------------------------------------------------------ */

static void sim_lane_turn(struct lane *lane)
{
    if (lane_acquire(lane)) {
        lane_round(lane);
        lane_leave(lane);
    }
}

static void sim_lane_run(struct sim_event *event)
{
    sim_lane_turn(container_of(event, struct lane, sim.run));
}

static void sim_lane_timer(struct sim_event *event)
{
    sim_lane_turn(container_of(event, struct lane, sim.timer));
}

static paramo_err sim_lane_start(struct lane *lane)
{
    lane->sim.sim = sim_of(lane->env);
    lane->sim.run.fire = sim_lane_run;
    lane->sim.timer.fire = sim_lane_timer;
    return PARAMO_OK;
}

static void sim_lane_stop(struct lane *lane)
{
    (void)lane;
}

static void sim_lane_fini(struct lane *lane)
{
    sim_cancel(lane->sim.sim, &lane->sim.run);
    sim_cancel(lane->sim.sim, &lane->sim.timer);
}

static void sim_must_schedule(struct sim *sim, struct sim_event *event, uint64_t at)
{
    if (sim_schedule(sim, event, at))
        abort(); /* the simulation itself is out of memory: its result would mean nothing */
}

static void sim_lane_wake(struct lane *lane)
{
    if (!lane->sim.run.slot)
        sim_must_schedule(lane->sim.sim, &lane->sim.run, lane->sim.sim->now);
}

static void sim_lane_released(struct lane *lane, uint64_t next, bool notify)
{
    (void)notify;
    if (next == UINT64_MAX)
        sim_cancel(lane->sim.sim, &lane->sim.timer);
    else if (!lane->sim.timer.slot || lane->sim.timer.at != next)
        sim_must_schedule(lane->sim.sim, &lane->sim.timer, next);
}

static void sim_lane_poll(struct lane *lane)
{
    (void)lane;
}

static paramo_err sim_lane_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline)
{
    struct sim *sim = lane->sim.sim;
    if (sim_run(sim, done, arg, deadline))
        return PARAMO_OK;
    if (sim->now < deadline && deadline != UINT64_MAX)
        sim->now = deadline;
    return err_set(PARAMO_E_TIMEOUT, "the wait's deadline has passed");
}

static const struct lane_ops sim_lane_ops = {
    .start = sim_lane_start,
    .stop = sim_lane_stop,
    .fini = sim_lane_fini,
    .wake = sim_lane_wake,
    .poll = sim_lane_poll,
    .released = sim_lane_released,
    .borrow = false,
    .wait = sim_lane_wait,
};

static const struct env_ops sim_ops = {
    .now = sim_env_now,
    .random = sim_env_random,
    .lanes = &sim_lane_ops,
};

paramo_err sim_create(uint64_t seed, struct sim **sim)
{
    struct sim *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->env.ops = &sim_ops;
    made->now = ENV_SEC; /* not 0, so that "before the start" can be said */
    made->random = mix64(seed + 1);
    *sim = made;
    return PARAMO_OK;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    free(sim->events);
    free(sim);
}

struct env *sim_env(struct sim *sim)
{
    return &sim->env;
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now;
}
