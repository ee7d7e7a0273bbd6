#include "cluster/scheduler/sched_pool.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/assert_slow.h"
#include "base/sm.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/pool_calls.h"

/*
 * The work units of a pool, in the order in which they were first dealt. Round 0 deals one stream after the
 * other (stream 0: units 0, 1, 2, ...) and turns to the next stream when a worker has found the end, so the
 * order is (stream, index). A unit beyond an end is VOID: it never existed. From round 1 on all units are
 * known. The units of each owner are chained, so that a worker gets its own first; a cursor then gives all
 * others in order.
 *
 *   FREE --dealt--> LEASED --done--> DONE     LEASED --holder gone--> FREE     any --beyond an end--> VOID
 */
enum unit_state { UNIT_FREE, UNIT_LEASED, UNIT_DONE, UNIT_VOID };
enum {
    NONE = -1,
    OWNERS_MAX = 1 << 16,
    LEASES_MAX = 4096, /* leases of one owner */
    RECORD_UNITS_MAX = 64,
    LOOKS_OF_ANSWER = 16, /* waiting callers that are looked at in the time of an answer */
    RECORD_POOL_SHIFT = 20
};

struct unit {
    uint32_t stream;
    uint32_t index;
    int32_t owner; /* index of the owner that did it last; NONE: not done yet */
    int32_t next;  /* the owner's next work unit of this round */
    uint8_t state;
};

/* One customer of one incarnation of a node. */
struct owner {
    uint64_t key; /* node id and who */
    uint64_t incarnation;
    int32_t own; /* the first of its work units in this round */
    uint32_t leases;
};

struct lease {
    uint64_t token;
    uint32_t unit;
    int32_t owner;
    struct sched_node *node;
    struct lease *next, *prev;
};

struct sched_pool {
    struct sched_pool *next;
    struct scheduler *sched;
    uint32_t place; /* its number among all pools, by the order of opening */
    char name[POOL_NAME_MAX];
    uint32_t streams, rounds;
    uint32_t round;         /* == rounds: all is done, and the work units are forgotten */
    uint32_t stream, index; /* round 0: dealt next; stream == streams: all ends are known */
    struct unit *units;
    uint32_t count, capacity;
    uint32_t voids, done, free; /* numbers of units */
    uint32_t cursor;            /* no work unit before it is FREE */
    struct owner *owners;
    uint32_t owners_count, owners_capacity;
    struct map owner_of;  /* node id and who -> index + 1 */
    struct map leases;    /* token -> lease */
    struct map lease_of;  /* unit -> the same leases */
    struct lease *leased; /* all of them */
    uint64_t tokens;
    struct sched_call_queue deferred;
    /* Waiting callers that may be served since the last change are answered in turns, from this one on; NULL: none. */
    struct sched_call *woken;
    uint32_t woken_round; /* the round when this began last */
    struct lane_timer turn;
};

/* ---- what is saved ------------------------------------------------------------------------------------- */

static void pool_check(const struct sched_pool *pool)
{
    assert(pool->count <= pool->capacity && pool->capacity <= 2 * POOL_UNITS_MAX);
    assert(pool->free + pool->done + pool->voids <= pool->count && pool->leases.count <= pool->count);
    assert(pool->owners_count <= pool->owners_capacity && !pool->leased == !pool->leases.count);
    assert(pool->round <= pool->rounds && pool->stream <= pool->streams);
    assert(!pool->deferred.first == !pool->deferred.last && (!pool->leased || !pool->leased->prev));
}

static void pool_changed(struct sched_pool *pool)
{
    sched_save_record_changed(pool->sched, RECORD_POOL, pool->place);
}

static void unit_changed(struct sched_pool *pool, uint32_t unit)
{
    sched_save_record_changed(pool->sched, RECORD_UNITS,
                              (uint64_t)pool->place << RECORD_POOL_SHIFT | unit / RECORD_UNITS_MAX);
}

static void units_changed(struct sched_pool *pool, uint32_t first)
{
    for (uint32_t unit = first - first % RECORD_UNITS_MAX; unit < pool->count; unit += RECORD_UNITS_MAX)
        unit_changed(pool, unit);
}

