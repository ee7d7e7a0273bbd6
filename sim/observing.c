#include "sim/observing.h"

#include <inttypes.h>

#include "base/hash.h"
#include "cluster/member/observer.h"
#include "cluster/scheduler/sched.h"
#include "node/view_feed.h"
#include "sim/judge.h"
#include "sim/memory.h"
#include "sim/world.h"

enum {
    AGAIN_MS = 50, /* a process that starts again */
    /* Once the faults are over: a query's deadline, the pause after it, and the next query with its connection. */
    BEHIND_MS = 12000
};

/* How long the scheduler may be silent, as for a member. */
static uint64_t patience(const struct machine *m)
{
    return m->made->config.heartbeat_timeout_ms * ENV_MS;
}

static void due_in(struct machine *m, uint64_t ns)
{
    memory_hold();
    sim_must(sim_schedule(m->world->sim, &m->observing.due, sim_now(m->world->sim) + ns));
    memory_resume();
}

static void on_joined(void *arg, paramo_err status, const char *text)
{
    struct machine *m = arg;
    (void)text;
    m->observing.state = status ? OBSERVING_ENDED : OBSERVING_JOINED;
    m->observing.status = status;
    due_in(m, status ? AGAIN_MS * ENV_MS : 0);
}

static void on_view(void *arg, struct view *view)
{
    struct machine *m = arg;
    struct observing *o = &m->observing;
    if (view->number <= o->seen)
        judge_broken(m->world, "the observer of %s went from view %" PRIx64 " to %" PRIx64, m->name, o->seen,
                     view->number);
    o->seen = view->number;
    if (o->feed)
        view_feed_offer(o->feed, view);
}

static void on_ended(void *arg, paramo_err status, const char *text)
{
    struct machine *m = arg;
    uint64_t silent = lane_now(m->made->control) - m->observing.answered_at;
    bool memory = status == PARAMO_E_MEMORY && m->memory.failed;
    if (status != PARAMO_E_SHUTDOWN && !memory && silent < patience(m))
        judge_broken(m->world, "the observer of %s has ended %d ms after an answer: %s: %s", m->name,
                     (int)(silent / ENV_MS), err_name(status), text);
    m->observing.state = OBSERVING_ENDED;
    m->observing.status = status;
    due_in(m, AGAIN_MS * ENV_MS);
}

static void control_enter(struct machine *m)
{
    if (!lane_enter(m->made->control))
        abort();
}

static void observe(struct machine *m)
{
    struct observing *o = &m->observing;
    const paramo_config *c = &m->made->config;
    struct observer_config config = {.van = m->van,
                                     .lane = m->made->control,
                                     .scheduler = c->scheduler,
                                     .token = c->token,
                                     .incarnation = mix64(m->made->own->incarnation) | 1,
                                     .connect_timeout_ms = c->connect_timeout_ms,
                                     .patience_ms = c->heartbeat_timeout_ms,
                                     .arg = m,
                                     .on_joined = on_joined,
                                     .on_view = on_view,
                                     .on_ended = on_ended};
    control_enter(m);
    o->seen = o->answered = 0;
    o->state = OBSERVING_SEEKING;
    paramo_err err = observer_create(&config, &o->observer);
    lane_leave(m->made->control);
    if (err) /* there was no memory */
        on_joined(m, err, NULL);
}

static void due(struct sim_event *event)
{
    struct observing *o = container_of(event, struct observing, due);
    struct machine *m = container_of(o, struct machine, observing);
    uint64_t paused = sim_host_paused_until(m->host);
    if (paused > sim_now(m->world->sim)) {
        due_in(m, paused - sim_now(m->world->sim));
    } else if (!machine_joined(m)) {
        return; /* its process ends */
    } else if (o->state == OBSERVING_JOINED) {
        m->world->app->reader_opens(m);
    } else if (!m->world->app->reader_closes(m)) {
        due_in(m, AGAIN_MS * ENV_MS);
    } else {
        control_enter(m);
        observing_end(m);
        lane_leave(m->made->control);
        if (!m->world->scheduler_lost)
            observe(m);
    }
}

void observing_begin(struct machine *m)
{
    uint64_t now = sim_now(m->world->sim);
    m->observing = (struct observing){.due.fire = due, .clear_since = now, .behind_since = now};
    observe(m);
}

void observing_end(struct machine *m)
{
    sim_cancel(m->world->sim, &m->observing.due);
    observer_destroy(m->observing.observer);
    m->observing.observer = NULL;
    m->observing.state = OBSERVING_NONE;
}

struct view *observing_view(const struct machine *m)
{
    return m->observing.observer ? observer_view(m->observing.observer) : NULL;
}

void observing_need(struct machine *m, uint64_t number)
{
    if (m->observing.observer)
        observer_need(m->observing.observer, number);
}

bool observing_continues(const struct machine *m)
{
    return m->observing.state == OBSERVING_SEEKING || m->observing.due.slot;
}

/* ---- what must be true --------------------------------------------------------------------------------- */

/* A query must succeed: there are no faults, and the job has a scheduler that answers. */
static bool clear_way(const struct machine *m)
{
    const struct world *w = m->world;
    const struct scheduler *s = w->calm && !w->over && !w->scheduler_lost ? world_scheduler(w) : NULL;
    return s && s->state == SCHED_RUNNING && machine_joined(m) && !m->declared_dead;
}

void observing_check(struct machine *m)
{
    struct world *w = m->world;
    struct observing *o = &m->observing;
    uint64_t now = sim_now(w->sim);
    if (o->state == OBSERVING_NONE)
        return;
    if (o->observer && observer_answered(o->observer) != o->answered) {
        o->answered = observer_answered(o->observer);
        o->answered_at = lane_now(m->made->control);
    }
    if (!clear_way(m))
        o->clear_since = now;
    /* One that has ended begins again when the application has closed its reader. */
    if (o->seen >= w->newest_view || now == o->clear_since || o->state == OBSERVING_ENDED)
        o->behind_since = now;
    if (now - o->behind_since > BEHIND_MS * ENV_MS)
        judge_broken(w, "the observer of %s has view %" PRIx64 " for %d s, and the newest is %" PRIx64,
                     m->name, o->seen, BEHIND_MS / 1000, w->newest_view);
    if (o->state == OBSERVING_ENDED && !(o->status == PARAMO_E_MEMORY && m->memory.failed) &&
        now - o->clear_since > patience(m) + BEHIND_MS * ENV_MS)
        judge_broken(w, "the observer of %s has ended with %s, without a cause", m->name,
                     err_name(o->status));
}
