#include "cluster/scheduler/sched_clock.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "wire/clock_calls.h"

/* One worker that counts. */
struct clock {
    struct sched_node *node;
    uint32_t who;
    uint64_t session, clock;
};

static void changed(struct scheduler *s, uint64_t key)
{
    sched_save_record_changed(s, RECORD_CLOCK, key);
}

static struct clock *clock_next(const struct scheduler *s, size_t *cursor)
{
    uint64_t key;
    void *value;
    return map_next(&s->clocks->by_session, cursor, &key, &value) ? value : NULL;
}

static struct clock *clock_find(const struct sched_node *node, uint64_t session)
{
    struct clock *clock = map_get(&node->sched->clocks->by_session, session);
    return clock && clock->node == node ? clock : NULL;
}

/* ---- the minimum --------------------------------------------------------------------------------------- */

static void answer_minimum(struct sched_call *call)
{
    const struct sched_clocks *c = call->node->sched->clocks;
    struct clock_result result = {.minimum = c->minimum, .node = c->raised_node, .who = c->raised_who};
    struct writer w = sched_call_result(call);
    clock_result_encode(&result, &w);
    sched_call_answer(call, &w);
}

/* No worker that counts is behind: there may be none at all. */
static bool all_reached(const struct scheduler *s, uint64_t clock)
{
    return clock <= s->clocks->minimum || !s->clocks->by_session.count;
}

static void wake(struct scheduler *s)
{
    for (struct sched_call *call = s->clocks->deferred.first, *next; call; call = next) {
        next = call->next;
        if (all_reached(s, call->u.clock.clock))
            answer_minimum(call);
    }
}

/* One of those at the minimum is there no more: node and who. The count makes this a look at all clocks only when
 * it was the last. */
static void minimum_left(struct scheduler *s, uint32_t node, uint32_t who)
{
    struct sched_clocks *c = s->clocks;
    assert(c->at_minimum > 0);
    if (--c->at_minimum > 0)
        return;
    c->raised_node = node;
    c->raised_who = who;
    uint64_t least = UINT64_MAX;
    size_t cursor = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        assert(clock->clock >= c->minimum);
        c->at_minimum = clock->clock < least ? 1 : c->at_minimum + (clock->clock == least);
        least = clock->clock < least ? clock->clock : least;
    }
    if (c->by_session.count && least > c->minimum) {
        c->minimum = least;
        changed(s, 0);
    }
    assert(!c->by_session.count || c->at_minimum > 0);
    wake(s);
}

/* ---- who counts ---------------------------------------------------------------------------------------- */

static paramo_err clock_add(struct sched_node *node, uint32_t who, uint64_t session, uint64_t at)
{
    struct sched_clocks *c = node->sched->clocks;
    if (c->by_session.count >= SCHED_CLOCKS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d workers with a clock is reached", SCHED_CLOCKS_MAX);
    struct clock *clock = calloc(1, sizeof *clock);
    if (!clock)
        return err_memory(sizeof *clock);
    *clock = (struct clock){.node = node, .who = who, .session = session, .clock = at};
    paramo_err err = map_put(&c->by_session, session, clock);
    if (err)
        free(clock);
    return err;
}

static void clock_remove(struct scheduler *s, struct clock *clock)
{
    uint32_t node = clock->node->info.id, who = clock->who;
    assert(map_get(&s->clocks->by_session, clock->session) == clock && clock->clock >= s->clocks->minimum);
    bool last = clock->clock == s->clocks->minimum;
    (void)map_remove(&s->clocks->by_session, clock->session);
    changed(s, clock->session);
    free(clock);
    if (last)
        minimum_left(s, node, who);
}

/* Takes out the node's clocks, or that of one of its customers. Each removal changes the map: begins again. */
static void clocks_remove(struct sched_node *node, const uint32_t *who)
{
    size_t cursor = 0;
    for (struct clock *clock; (clock = clock_next(node->sched, &cursor));)
        if (clock->node == node && (!who || clock->who == *who)) {
            clock_remove(node->sched, clock);
            cursor = 0;
        }
}

void sched_clock_node_gone(struct sched_node *node)
{
    clocks_remove(node, NULL);
}

const char *sched_clock_fault(const struct scheduler *s)
{
    const struct sched_clocks *c = s->clocks;
    uint32_t at_minimum = 0;
    size_t cursor = 0;
    if (s->state != SCHED_RUNNING)
        return NULL;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        if (!sched_roster_is_here(clock->node))
            return "the clock of a node counts that is dead or has left";
        if (clock->clock < c->minimum)
            return "a clock is below the minimum";
        at_minimum += clock->clock == c->minimum;
    }
    if (at_minimum != c->at_minimum || (c->by_session.count && !at_minimum))
        return "the minimum is not that of the clocks";
    for (const struct sched_call *call = c->deferred.first; call; call = call->next)
        if (all_reached(s, call->u.clock.clock))
            return "a wait for a clock goes on that all have reached";
    return NULL;
}

