#include "cluster/scheduler/sched_pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert_slow.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_units.h"
#include "wire/pool_calls.h"

enum { LOOKS_OF_ANSWER = 16 }; /* waiting callers that are looked at in the time of an answer */

static void answer_unit(struct sched_call *call, const struct pool_next_result *result)
{
    assert(!call->answered);
    struct writer w = sched_call_result(call);
    pool_next_result_encode(result, &w);
    sched_call_answer(call, &w);
}

/* False: the turn is over, and callers are left. */
static bool wake_turn(struct sched_pool *pool, size_t most)
{
    size_t cost = 0;
    for (struct sched_call *call; (call = pool->woken); cost++) {
        struct pool_next_result result;
        if (cost >= most * LOOKS_OF_ANSWER)
            return false;
        assert(call->queue == &pool->deferred && call->object == pool);
        pool->woken = call->next;
        paramo_err err = unit_deal(pool, call->node, call->u.pool.customer, call->u.pool.round, &result);
        if (!err && result.state == POOL_NONE_NOW)
            continue;
        if (err)
            sched_call_fail(call, err);
        else
            answer_unit(call, &result);
        cost += LOOKS_OF_ANSWER - 1;
    }
    return true;
}

static void wake_go_on(struct sched_pool *pool)
{
    const struct sched_calls *calls = pool->sched->calls;
    struct lane *lane = pool->sched->config.lane;
    pool_check(pool);
    if (!wake_turn(pool, calls->most) && lane_timer_arm(lane, &pool->turn, lane_now(lane) + calls->pause))
        (void)wake_turn(pool, SIZE_MAX / LOOKS_OF_ANSWER); /* no memory for the timer: all in this step */
}

static void wake_due(struct lane_timer *timer)
{
    assert(!timer->slot);
    wake_go_on(container_of(timer, struct sched_pool, turn));
}

/* After a change: answers the waiting callers that can be served, in turns. Those that wait for a round have all been
 * looked at since it began, so without a free unit only a new round serves any. */
static void wake(struct sched_pool *pool)
{
    assert_slow(pool_fits(pool));
    pool_check(pool);
    assert(pool->leases.count == pool->count - pool->free - pool->done - pool->voids);
    if (!pool->free && pool->stream == pool->streams && pool->round == pool->woken_round)
        return;
    pool->woken = pool->deferred.first;
    pool->woken_round = pool->round;
    if (!pool->turn.slot)
        wake_go_on(pool);
}

/* Begins the next round if the last unit is done: in turns if there are many, and nothing is dealt between these. */
static void round_go_on(struct sched_pool *pool)
{
    struct lane *lane = pool->sched->config.lane;
    assert(!pool->round_turn.slot);
    pool_check(pool);
    if (!pool_finish_round(pool, pool->sched->pools->most)) {
        if (!lane_timer_arm(lane, &pool->round_turn, lane_now(lane) + pool->sched->calls->pause))
            return;
        (void)pool_finish_round(pool, UINT32_MAX); /* no memory for the timer */
    }
    wake(pool);
}

static void round_due(struct lane_timer *timer)
{
    round_go_on(container_of(timer, struct sched_pool, round_turn));
}

/* ---- calls --------------------------------------------------------------------------------------------- */

static struct sched_pool *pool_named(const struct scheduler *s, const char *name)
{
    struct sched_pool *pool = s->pools->first;
    while (pool && strcmp(pool->name, name) != 0)
        pool = pool->next;
    if (!pool)
        (void)err_set(PARAMO_E_NOT_FOUND, "there is no pool %s; open it first", name);
    return pool;
}