/* ---- leases -------------------------------------------------------------------------------------------- */

static void lease_remove(struct sched_pool *pool, struct lease *lease)
{
    pool_check(pool);
    assert(lease->prev ? lease->prev->next == lease : pool->leased == lease);
    assert(!lease->next || lease->next->prev == lease);
    (void)map_remove(&pool->leases, lease->token);
    (void)map_remove(&pool->lease_of, lease->unit);
    unit_changed(pool, lease->unit);
    *(lease->prev ? &lease->prev->next : &pool->leased) = lease->next;
    if (lease->next)
        lease->next->prev = lease->prev;
    assert(pool->owners[lease->owner].leases > 0);
    pool->owners[lease->owner].leases--;
    free(lease);
    pool_check(pool);
}

static paramo_err lease_put(struct sched_pool *pool, uint64_t token, uint32_t unit, int32_t owner,
                            struct sched_node *node)
{
    pool_check(pool);
    struct lease *lease = calloc(1, sizeof *lease);
    if (!lease)
        return err_memory(sizeof *lease);
    assert(unit < pool->count && owner >= 0 && (uint32_t)owner < pool->owners_count);
    *lease = (struct lease){.token = token, .unit = unit, .owner = owner, .node = node, .next = pool->leased};
    paramo_err err = map_put(&pool->leases, lease->token, lease);
    if (!err)
        err = map_put(&pool->lease_of, unit, lease);
    if (err) {
        (void)map_remove(&pool->leases, lease->token);
        free(lease);
        return err;
    }
    if (pool->leased)
        pool->leased->prev = lease;
    pool->leased = lease;
    pool->owners[owner].leases++;
    pool_check(pool);
    return PARAMO_OK;
}

static paramo_err lease_add(struct sched_pool *pool, uint32_t unit, int32_t owner, struct sched_node *node)
{
    pool_check(pool);
    assert(pool->units[unit].state == UNIT_FREE);
    pool_changed(pool);
    unit_changed(pool, unit);
    return lease_put(pool, ++pool->tokens, unit, owner, node);
}

/* The lease knows whether a unit is reported twice; so `done` may follow `done`. */
static const struct sm machine = {
    "work unit",
    {[UNIT_FREE] = {"free", SM_TO(UNIT_LEASED) | SM_TO(UNIT_VOID)},
     [UNIT_LEASED] = {"leased", SM_TO(UNIT_FREE) | SM_TO(UNIT_DONE) | SM_TO(UNIT_VOID)},
     [UNIT_DONE] = {"done", SM_TO(UNIT_FREE) | SM_TO(UNIT_DONE)},
     [UNIT_VOID] = {"void", 0}}};

static void unit_move(struct unit *unit, enum unit_state to)
{
    sm_check(&machine, unit->state, to);
    unit->state = (uint8_t)to;
}

static void unit_release(struct sched_pool *pool, uint32_t unit)
{
    assert(unit < pool->count && pool->free < pool->count);
    assert(pool->units[unit].state == UNIT_LEASED);
    unit_changed(pool, unit);
    unit_move(&pool->units[unit], UNIT_FREE);
    pool->free++;
    if (unit < pool->cursor)
        pool->cursor = unit;
}

/* ---- owners -------------------------------------------------------------------------------------------- */

static paramo_err owner_add(struct sched_pool *pool, uint64_t key, uint64_t incarnation)
{
    assert(pool->owner_of.count <= pool->owners_count);
    assert(pool->owners_count <= pool->owners_capacity);
    if (pool->owners_count == OWNERS_MAX)
        return err_set(PARAMO_E_FULL, "pool %s has had %d workers, which is the limit", pool->name,
                       OWNERS_MAX);
    if (pool->owners_count == pool->owners_capacity) {
        uint32_t capacity = pool->owners_capacity ? 2 * pool->owners_capacity : 8;
        struct owner *owners = realloc(pool->owners, capacity * sizeof *owners);
        if (!owners)
            return err_memory(capacity * sizeof *owners);
        pool->owners = owners;
        pool->owners_capacity = capacity;
    }
    paramo_err err = map_put(&pool->owner_of, key, (void *)(uintptr_t)(pool->owners_count + 1));
    if (err)
        return err;
    pool->owners[pool->owners_count++] = (struct owner){.key = key, .incarnation = incarnation, .own = NONE};
    sched_save_record_changed(pool->sched, RECORD_OWNERS, pool->place);
    return PARAMO_OK;
}