static struct status_clocks *clocks_of(struct status *m, const struct sched_node *node)
{
    assert(node->status.place < m->nodes_count && m->nodes[node->status.place].id == node->info.id);
    return &m->nodes[node->status.place].clocks;
}

void sched_clock_status(const struct scheduler *s, struct status *m)
{
    uint64_t now = lane_now(s->config.lane);
    size_t cursor = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        struct status_clocks *c = clocks_of(m, clock->node);
        c->lowest = c->workers && c->lowest < clock->clock ? c->lowest : clock->clock;
        c->highest = c->highest > clock->clock ? c->highest : clock->clock;
        c->workers++;
    }
    for (const struct sched_call *call = s->clocks->deferred.first; call; call = call->next) {
        struct status_clocks *c = clocks_of(m, call->node);
        uint64_t ms = (now - call->u.clock.since) / ENV_MS;
        assert(now >= call->u.clock.since);
        if (!c->workers)
            continue; /* its clock has left; its wait ends with its deadline */
        c->waits++;
        c->waited_ms =
            ms > c->waited_ms ? (uint32_t)(ms < STATUS_NEVER ? ms : STATUS_NEVER - 1) : c->waited_ms;
    }
}

/* ---- calls --------------------------------------------------------------------------------------------- */

/* A worker that counts already is taken for another that has its place: it begins again. */
void sched_clock_join(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct sched_clocks *c = s->clocks;
    struct clock_join m;
    uint64_t session = clock_session(call->node->info.id, call->number);
    paramo_err err = clock_join_decode(body, &m);
    if (!err) {
        clocks_remove(call->node, &m.who);
        err = clock_add(call->node, m.who, session, c->minimum);
    }
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    c->at_minimum++;
    assert(c->at_minimum <= c->by_session.count);
    changed(s, session);
    changed(s, 0);
    struct clock_joined result = {.session = session, .minimum = c->minimum};
    struct writer w = sched_call_result(call);
    clock_joined_encode(&result, &w);
    sched_call_answer(call, &w);
}

static struct clock *clock_of(struct sched_call *call, uint64_t session, paramo_err err)
{
    struct clock *clock = err ? NULL : clock_find(call->node, session);
    if (!err && !clock)
        err = err_set(PARAMO_E_NOT_FOUND,
                      "this worker's clock does not count: it has left, or has joined again");
    if (err)
        sched_call_fail(call, err);
    return clock;
}

/* The calls of a worker may overtake each other, and come twice: the highest number counts. */
void sched_clock_tell(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct clock_tell m;
    paramo_err err = clock_tell_decode(body, &m);
    struct clock *clock = clock_of(call, err ? 0 : m.session, err);
    if (!clock)
        return;
    if (m.clock > clock->clock) {
        bool last = clock->clock == s->clocks->minimum;
        clock->clock = m.clock;
        changed(s, clock->session);
        if (last)
            minimum_left(s, call->node->info.id, clock->who);
    }
    answer_minimum(call);
}