paramo_err sched_pool_add(struct scheduler *s, const struct pool_open *m, struct sched_pool **out)
{
    if (s->pools->count == SCHED_POOLS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d pools is reached", SCHED_POOLS_MAX);
    struct sched_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return err_memory(sizeof *pool);
    memcpy(pool->name, m->name, sizeof m->name);
    pool->sched = s;
    pool->turn.fire = wake_due;
    pool->round_turn.fire = round_due;
    pool->place = s->pools->count++;
    pool->streams = m->streams;
    pool->rounds = m->rounds;
    pool->next = s->pools->first;
    s->pools->first = pool;
    pool_changed(pool);
    pool_check(pool);
    *out = pool;
    return PARAMO_OK;
}

void sched_pool_open(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct pool_open m;
    paramo_err err = pool_open_decode(body, &m);
    struct sched_pool *pool = err ? NULL : pool_named(s, m.name);
    if (pool && (pool->streams != m.streams || pool->rounds != m.rounds))
        err = err_set(PARAMO_E_INVALID,
                      "pool %s has %" PRIu32 " streams and %" PRIu32 " rounds, not %" PRIu32 " and %" PRIu32,
                      m.name, pool->streams, pool->rounds, m.streams, m.rounds);
    else if (!err && !pool)
        err = sched_pool_add(s, &m, &pool);
    if (err)
        sched_call_fail(call, err);
    else
        sched_call_answer(call, NULL);
}

static void next_timed_out(struct sched_call *call)
{
    const struct sched_pool *pool = call->object;
    assert(call->queue == &pool->deferred && !call->answered);
    answer_unit(call, &(struct pool_next_result){.state = POOL_NONE_NOW});
}

static void next_withdrawn(struct sched_call *call)
{
    struct sched_pool *pool = call->object;
    assert(!call->queue); /* it has left; next still names its place there */
    assert(!pool->woken || pool->woken == call || pool->woken->queue == &pool->deferred);
    if (pool->woken == call)
        pool->woken = call->next;
}

void sched_pool_next(struct sched_call *call, struct reader *body)
{
    struct pool_next m;
    struct pool_next_result result;
    paramo_err err = pool_next_decode(body, &m);
    struct sched_pool *pool = err ? NULL : pool_named(call->node->sched, m.name);
    if (!err && !pool)
        err = PARAMO_E_NOT_FOUND;
    if (!err && m.round >= pool->rounds)
        err = err_set(PARAMO_E_INVALID, "there is no round %" PRIu32 ": pool %s has %" PRIu32, m.round,
                      m.name, pool->rounds);
    if (!err)
        err = unit_deal(pool, call->node, m.customer, m.round, &result);
    if (err)
        sched_call_fail(call, err);
    else if (result.state != POOL_NONE_NOW || m.timeout_ms == 0)
        answer_unit(call, &result);
    else {
        assert(pool->sched == call->node->sched && m.round < pool->rounds);
        assert(!call->queue && !call->withdrawn);
        call->u.pool.customer = m.customer;
        call->u.pool.round = m.round;
        call->object = pool;
        call->withdrawn = next_withdrawn;
        (void)sched_call_defer(call, &pool->deferred, m.timeout_ms, next_timed_out);
    }
}

/* The lease that a report names. NULL: it has passed to another worker, or never existed. */
static paramo_err report_lease(const struct sched_call *call, struct reader *body, struct sched_pool **pool,
                               struct lease **lease)
{
    struct pool_report m;
    paramo_err err = pool_report_decode(body, &m);
    if (err)
        return err;
    *pool = pool_named(call->node->sched, m.name);
    if (!*pool)
        return PARAMO_E_NOT_FOUND;
    *lease = map_get(&(*pool)->leases, m.unit.token);
    if (*lease && ((*lease)->node != call->node || (*pool)->units[(*lease)->unit].index != m.unit.index ||
                   (*pool)->units[(*lease)->unit].stream != m.unit.stream))
        return err_set(PARAMO_E_INVALID, "the token does not belong to this work unit of pool %s", m.name);
    return PARAMO_OK;
}

void sched_pool_done(struct sched_call *call, struct reader *body)
{
    struct sched_pool *pool;
    struct lease *lease;
    paramo_err err = report_lease(call, body, &pool, &lease);
    if (!err && !lease)
        err = err_set(PARAMO_E_NOT_FOUND, "the work unit has passed to another worker");
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    struct unit *unit = &pool->units[lease->unit];
    assert(pool->round < pool->rounds && lease->unit < pool->count);
    unit_move(pool, unit, UNIT_DONE);
    unit->owner = lease->owner;
    pool->done++;
    assert(pool->free + pool->done + pool->voids <= pool->count);
    lease_remove(pool, lease);
    sched_call_answer(call, NULL);
    round_go_on(pool);
}

void sched_pool_end(struct sched_call *call, struct reader *body)
{
    struct sched_pool *pool;
    struct lease *lease;
    paramo_err err = report_lease(call, body, &pool, &lease);
    if (!err && lease && pool->round > 0)
        err =
            err_set(PARAMO_E_INVALID, "a stream of pool %s has fewer work units than in round 0", pool->name);
    if (err) {
        sched_call_fail(call, err);
        return;
    }
    sched_call_answer(call, NULL);
    if (!lease)
        return; /* another worker has found an end before this work unit */
    pool_check(pool);
    assert(lease->unit < pool->count);
    pool_stream_ends(pool, lease->unit);
    round_go_on(pool);
}

size_t sched_pool_held(const struct sched_node *node)
{
    size_t count = 0;
    for (const struct sched_pool *pool = node->sched->pools->first; pool; pool = pool->next)
        for (const struct lease *lease = pool->leased; lease; lease = lease->next)
            count += lease->node == node;
    return count;
}

void sched_pool_node_gone(struct sched_node *node)
{
    for (struct sched_pool *pool = node->sched->pools->first; pool; pool = pool->next) {
        for (struct lease *lease = pool->leased, *next; lease; lease = next) {
            next = lease->next;
            if (lease->node == node) {
                unit_release(pool, lease->unit);
                lease_remove(pool, lease);
            }
        }
        wake(pool);
    }
    assert_slow(sched_pool_held(node) == 0);
}

/* A load that begins the job replaces the pools. A worker should wait for that, but may have asked before. */
static void callers_end(struct sched_pool *pool)
{
    for (struct sched_call *call; (call = pool->deferred.first);)
        sched_call_fail(call,
                        err_set(PARAMO_E_CANCELLED, "pool %s was replaced by a checkpoint's", pool->name));
    assert(!pool->woken);
}

void sched_pool_init(struct scheduler *s)
{
    s->pools->most = POOL_CHAIN_TURN;
}

void sched_pool_fini(struct scheduler *s)
{
    for (struct sched_pool *pool = s->pools->first, *next; pool; pool = next) {
        next = pool->next;
        callers_end(pool);
        while (pool->leased)
            lease_remove(pool, pool->leased);
        assert(!pool->leases.count && !pool->lease_of.count);
        lane_timer_cancel(s->config.lane, &pool->turn);
        lane_timer_cancel(s->config.lane, &pool->round_turn);
        map_fini(&pool->leases);
        map_fini(&pool->lease_of);
        map_fini(&pool->owner_of);
        free(pool->owners);
        free(pool->units);
        free(pool);
    }
    s->pools->first = NULL;
    s->pools->count = 0;
}
