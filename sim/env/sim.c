#include "sim/env/sim.h"

#include <assert.h>
#include <stdlib.h>

#include "base/hash.h"
#include "env/blocking_job.h"
#include "env/blocking_job_impl.h"
#include "env/lane.h"
#include "env/lane_impl.h"

enum { CLOCK_GAPS = 8 };           /* that are remembered; arbitrary: more than there are in a lease */
#define SLOT_DUE ((size_t)1 << 63) /* in sim_event.slot: the rest is its number among the due events */

/* Standstills of a clock, or jumps. The last ones are kept, by their count modulo CLOCK_GAPS. */
struct clock_gaps {
    struct {
        uint64_t at; /* its own time then */
        uint64_t ns; /* how long it stood still (0: it still does), or how far it jumped */
    } gap[CLOCK_GAPS];
    unsigned count;
};

struct sim_host {
    struct env env;
    struct sim *sim;
    struct sim_host *next;
    uint32_t number;
    int64_t ahead;      /* ahead of the simulation's clock, at `since` */
    uint64_t since;     /* when `ahead` or `ppm` last changed */
    int32_t ppm;        /* millionths by which it drifts from then on */
    uint64_t frozen_at; /* 0: its clock runs */
    struct clock_gaps stood, jumps;
    uint64_t paused_until;
    uint64_t blocking_jobs_ns, blocking_jobs_slow_until;
    struct lane *lanes;
};

/* An event with the fields that order the heap, since the events themselves lie scattered. */
struct sim_slot {
    uint64_t at, seq;
    struct sim_event *event;
};

struct sim {
    struct sim_host host; /* sim_env */
    struct sim_host *hosts;
    uint64_t now; /* the time of the last event */
    uint64_t trace;
    uint64_t seq;
    uint64_t random;
    uint32_t tag; /* of the last event */
    const struct sim_waiter *waiter;
    const struct sim_turns *turns;
    uint32_t turn;           /* the host whose lane runs */
    struct sim_slot *events; /* a heap from 1, by (at, seq); the children of i are 4 i - 2 to 4 i + 1 */
    size_t count, capacity;
    /* Events that were scheduled for the time when they were: most are. The clock does not go back and seq rises, so
     * they are in order by themselves. By their number modulo due_room, a power of two; NULL: cancelled. */
    struct sim_event **due;
    size_t due_first, due_end, due_room;
};

static struct sim_host *host_of(struct env *env)
{
    return container_of(env, struct sim_host, env);
}

/* SplitMix64 (Steele, Lea, Flood, OOPSLA'14). */
uint64_t sim_random(struct sim *sim)
{
    sim->random += UINT64_C(0x9e3779b97f4a7c15);
    return mix64(sim->random);
}

static bool slot_before(const struct sim_slot *a, const struct sim_slot *b)
{
    return a->at != b->at ? a->at < b->at : a->seq < b->seq;
}

static void slot_fill(struct sim *sim, struct sim_slot what, size_t slot)
{
    sim->events[slot] = what;
    what.event->slot = slot;
}

static void event_sift(struct sim *sim, struct sim_event *event, size_t slot)
{
    const struct sim_slot what = {.at = event->at, .seq = event->seq, .event = event};
    while (slot > 1 && slot_before(&what, &sim->events[(slot + 2) / 4])) {
        slot_fill(sim, sim->events[(slot + 2) / 4], slot);
        slot = (slot + 2) / 4;
    }
    for (;;) {
        size_t first = 4 * slot - 2, last = first + 3 < sim->count ? first + 3 : sim->count, child = first;
        if (first > sim->count)
            break;
        for (size_t i = first + 1; i <= last; i++)
            child = slot_before(&sim->events[i], &sim->events[child]) ? i : child;
        if (!slot_before(&sim->events[child], &what))
            break;
        slot_fill(sim, sim->events[child], slot);
        slot = child;
    }
    slot_fill(sim, what, slot);
}

static void turns(struct sim *sim, uint32_t host)
{
    if (sim->turns)
        sim->turns->turn(sim->turns->arg, host);
}

void sim_hold(struct sim *sim, bool on)
{
    if (sim->turns)
        sim->turns->hold(sim->turns->arg, on);
}

void sim_set_turns(struct sim *sim, const struct sim_turns *watcher)
{
    sim->turns = watcher;
}

void *sim_calloc(struct sim *sim, size_t size)
{
    sim_hold(sim, true);
    void *p = calloc(1, size);
    sim_hold(sim, false);
    return p;
}

