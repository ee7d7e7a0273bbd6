#include "cluster/member/observer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/sm.h"
#include "cluster/member/admin_query.h"

enum {
    EVERY_MS = 1000, /* between two queries */
    SOON_MS = 50,    /* the same, while something waits for the answer */
    AGAIN_MS = 250,  /* after a query that failed */
    QUERY_MS = 5000  /* the deadline of one */
};

enum observer_state { OBSERVER_SEEKING, OBSERVER_JOINED, OBSERVER_ENDED };

struct observer {
    struct observer_config config;
    enum observer_state state;
    struct admin_query *query; /* NULL: none is in flight */
    struct lane_timer timer;   /* the next one */
    struct view *view;         /* NULL while it is SEEKING */
    uint64_t needed;           /* the number of a view that is needed */
    uint64_t began;            /* lane_now's clock: the last query */
    uint64_t limit;            /* the same: it gives up after a failure from here on */
    uint64_t queries;          /* begun */
    uint64_t wanted;           /* something waits for the answer to this query or a later one */
    _Atomic uint64_t answered; /* the last query that was answered */
};

static const struct sm machine = {
    "observer",
    {[OBSERVER_SEEKING] = {"seeking", SM_TO(OBSERVER_JOINED) | SM_TO(OBSERVER_ENDED)},
     [OBSERVER_JOINED] = {"joined", SM_TO(OBSERVER_ENDED)},
     [OBSERVER_ENDED] = {"ended", 0}}};

static void move(struct observer *o, enum observer_state to)
{
    sm_check(&machine, o->state, to);
    o->state = to;
}

static void observer_check(const struct observer *o)
{
    assert(lane_held(o->config.lane) && atomic_load(&o->answered) <= o->queries);
    assert(o->view ? o->state != OBSERVER_SEEKING : o->state != OBSERVER_JOINED);
    assert(o->state != OBSERVER_ENDED || (!o->query && !o->timer.slot));
}

/* With this thread's message. It may be destroyed in the callback. */
static void end(struct observer *o, paramo_err status)
{
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    bool joined = o->state == OBSERVER_JOINED;
    assert(status && o->state != OBSERVER_ENDED && !o->query);
    lane_timer_cancel(o->config.lane, &o->timer);
    move(o, OBSERVER_ENDED);
    observer_check(o);
    (joined ? o->config.on_ended : o->config.on_joined)(o->config.arg, status, text);
}

static paramo_err schedule(struct observer *o)
{
    bool awaited = (o->view && o->needed > o->view->number) || o->wanted > atomic_load(&o->answered);
    bool failed = atomic_load(&o->answered) < o->queries;
    uint64_t at = o->began + (failed ? AGAIN_MS : awaited ? SOON_MS : EVERY_MS) * ENV_MS;
    assert(o->state != OBSERVER_ENDED);
    observer_check(o);
    return o->query ? PARAMO_OK : lane_timer_arm(o->config.lane, &o->timer, at);
}

static void schedule_or_end(struct observer *o)
{
    paramo_err err = schedule(o);
    if (err)
        end(o, err);
}

/* False: it has ended. */
static bool take(struct observer *o, struct view *view)
{
    bool first = o->state == OBSERVER_SEEKING;
    observer_check(o);
    assert(!o->query && !o->timer.slot);
    if (!first && view->job != o->view->job) {
        end(o, err_set(PARAMO_E_SHUTDOWN, "the job has ended; another one runs at %s", o->config.scheduler));
        return false;
    }
    o->limit = lane_now(o->config.lane) + o->config.patience_ms * ENV_MS;
    if (!first && view->number <= o->view->number)
        return true;
    view_unref(o->view);
    o->view = view_ref(view);
    if (first)
        move(o, OBSERVER_JOINED);
    observer_check(o);
    if (first)
        o->config.on_joined(o->config.arg, PARAMO_OK, NULL);
    o->config.on_view(o->config.arg, view);
    return true;
}

/* A scheduler that has not started, whose job is not complete, or that is away for some time may answer later. Any
 * other refusal is final for a node that has not joined. */
static bool may_pass(const struct observer *o, paramo_err status)
{
    static const paramo_err passing[] = {PARAMO_E_CONNECT, PARAMO_E_CONNECTION_REFUSED, PARAMO_E_AGAIN,
                                         PARAMO_E_DISCONNECTED, PARAMO_E_TIMEOUT};
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (status == passing[i])
            return true;
    return o->state == OBSERVER_JOINED;
}

static void query_done(void *arg, paramo_err status, struct admin_query_result *result)
{
    struct observer *o = arg;
    assert(o->query && o->state != OBSERVER_ENDED);
    o->query = NULL;
    observer_check(o);
    if (status && (!may_pass(o, status) || lane_now(o->config.lane) >= o->limit)) {
        end(o, status);
        return;
    }
    if (!status) {
        atomic_store(&o->answered, o->queries);
        if (!take(o, result->view))
            return;
        lane_notify(o->config.lane);
    }
    schedule_or_end(o);
}

static paramo_err query_begin(struct observer *o)
{
    const struct observer_config *c = &o->config;
    uint64_t now = lane_now(c->lane);
    struct admin_query_config config = {.van = c->van,
                                        .lane = c->lane,
                                        .scheduler = c->scheduler,
                                        .token = c->token,
                                        .incarnation = c->incarnation,
                                        .deadline = now + QUERY_MS * ENV_MS,
                                        .done = query_done,
                                        .arg = o};
    assert(!o->query && o->state != OBSERVER_ENDED);
    assert(!o->timer.slot);
    o->began = now;
    o->queries++;
    return admin_query_start(&config, &o->query);
}

static void timer_fire(struct lane_timer *timer)
{
    struct observer *o = container_of(timer, struct observer, timer);
    observer_check(o);
    paramo_err err = query_begin(o);
    if (!err)
        return;
    if (!may_pass(o, err) || lane_now(o->config.lane) >= o->limit)
        end(o, err);
    else
        schedule_or_end(o);
}

paramo_err observer_create(const struct observer_config *config, struct observer **observer)
{
    struct observer *o = calloc(1, sizeof *o);
    if (!o)
        return err_memory(sizeof *o);
    assert(config->incarnation && lane_held(config->lane));
    o->config = *config;
    o->timer.fire = timer_fire;
    o->limit = lane_now(config->lane) + config->connect_timeout_ms * ENV_MS;
    paramo_err err = query_begin(o);
    if (err) {
        free(o);
        return err;
    }
    observer_check(o);
    *observer = o;
    return PARAMO_OK;
}

void observer_destroy(struct observer *o)
{
    if (!o)
        return;
    observer_check(o);
    lane_timer_cancel(o->config.lane, &o->timer);
    if (o->query)
        admin_query_cancel(o->query);
    view_unref(o->view);
    free(o);
}

struct view *observer_view(const struct observer *o)
{
    return o->view;
}

void observer_need(struct observer *o, uint64_t number)
{
    observer_check(o);
    if (number <= o->needed)
        return;
    o->needed = number;
    if (o->state != OBSERVER_ENDED)
        schedule_or_end(o);
}

uint64_t observer_ask(struct observer *o)
{
    observer_check(o);
    uint64_t query = o->queries + 1; /* the answer of one that is in flight may be older */
    if (o->wanted < query)
        o->wanted = query;
    if (o->state != OBSERVER_ENDED)
        schedule_or_end(o);
    return query;
}

uint64_t observer_answered(const struct observer *o)
{
    return atomic_load(&o->answered);
}