static void wait_timed_out(struct sched_call *call)
{
    const struct scheduler *s = call->node->sched;
    char names[240] = "", label[SCHED_LABEL], customer[24] = "";
    size_t len = 0, behind = 0, cursor = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        if (clock->clock >= call->u.clock.clock)
            continue;
        behind++;
        if (clock->who)
            (void)snprintf(customer, sizeof customer, ", customer %" PRIu32 ",", clock->who);
        int wrote =
            snprintf(names + len, sizeof names - len, "%s%s%s is at clock %" PRIu64, len ? "; " : "",
                     sched_roster_label(clock->node, label), clock->who ? customer : "", clock->clock);
        if (wrote > 0 && (size_t)wrote < sizeof names - len)
            len += (size_t)wrote;
        else
            names[len] = '\0';
    }
    uint64_t waited = (lane_now(s->config.lane) - call->u.clock.since) / ENV_MS;
    sched_call_fail(call, err_set(PARAMO_E_TIMEOUT,
                                  "%zu of %zu workers have not reached clock %" PRIu64 ": %s; waited %" PRIu64
                                  " ms",
                                  behind, s->clocks->by_session.count, call->u.clock.clock, names, waited));
}

void sched_clock_wait(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct clock_wait m;
    paramo_err err = clock_wait_decode(body, &m);
    if (!clock_of(call, err ? 0 : m.session, err))
        return;
    if (all_reached(s, m.clock)) {
        answer_minimum(call);
        return;
    }
    call->u.clock.clock = m.clock;
    call->u.clock.since = lane_now(s->config.lane);
    (void)sched_call_defer(call, &s->clocks->deferred, m.timeout_ms, wait_timed_out);
}

/* A worker that does not count has left already, perhaps by an earlier copy of this call. */
void sched_clock_leave(struct sched_call *call, struct reader *body)
{
    struct clock_leave m;
    paramo_err err = clock_leave_decode(body, &m);
    struct clock *clock = err ? NULL : clock_find(call->node, m.session);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    if (clock)
        clock_remove(call->node->sched, clock);
    sched_call_answer(call, NULL);
}

/* ---- durable records ----------------------------------------------------------------------------------- */

void sched_clock_record(const struct scheduler *s, uint64_t key, struct writer *w)
{
    const struct clock *clock = key ? map_get(&s->clocks->by_session, key) : NULL;
    if (!key) {
        write_u64(w, s->clocks->minimum);
    } else if (clock) {
        write_u64(w, clock->node->info.incarnation);
        write_u32(w, clock->who);
        write_u64(w, clock->clock);
    }
}

void sched_clock_records(const struct scheduler *s, struct writer *w)
{
    size_t cursor = 0, mark;
    if (!s->clocks->minimum && !s->clocks->by_session.count)
        return;
    sched_save_record_begin(w, RECORD_CLOCK, 0, &mark);
    sched_clock_record(s, 0, w);
    store_record_end(w, mark);
    for (const struct clock *clock; (clock = clock_next(s, &cursor));) {
        sched_save_record_begin(w, RECORD_CLOCK, clock->session, &mark);
        sched_clock_record(s, clock->session, w);
        store_record_end(w, mark);
    }
}

paramo_err sched_clock_restore(struct scheduler *s, uint64_t key, struct reader *record)
{
    uint64_t incarnation = key ? read_u64(record) : 0;
    uint32_t who = key ? read_u32(record) : 0;
    uint64_t at = read_u64(record);
    if (!reader_done(record) || at >= CLOCK_COUNT_MAX)
        return err_set(PARAMO_E_CORRUPT, "the durable record of a clock is malformed");
    if (!key) {
        s->clocks->minimum = at;
        return PARAMO_OK;
    }
    struct sched_node *node = sched_roster_find_incarnation(s, incarnation);
    if (!node || !sched_roster_is_here(node))
        return PARAMO_OK; /* it has died or left */
    return clock_add(node, who, key, at);
}

/* A clock that died with its node may have held the minimum. */
void sched_clock_restored(struct scheduler *s)
{
    struct sched_clocks *c = s->clocks;
    uint64_t least = UINT64_MAX;
    size_t cursor = 0;
    c->at_minimum = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));)
        least = clock->clock < least ? clock->clock : least;
    if (c->by_session.count && least != c->minimum)
        c->minimum = least;
    cursor = 0;
    for (const struct clock *clock; (clock = clock_next(s, &cursor));)
        c->at_minimum += clock->clock == c->minimum;
}

void sched_clock_fini(struct scheduler *s)
{
    size_t cursor = 0;
    for (struct clock *clock; (clock = clock_next(s, &cursor));)
        free(clock);
    map_fini(&s->clocks->by_session);
}