static paramo_err heap_room(struct sim *sim)
{
    size_t capacity = sim->capacity ? 2 * sim->capacity : 64;
    if (sim->count + 1 < sim->capacity)
        return PARAMO_OK;
    sim_hold(sim, true);
    struct sim_slot *events = realloc(sim->events, capacity * sizeof *events);
    sim_hold(sim, false);
    if (!events)
        return err_memory(capacity * sizeof *events);
    sim->events = events;
    sim->capacity = capacity;
    return PARAMO_OK;
}

static paramo_err due_more(struct sim *sim)
{
    size_t room = sim->due_room ? 2 * sim->due_room : 64;
    if (sim->due_end - sim->due_first < sim->due_room)
        return PARAMO_OK;
    struct sim_event **due = sim_calloc(sim, room * sizeof(struct sim_event *));
    if (!due)
        return err_memory(room * sizeof(struct sim_event *));
    for (size_t i = sim->due_first; i < sim->due_end; i++)
        due[i & (room - 1)] = sim->due[i & (sim->due_room - 1)];
    free(sim->due);
    sim->due = due;
    sim->due_room = room;
    return PARAMO_OK;
}

/* The first due event; NULL: there is none. */
static struct sim_event *due_head(struct sim *sim)
{
    while (sim->due_first < sim->due_end && !sim->due[sim->due_first & (sim->due_room - 1)])
        sim->due_first++;
    return sim->due_first < sim->due_end ? sim->due[sim->due_first & (sim->due_room - 1)] : NULL;
}

/* The earliest event; NULL: there is none. */
static struct sim_event *earliest(struct sim *sim)
{
    struct sim_event *due = due_head(sim);
    if (!sim->count || (due && due->at < sim->events[1].at))
        return due;
    return due && due->at == sim->events[1].at && due->seq < sim->events[1].seq ? due : sim->events[1].event;
}

paramo_err sim_schedule(struct sim *sim, struct sim_event *event, uint64_t at)
{
    bool now = at <= sim->now, in_heap = event->slot && !(event->slot & SLOT_DUE);
    paramo_err err = now ? due_more(sim) : in_heap ? PARAMO_OK : heap_room(sim);
    if (err)
        return err;
    if (now || !in_heap)
        sim_cancel(sim, event);
    event->at = now ? sim->now : at;
    event->seq = ++sim->seq;
    if (now) {
        event->slot = SLOT_DUE | sim->due_end;
        sim->due[sim->due_end++ & (sim->due_room - 1)] = event;
    } else {
        event_sift(sim, event, in_heap ? event->slot : ++sim->count);
    }
    return PARAMO_OK;
}

void sim_cancel(struct sim *sim, struct sim_event *event)
{
    size_t slot = event->slot;
    if (!slot)
        return;
    event->slot = 0;
    if (slot & SLOT_DUE) {
        sim->due[(slot & ~SLOT_DUE) & (sim->due_room - 1)] = NULL;
        return;
    }
    struct sim_event *last = sim->events[sim->count--].event;
    if (last != event)
        event_sift(sim, last, slot);
}

bool sim_step(struct sim *sim)
{
    struct sim_event *event = earliest(sim);
    if (!event)
        return false;
    sim_cancel(sim, event);
    sim->now = event->at;
    sim->tag = event->tag;
    sim_note(sim, event->at);
    sim_note(sim, event->seq << 32 ^ event->tag);
    event->fire(event);
    return true;
}

uint32_t sim_lane_host(const struct sim *sim)
{
    uint32_t kind = sim->tag >> 24;
    return kind == SIM_TAG_RUN || kind == SIM_TAG_TIMER ? sim->tag & 0xffffff : UINT32_MAX;
}

bool sim_was_network(const struct sim *sim)
{
    uint32_t kind = sim->tag >> 24;
    return kind == SIM_TAG_WIRE || kind == SIM_TAG_PACKET;
}

uint64_t sim_next_at(struct sim *sim)
{
    const struct sim_event *event = earliest(sim);
    return event ? event->at : UINT64_MAX;
}

uint64_t sim_trace(const struct sim *sim)
{
    return sim->trace;
}

void sim_set_waiter(struct sim *sim, const struct sim_waiter *waiter)
{
    sim->waiter = waiter;
}

void sim_note(struct sim *sim, uint64_t value)
{
    sim->trace = mix64(sim->trace + value + UINT64_C(0x9e3779b97f4a7c15));
}

bool sim_run(struct sim *sim, bool (*done)(void *arg), void *arg, uint64_t until)
{
    while (!done(arg)) {
        if (!earliest(sim) || sim_next_at(sim) > until)
            return false;
        (void)sim_step(sim);
    }
    return true;
}

/* ---- the environment ----------------------------------------------------------------------------------- */