static paramo_err owner_find(struct sched_pool *pool, const struct sched_node *node, uint32_t who,
                             int32_t *out)
{
    uint64_t key = (uint64_t)node->info.id << 32 | who;
    uintptr_t found = (uintptr_t)map_get(&pool->owner_of, key);
    if (found && pool->owners[found - 1].incarnation == node->info.incarnation) {
        *out = (int32_t)found - 1;
        return PARAMO_OK;
    }
    paramo_err err = owner_add(pool, key, node->info.incarnation);
    if (!err)
        *out = (int32_t)pool->owners_count - 1;
    return err;
}

/* The numbers of units are those of the list, and each lease is of a unit that is there. */
static bool pool_fits(const struct sched_pool *pool)
{
    uint32_t states[UNIT_VOID + 1] = {0};
    for (uint32_t i = 0; i < pool->count; i++)
        states[pool->units[i].state]++;
    for (const struct lease *lease = pool->leased; lease; lease = lease->next)
        if (lease->unit >= pool->count || map_get(&pool->leases, lease->token) != lease ||
            map_get(&pool->lease_of, lease->unit) != lease)
            return false;
    return states[UNIT_FREE] == pool->free && states[UNIT_DONE] == pool->done &&
           states[UNIT_VOID] == pool->voids;
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

/* The FREE work units of each owner, in order. */
static void chain_owners(struct sched_pool *pool)
{
    for (uint32_t i = 0; i < pool->owners_count; i++)
        pool->owners[i].own = NONE;
    pool_check(pool);
    for (uint32_t i = pool->count; i-- > 0;) {
        struct unit *unit = &pool->units[i];
        assert(unit->owner == NONE || (uint32_t)unit->owner < pool->owners_count);
        unit->next = NONE;
        if (unit->state == UNIT_FREE && unit->owner != NONE) {
            unit->next = pool->owners[unit->owner].own;
            pool->owners[unit->owner].own = (int32_t)i;
        }
    }
}

static void begin_round(struct sched_pool *pool)
{
    assert(pool->round > 0 && pool->round < pool->rounds);
    assert(!pool->leased && pool->stream == pool->streams); /* all units are known, and done */
    for (uint32_t i = 0; i < pool->count; i++)
        if (pool->units[i].state != UNIT_VOID && pool->units[i].state != UNIT_FREE)
            unit_move(&pool->units[i], UNIT_FREE);
    chain_owners(pool);
    pool->free = pool->count - pool->voids;
    pool->done = 0;
    pool->cursor = 0;
    units_changed(pool, 0);
    assert_slow(pool_fits(pool));
}

/* Begins the next round, as long as the present one is finished. */
static void finish_round(struct sched_pool *pool)
{
    pool_check(pool);
    assert(pool->round <= pool->rounds && pool->stream <= pool->streams);
    while (pool->round < pool->rounds && pool->stream == pool->streams &&
           pool->done >= pool->count - pool->voids) {
        pool->round = pool->count == pool->voids ? pool->rounds
                                                 : pool->round + 1; /* no work units: none in any round */
        pool_changed(pool);
        if (pool->round < pool->rounds)
            begin_round(pool);
    }
    if (pool->round == pool->rounds) {
        assert(!pool->leased); /* each was reported */
        free(pool->units);
        pool->units = NULL;
        pool->count = pool->capacity = pool->voids = pool->done = pool->free = 0;
    }
}

/* ---- dealing ------------------------------------------------------------------------------------------- */

/* Round 0: the stream's next work unit. It may not exist. */
static paramo_err unit_new(struct sched_pool *pool, uint32_t *out)
{
    assert(pool->round == 0 && pool->stream < pool->streams);
    pool_check(pool);
    if (pool->count == POOL_UNITS_MAX)
        return err_set(PARAMO_E_FULL, "pool %s has %d work units, which is the limit", pool->name,
                       POOL_UNITS_MAX);
    if (pool->count == pool->capacity) {
        uint32_t capacity = pool->capacity ? 2 * pool->capacity : 64;
        struct unit *units = realloc(pool->units, capacity * sizeof *units);
        if (!units)
            return err_memory(capacity * sizeof *units);
        pool->units = units;
        pool->capacity = capacity;
    }
    pool->units[pool->count] = (struct unit){
        .stream = pool->stream, .index = pool->index++, .owner = NONE, .next = NONE, .state = UNIT_FREE};
    pool_changed(pool);
    unit_changed(pool, pool->count);
    pool->free++;
    *out = pool->count++;
    return PARAMO_OK;
}

static bool lease_free_unit(struct sched_pool *pool, int32_t owner, uint32_t *out)
{
    assert(owner >= 0 && (uint32_t)owner < pool->owners_count);
    struct owner *o = &pool->owners[owner];
    while (o->own != NONE) {
        uint32_t unit = (uint32_t)o->own;
        assert(unit < pool->count);
        o->own = pool->units[unit].next;
        if (pool->units[unit].state == UNIT_FREE) {
            assert(pool->units[unit].owner == owner); /* another owner would have done it in this round */
            *out = unit;
            return true;
        }
    }
    if (!pool->free)
        return false;
    assert(pool->free <= pool->count && pool->cursor < pool->count);
    while (pool->units[pool->cursor].state != UNIT_FREE) {
        pool->cursor++;
        assert(pool->cursor < pool->count); /* one of pool->free is there */
    }
    *out = pool->cursor++;
    return true;
}

/* The result is GOT with the work unit, NONE_NOW or FINISHED. */
static paramo_err deal(struct sched_pool *pool, struct sched_node *node, uint32_t who, uint32_t round,
                       struct pool_next_result *result)
{
    *result = (struct pool_next_result){.state = round < pool->round ? POOL_FINISHED : POOL_NONE_NOW};
    if (round != pool->round)
        return PARAMO_OK;
    int32_t owner = NONE;
    uint32_t unit = 0;
    paramo_err err = owner_find(pool, node, who, &owner);
    if (err)
        return err;
    assert(pool->owners[owner].leases <= pool->leases.count);
    if (pool->owners[owner].leases == LEASES_MAX)
        return err_set(PARAMO_E_AGAIN,
                       "this worker holds %d work units, which is the limit; report one first", LEASES_MAX);
    if (!lease_free_unit(pool, owner, &unit)) {
        if (pool->stream == pool->streams)
            return PARAMO_OK;
        err = unit_new(pool, &unit);
        if (err)
            return err;
    }
    err = lease_add(pool, unit, owner, node);
    if (err) {
        if (unit < pool->cursor)
            pool->cursor = unit;
        return err;
    }
    assert(pool->free > 0 && pool->free + pool->done + pool->voids <= pool->count);
    unit_move(&pool->units[unit], UNIT_LEASED);
    pool->free--;
    pool_check(pool);
    *result = (struct pool_next_result){.state = POOL_GOT,
                                        .unit = {.stream = pool->units[unit].stream,
                                                 .round = round,
                                                 .index = pool->units[unit].index,
                                                 .token = pool->tokens}};
    result->view = sched_view_number(node->sched);
    return PARAMO_OK;
}

static void answer_unit(struct sched_call *call, const struct pool_next_result *result)
{
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
        pool->woken = call->next;
        paramo_err err = deal(pool, call->node, call->u.pool.who, call->u.pool.round, &result);
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

/* ---- calls --------------------------------------------------------------------------------------------- */

static struct sched_pool *pool_named(const struct scheduler *s, const char *name)
{
    struct sched_pool *pool = s->pools->first;
    while (pool && strcmp(pool->name, name) != 0)
        pool = pool->next;
    if (!pool)
        (void)err_set(PARAMO_E_NOT_FOUND, "there is no pool %s", name);
    return pool;
}

static paramo_err pool_add(struct scheduler *s, const struct pool_open *m, struct sched_pool **out)
{
    if (s->pools->count == SCHED_POOLS_MAX)
        return err_set(PARAMO_E_FULL, "the limit of %d pools is reached", SCHED_POOLS_MAX);
    struct sched_pool *pool = calloc(1, sizeof *pool);
    if (!pool)
        return err_memory(sizeof *pool);
    memcpy(pool->name, m->name, sizeof m->name);
    pool->sched = s;
    pool->turn.fire = wake_due;
    pool->place = s->pools->count++;
    pool->streams = m->streams;
    pool->rounds = m->rounds;
    pool->next = s->pools->first;
    s->pools->first = pool;
    pool_changed(pool);
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
        err = pool_add(s, &m, &pool);
    if (err)
        sched_call_fail(call, err);
    else
        sched_call_answer(call, NULL);
}

static void next_timed_out(struct sched_call *call)
{
    answer_unit(call, &(struct pool_next_result){.state = POOL_NONE_NOW});
}

static void next_withdrawn(struct sched_call *call)
{
    struct sched_pool *pool = call->object;
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
        err = deal(pool, call->node, m.who, m.round, &result);
    if (err)
        sched_call_fail(call, err);
    else if (result.state != POOL_NONE_NOW || m.timeout_ms == 0)
        answer_unit(call, &result);
    else {
        assert(pool->sched == call->node->sched && m.round < pool->rounds);
        call->u.pool.who = m.who;
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
    unit_move(unit, UNIT_DONE);
    unit->owner = lease->owner;
    pool->done++;
    assert(pool->free + pool->done + pool->voids <= pool->count);
    lease_remove(pool, lease);
    sched_call_answer(call, NULL);
    finish_round(pool);
    wake(pool);
}

/* Ends the stream before unit `first`. The units from there on were dealt but do not exist. A DONE unit stays
 * done: the first report counts. */
static void stream_ends(struct sched_pool *pool, uint32_t first)
{
    assert(first < pool->count);
    uint32_t stream = pool->units[first].stream;
    assert(pool->round == 0 && stream < pool->streams);
    pool_changed(pool);
    units_changed(pool, first);
    if (pool->stream == stream) {
        pool->stream++;
        pool->index = 0;
    }
    for (uint32_t i = first; i < pool->count && pool->units[i].stream == stream; i++) {
        struct unit *unit = &pool->units[i];
        if (unit->state == UNIT_DONE || unit->state == UNIT_VOID)
            continue;
        pool->free -= unit->state == UNIT_FREE;
        unit_move(unit, UNIT_VOID);
        pool->voids++;
    }
    for (struct lease *lease = pool->leased, *next; lease; lease = next) {
        next = lease->next;
        if (pool->units[lease->unit].state == UNIT_VOID)
            lease_remove(pool, lease);
    }
    while (pool->count && pool->units[pool->count - 1].state == UNIT_VOID) {
        pool->count--;
        pool->voids--;
    }
    if (pool->cursor > pool->count)
        pool->cursor = pool->count;
    pool_check(pool);
    assert(pool->stream > stream); /* it deals no more of this one */
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
    stream_ends(pool, lease->unit);
    finish_round(pool);
    wake(pool);
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

/* ---- durable records ----------------------------------------------------------------------------------- */

static void pool_write(const struct sched_pool *pool, struct writer *w)
{
    write_string(w, pool->name);
    write_u32(w, pool->streams);
    write_u32(w, pool->rounds);
    write_u32(w, pool->round);
    write_u32(w, pool->stream);
    write_u32(w, pool->index);
    write_u32(w, pool->count);
    write_u64(w, pool->tokens);
}

static void owners_write(const struct sched_pool *pool, struct writer *w)
{
    for (uint32_t i = 0; i < pool->owners_count; i++) {
        write_u64(w, pool->owners[i].key);
        write_u64(w, pool->owners[i].incarnation);
    }
}

static void units_write(const struct sched_pool *pool, uint32_t record, struct writer *w)
{
    for (uint32_t i = 0; i < RECORD_UNITS_MAX && record * RECORD_UNITS_MAX + i < pool->count; i++) {
        uint32_t number = record * RECORD_UNITS_MAX + i;
        const struct unit *unit = &pool->units[number];
        write_u8(w, unit->state);
        write_u32(w, unit->stream);
        write_u32(w, unit->index);
        write_u32(w, (uint32_t)unit->owner);
        if (unit->state == UNIT_LEASED) {
            const struct lease *lease = map_get(&pool->lease_of, number);
            assert(lease && lease->unit == number);
            write_u64(w, lease->token);
            write_u32(w, (uint32_t)lease->owner);
        }
    }
}

static struct sched_pool *pool_at(const struct scheduler *s, uint64_t place)
{
    struct sched_pool *pool = s->pools->first;
    while (pool && pool->place != place)
        pool = pool->next;
    return pool;
}

void sched_pool_record(const struct scheduler *s, enum record_kind kind, uint64_t key, struct writer *w)
{
    const struct sched_pool *pool = pool_at(s, kind == RECORD_UNITS ? key >> RECORD_POOL_SHIFT : key);
    if (!pool)
        return;
    if (kind == RECORD_POOL)
        pool_write(pool, w);
    else if (kind == RECORD_OWNERS)
        owners_write(pool, w);
    else
        units_write(pool, (uint32_t)(key % (1u << RECORD_POOL_SHIFT)), w);
}

/* A pool and its owners, or 64 of its units. Pools that are opened during the scan come before the first. */
bool sched_pool_next_records(const struct scheduler *s, struct sched_save_cursor *cursor, struct writer *w)
{
    const struct sched_pool *pool = cursor->object ? cursor->object : s->pools->first;
    size_t mark;
    if (!pool)
        return false;
    cursor->object = pool;
    if (!cursor->inner) {
        sched_save_record_begin(w, RECORD_POOL, pool->place, &mark);
        pool_write(pool, w);
        store_record_end(w, mark);
        sched_save_record_begin(w, RECORD_OWNERS, pool->place, &mark);
        owners_write(pool, w);
        store_record_end(w, mark);
    }
    uint32_t record = (uint32_t)cursor->inner++;
    if (record * RECORD_UNITS_MAX < pool->count) {
        sched_save_record_begin(w, RECORD_UNITS, (uint64_t)pool->place << RECORD_POOL_SHIFT | record, &mark);
        units_write(pool, record, w);
        store_record_end(w, mark);
        return true;
    }
    cursor->object = pool->next;
    cursor->inner = 0;
    return pool->next;
}

static paramo_err damaged(void)
{
    return err_set(PARAMO_E_CORRUPT, "the durable record of a pool is malformed");
}

static paramo_err pool_restore(struct scheduler *s, uint64_t place, struct reader *r)
{
    struct pool_open m;
    struct sched_pool *pool = NULL;
    read_string(r, m.name, sizeof m.name);
    m.streams = read_u32(r);
    m.rounds = read_u32(r);
    bool fits = !r->failed && place < SCHED_POOLS_MAX && m.name[0] && m.streams &&
                m.streams <= POOL_STREAMS_MAX && m.rounds && m.rounds <= POOL_ROUNDS_MAX;
    paramo_err err = fits ? pool_add(s, &m, &pool) : damaged();
    if (err || !pool)
        return err;
    pool->place = (uint32_t)place;
    pool->round = read_u32(r);
    pool->stream = read_u32(r);
    pool->index = read_u32(r);
    uint32_t count = read_u32(r);
    pool->tokens = read_u64(r);
    bool known = pool->stream == pool->streams; /* all units are */
    if (!reader_done(r) || pool->round > pool->rounds || pool->stream > pool->streams ||
        count > POOL_UNITS_MAX || (pool->round > 0 && !known) || (pool->round == pool->rounds && count))
        return damaged();
    pool->units = calloc(count ? count : 1, sizeof *pool->units);
    if (!pool->units)
        return err_memory(count * sizeof *pool->units);
    pool->count = pool->capacity = count;
    for (uint32_t i = 0; i < pool->count; i++)
        pool->units[i] = (struct unit){.owner = NONE, .next = NONE, .state = UNIT_VOID};
    return PARAMO_OK;
}

/* A holder that is still in the job keeps its lease. */
static paramo_err lease_restore(struct sched_pool *pool, uint32_t unit, uint64_t token, uint32_t owner)
{
    if (owner >= pool->owners_count || map_get(&pool->leases, token))
        return damaged();
    pool->tokens = token > pool->tokens ? token : pool->tokens; /* the next is another */
    struct sched_node *node = sched_roster_find_incarnation(pool->sched, pool->owners[owner].incarnation);
    if (!node || node->state != SNODE_ABSENT) {
        unit_move(&pool->units[unit], UNIT_FREE);
        return PARAMO_OK;
    }
    return lease_put(pool, token, unit, (int32_t)owner, node);
}

static paramo_err units_restore(struct sched_pool *pool, uint32_t first, struct reader *r)
{
    /* Records beyond the count are from before the stream's end was known. */
    for (uint32_t i = first; i < first + RECORD_UNITS_MAX && i < pool->count && r->left; i++) {
        struct unit *unit = &pool->units[i];
        uint8_t state = read_u8(r);
        uint32_t stream = read_u32(r), index = read_u32(r), owner = read_u32(r);
        if (r->failed || state > UNIT_VOID || stream >= pool->streams || stream > pool->stream ||
            (owner != (uint32_t)NONE &&
             (owner >= pool->owners_count || (!pool->round && state != UNIT_DONE))))
            return damaged();
        *unit = (struct unit){
            .stream = stream, .index = index, .owner = (int32_t)owner, .next = NONE, .state = state};
        if (state != UNIT_LEASED)
            continue;
        uint64_t token = read_u64(r);
        paramo_err err = lease_restore(pool, i, token, read_u32(r));
        if (err)
            return err;
    }
    return r->failed ? damaged() : PARAMO_OK;
}

paramo_err sched_pool_restore(struct scheduler *s, enum record_kind kind, uint64_t key, struct reader *r)
{
    if (kind == RECORD_POOL)
        return pool_restore(s, key, r);
    struct sched_pool *pool = pool_at(s, kind == RECORD_UNITS ? key >> RECORD_POOL_SHIFT : key);
    if (!pool)
        return damaged();
    if (kind == RECORD_UNITS)
        return units_restore(pool, (uint32_t)(key % (1u << RECORD_POOL_SHIFT)) * RECORD_UNITS_MAX, r);
    paramo_err err = PARAMO_OK;
    while (r->left && !err) {
        uint64_t owner = read_u64(r), incarnation = read_u64(r);
        err = r->failed ? damaged() : owner_add(pool, owner, incarnation);
    }
    return err;
}

void sched_pool_restored(struct scheduler *s)
{
    uint32_t places = 0;
    for (struct sched_pool *pool = s->pools->first; pool; pool = pool->next) {
        places = pool->place >= places ? pool->place + 1 : places;
        for (uint32_t i = 0; i < pool->count; i++) {
            pool->free += pool->units[i].state == UNIT_FREE;
            pool->done += pool->units[i].state == UNIT_DONE;
            pool->voids += pool->units[i].state == UNIT_VOID;
        }
        chain_owners(pool);
        assert_slow(pool_fits(pool));
    }
    s->pools->count = places;
}

/* A load that begins the job replaces the pools. A worker waits for that, but may have asked all the same. */
static void callers_end(struct sched_pool *pool)
{
    for (struct sched_call *call; (call = pool->deferred.first);)
        sched_call_fail(call,
                        err_set(PARAMO_E_CANCELLED, "pool %s was replaced by a checkpoint's", pool->name));
    assert(!pool->woken);
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