static void drift_apply(struct sim_host *host, uint64_t now)
{
    host->ahead += (int64_t)(now - host->since) / 1000000 * host->ppm +
                   (int64_t)(now - host->since) % 1000000 * host->ppm / 1000000;
    host->since = now;
}

/* A frozen clock continues where it stood. */
static void thaw(struct sim_host *host)
{
    uint64_t now = host->sim->now;
    if (!host->frozen_at || host->paused_until > now)
        return;
    uint64_t on = host->paused_until > host->frozen_at ? host->paused_until : now;
    host->ahead -= (int64_t)(on - host->frozen_at);
    host->stood.gap[(host->stood.count - 1) % CLOCK_GAPS].ns = on - host->frozen_at;
    host->since = on;
    host->frozen_at = 0;
}

static uint64_t host_clock(struct sim_host *host)
{
    thaw(host);
    uint64_t now = host->frozen_at ? host->frozen_at : host->sim->now, passed = now - host->since;
    int64_t drift =
        (int64_t)(passed / 1000000) * host->ppm + (int64_t)(passed % 1000000) * host->ppm / 1000000;
    return now + (uint64_t)(host->ahead + drift);
}

/* The simulation's time at which the host's clock shows this time; perhaps a little later, never before. */
static uint64_t host_when(struct sim_host *host, uint64_t time)
{
    uint64_t clock = host_clock(host), rate = 1000000 + (uint64_t)(int64_t)host->ppm;
    if (time <= clock)
        return 0; /* now */
    uint64_t left = time - clock, from = host->sim->now;
    if (host->frozen_at)
        from = host->paused_until;
    if (!host->ppm || left > UINT64_MAX / 4)
        return left > UINT64_MAX - from ? UINT64_MAX : from + left;
    return from + left / rate * 1000000 + left % rate * 1000000 / rate + 1;
}

static uint64_t sim_env_now(struct env *env)
{
    return host_clock(host_of(env));
}

static uint64_t sim_env_random(struct env *env)
{
    return sim_random(host_of(env)->sim);
}

/* ---- lanes without threads ----------------------------------------------------------------------------- */

static void sim_must_schedule(struct sim *sim, struct sim_event *event, uint64_t at)
{
    if (sim_schedule(sim, event, at))
        abort(); /* the simulation itself is out of memory: its result would be worthless */
}

static void sim_lane_turn(struct lane *lane)
{
    struct sim *sim = lane->sim.sim;
    uint32_t before = sim->turn;
    if (!lane_acquire(lane))
        return;
    sim->turn = lane->sim.host->number;
    turns(sim, sim->turn);
    lane_round(lane);
    lane_leave(lane);
    sim->turn = before;
    turns(sim, before);
}

static void sim_lane_event(struct lane *lane, struct sim_event *event)
{
    const struct sim_host *host = lane->sim.host;
    if (host->paused_until > host->sim->now)
        sim_must_schedule(host->sim, event, host->paused_until);
    else
        sim_lane_turn(lane);
}

static void sim_lane_run(struct sim_event *event)
{
    sim_lane_event(container_of(event, struct lane, sim.run), event);
}

static void sim_lane_timer(struct sim_event *event)
{
    sim_lane_event(container_of(event, struct lane, sim.timer), event);
}

static paramo_err sim_lane_start(struct lane *lane)
{
    struct sim_host *host = host_of(lane->env);
    lane->sim.sim = host->sim;
    lane->sim.host = host;
    lane->sim.next = host->lanes;
    host->lanes = lane;
    lane->sim.run.fire = sim_lane_run;
    lane->sim.run.tag = SIM_TAG(SIM_TAG_RUN, host->number);
    lane->sim.timer.fire = sim_lane_timer;
    lane->sim.timer.tag = SIM_TAG(SIM_TAG_TIMER, host->number);
    return PARAMO_OK;
}

static void sim_lane_stop(struct lane *lane)
{
    (void)lane;
}

static void sim_lane_fini(struct lane *lane)
{
    struct lane **at = &lane->sim.host->lanes;
    while (*at != lane)
        at = &(*at)->sim.next;
    *at = lane->sim.next;
    sim_cancel(lane->sim.sim, &lane->sim.run);
    sim_cancel(lane->sim.sim, &lane->sim.timer);
}

static void sim_lane_wake(struct lane *lane, bool returning)
{
    (void)returning;
    if (!lane->sim.run.slot)
        sim_must_schedule(lane->sim.sim, &lane->sim.run, lane->sim.sim->now);
}

static void sim_lane_released(struct lane *lane, uint64_t next, bool notify)
{
    (void)notify;
    uint64_t at = next == UINT64_MAX ? 0 : host_when(lane->sim.host, next);
    if (next == UINT64_MAX)
        sim_cancel(lane->sim.sim, &lane->sim.timer);
    else if (!lane->sim.timer.slot || lane->sim.timer.at != at)
        sim_must_schedule(lane->sim.sim, &lane->sim.timer, at);
}

static void sim_lane_poll(struct lane *lane)
{
    (void)lane;
}

static paramo_err sim_lane_wait(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline)
{
    struct sim *sim = lane->sim.sim;
    if (deadline != UINT64_MAX)
        deadline = host_when(lane->sim.host, deadline);
    if (sim->waiter)
        return sim->waiter->wait(sim->waiter->arg, done, arg, deadline)
                   ? PARAMO_OK
                   : err_set(PARAMO_E_TIMEOUT, "the wait's deadline has passed");
    /* A waiting thread drives the lane: the tasks in its inbox need no other thread, and no time. */
    while (lane->sim.run.slot && !done(arg)) {
        sim_cancel(sim, &lane->sim.run);
        sim_lane_turn(lane);
    }
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

/* ---- blocking jobs: events, one after the other, each after a time that is drawn ----------------------- A disk
 * works while its process is stopped. A job without a lane is one of the process's own threads, which is stopped. */

struct sim_blocking_jobs {
    struct blocking_jobs blocking_jobs;
    struct sim *sim;
    const struct sim_host *host;
    struct queue waiting;
    struct sim_event next;
};

static void sim_blocking_jobs_arm(struct sim_blocking_jobs *c)
{
    const uint64_t most = 5 * ENV_MS; /* a sync of a slow disk */
    uint64_t slow = c->sim->now < c->host->blocking_jobs_slow_until ? c->host->blocking_jobs_ns : 0;
    sim_must_schedule(c->sim, &c->next, c->sim->now + 1 + slow + sim_random(c->sim) % most);
}

static void sim_blocking_job_turn(struct sim_blocking_jobs *c)
{
    turns(c->sim, c->host->number);
    blocking_job_do(container_of(queue_pop(&c->waiting), struct blocking_job, node));
    turns(c->sim, c->sim->turn);
}

static void sim_blocking_jobs_next(struct sim_event *event)
{
    struct sim_blocking_jobs *c = container_of(event, struct sim_blocking_jobs, next);
    const struct blocking_job *first = container_of(c->waiting.head, struct blocking_job, node);
    if (!first->lane && c->host->paused_until > c->sim->now) {
        sim_must_schedule(c->sim, event, c->host->paused_until);
        return;
    }
    sim_blocking_job_turn(c);
    if (!queue_empty(&c->waiting))
        sim_blocking_jobs_arm(c);
}

static paramo_err sim_blocking_jobs_create(struct env *env, const char *name, struct blocking_jobs **out)
{
    const struct sim_host *host = host_of(env);
    struct sim_blocking_jobs *c = calloc(1, sizeof *c);
    if (!c)
        return err_memory(sizeof *c);
    (void)name;
    c->sim = host->sim;
    c->host = host;
    c->next.fire = sim_blocking_jobs_next;
    c->next.tag = SIM_TAG(SIM_TAG_BLOCKING_JOB, host->number);
    *out = &c->blocking_jobs;
    return PARAMO_OK;
}

static void sim_blocking_jobs_post(struct blocking_jobs *blocking_jobs, struct blocking_job *blocking_job)
{
    struct sim_blocking_jobs *c = container_of(blocking_jobs, struct sim_blocking_jobs, blocking_jobs);
    queue_push(&c->waiting, &blocking_job->node);
    if (!c->next.slot)
        sim_blocking_jobs_arm(c);
}

static void sim_blocking_jobs_destroy(struct blocking_jobs *blocking_jobs)
{
    struct sim_blocking_jobs *c = container_of(blocking_jobs, struct sim_blocking_jobs, blocking_jobs);
    sim_cancel(c->sim, &c->next);
    while (!queue_empty(&c->waiting))
        sim_blocking_job_turn(c);
    free(c);
}

static const struct blocking_job_ops sim_blocking_job_ops = {
    .create = sim_blocking_jobs_create, .post = sim_blocking_jobs_post, .destroy = sim_blocking_jobs_destroy};

static const struct env_ops sim_ops = {
    .now = sim_env_now,
    .random = sim_env_random,
    .lanes = &sim_lane_ops,
    .blocking_jobs = &sim_blocking_job_ops,
};

paramo_err sim_create(uint64_t seed, struct sim **sim)
{
    struct sim *made = calloc(1, sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    made->host = (struct sim_host){.env.ops = &sim_ops, .sim = made};
    made->turn = UINT32_MAX;
    made->now = ENV_SEC; /* not 0, so that there is a time before the start */
    made->random = mix64(seed + 1);
    *sim = made;
    return PARAMO_OK;
}

void sim_destroy(struct sim *sim)
{
    if (!sim)
        return;
    while (sim->hosts) {
        struct sim_host *next = sim->hosts->next;
        free(sim->hosts);
        sim->hosts = next;
    }
    free(sim->events);
    free(sim->due);
    free(sim);
}

struct env *sim_env(struct sim *sim)
{
    return &sim->host.env;
}

paramo_err sim_host_create(struct sim *sim, uint32_t number, struct sim_host **host)
{
    struct sim_host *made = malloc(sizeof *made);
    if (!made)
        return err_memory(sizeof *made);
    *made = (struct sim_host){.env.ops = &sim_ops, .sim = sim, .next = sim->hosts, .number = number};
    sim->hosts = made;
    *host = made;
    return PARAMO_OK;
}

struct env *sim_host_env(struct sim_host *host)
{
    return &host->env;
}

void sim_host_pause(struct sim_host *host, uint64_t until)
{
    bool sooner = until < host->paused_until;
    thaw(host);
    if (host->frozen_at && sooner) { /* it continues now, and freezes again */
        host->paused_until = 0;
        thaw(host);
    }
    host->paused_until = until;
    for (struct lane *lane = host->lanes; sooner && lane; lane = lane->sim.next) { /* what was postponed */
        uint64_t timer = atomic_load(&lane->next_timer);
        if (lane->sim.run.slot)
            sim_must_schedule(host->sim, &lane->sim.run, until);
        if (lane->sim.timer.slot)
            sim_must_schedule(host->sim, &lane->sim.timer, host_when(host, timer));
    }
}

uint64_t sim_host_paused_until(const struct sim_host *host)
{
    return host->paused_until;
}

static void gap_add(struct clock_gaps *gaps, uint64_t at, uint64_t ns)
{
    unsigned i = gaps->count++ % CLOCK_GAPS;
    gaps->gap[i].at = at;
    gaps->gap[i].ns = ns;
}

static uint64_t gaps_since(const struct clock_gaps *gaps, uint64_t clock)
{
    uint64_t ns = 0;
    for (unsigned i = 0; i < CLOCK_GAPS && i < gaps->count; i++)
        ns += clock <= gaps->gap[i].at ? gaps->gap[i].ns : 0;
    return ns;
}

void sim_host_jump(struct sim_host *host, uint64_t ns)
{
    gap_add(&host->jumps, host_clock(host), ns);
    host->ahead += (int64_t)ns;
    for (struct lane *lane = host->lanes; lane; lane = lane->sim.next) {
        struct sim_event *timer = &lane->sim.timer;
        if (timer->slot)
            sim_must_schedule(host->sim, timer, timer->at > ns ? timer->at - ns : 0);
    }
}

void sim_host_drift(struct sim_host *host, int32_t ppm)
{
    assert(ppm > -1000000); /* at that rate it would stand still; sim_host_freeze() does that */
    thaw(host);
    drift_apply(host, host->frozen_at ? host->frozen_at : host->sim->now);
    host->ppm = ppm;
    for (struct lane *lane = host->lanes; lane; lane = lane->sim.next) {
        uint64_t timer = atomic_load(&lane->next_timer);
        if (lane->sim.timer.slot)
            sim_must_schedule(host->sim, &lane->sim.timer, host_when(host, timer));
    }
}

void sim_host_freeze(struct sim_host *host, uint64_t until)
{
    if (until <= host->paused_until)
        return;
    thaw(host);
    if (!host->frozen_at) {
        gap_add(&host->stood, host_clock(host), 0);
        drift_apply(host, host->sim->now);
        host->frozen_at = host->sim->now;
    }
    host->paused_until = until;
}

uint64_t sim_host_stood(struct sim_host *host, uint64_t clock)
{
    thaw(host);
    uint64_t ns = host->frozen_at ? host->sim->now - host->frozen_at : 0;
    return ns + gaps_since(&host->stood, clock);
}

uint64_t sim_host_jumped(const struct sim_host *host, uint64_t clock)
{
    return gaps_since(&host->jumps, clock);
}

void sim_host_slow_blocking_jobs(struct sim_host *host, uint64_t ns, uint64_t until)
{
    host->blocking_jobs_ns = ns;
    host->blocking_jobs_slow_until = until;
}

uint64_t sim_now(const struct sim *sim)
{
    return sim->now;
}
