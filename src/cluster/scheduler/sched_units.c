#include "cluster/scheduler/sched_units.h"

#include <assert.h>
#include <stdlib.h>

#include "base/assert_slow.h"
#include "base/sm.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_view.h"

enum {
    OWNERS_MAX = 1 << 16,
    LEASES_MAX = 4096 /* leases of one owner */
};

void pool_check(const struct sched_pool *pool)
{
    assert(pool->count <= pool->capacity && pool->capacity <= 2 * POOL_UNITS_MAX);
    assert(pool->free + pool->done + pool->voids <= pool->count && pool->leases.count <= pool->count);
    assert(pool->owners_count <= pool->owners_capacity && !pool->leased == !pool->leases.count);
    assert(pool->round <= pool->rounds && pool->stream <= pool->streams);
    assert(!pool->deferred.first == !pool->deferred.last && (!pool->leased || !pool->leased->prev));
}

bool pool_fits(const struct sched_pool *pool)
{
    uint32_t states[UNIT_VOID + 1] = {0}, in_blocks = 0;
    for (uint32_t i = 0; i < pool->count; i++)
        states[unit_state_of(pool, &pool->units[i])]++;
    for (unsigned block = 0; block < POOL_BLOCKS; block++)
        in_blocks += pool->free_in[block];
    if (!pool->chaining && in_blocks != pool->free)
        return false;
    for (const struct lease *lease = pool->leased; lease; lease = lease->next)
        if (lease->unit >= pool->count || map_get(&pool->leases, lease->token) != lease ||
            map_get(&pool->lease_of, lease->unit) != lease)
            return false;
    return states[UNIT_FREE] == pool->free && states[UNIT_DONE] == pool->done &&
           states[UNIT_VOID] == pool->voids;
}

void pool_changed(struct sched_pool *pool)
{
    sched_save_record_changed(pool->sched, RECORD_POOL, pool->place);
}

static void unit_changed(struct sched_pool *pool, uint32_t unit)
{
    assert(unit <= pool->count && unit < POOL_UNITS_MAX);
    sched_save_record_changed(pool->sched, RECORD_UNITS,
                              (uint64_t)pool->place << RECORD_POOL_SHIFT | unit / RECORD_UNITS_MAX);
}

static void units_changed(struct sched_pool *pool, uint32_t first)
{
    assert(first <= pool->count);
    if ((pool->count - first) / RECORD_UNITS_MAX >= SCHED_SAVE_DIRTY)
        sched_save_all_changed(pool->sched);
    else
        for (uint32_t unit = first - first % RECORD_UNITS_MAX; unit < pool->count; unit += RECORD_UNITS_MAX)
            unit_changed(pool, unit);
}

/* ---- leases -------------------------------------------------------------------------------------------- */

void lease_remove(struct sched_pool *pool, struct lease *lease)
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

paramo_err lease_put(struct sched_pool *pool, uint64_t token, uint32_t unit, int32_t owner,
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
    assert(unit_state_of(pool, &pool->units[unit]) == UNIT_FREE);
    pool_changed(pool);
    unit_changed(pool, unit);
    return lease_put(pool, ++pool->tokens, unit, owner, node);
}

/* The lease knows whether a unit is reported twice; so `done` may follow `done`. */
static const struct sm machine = {
    "work unit",
    {[UNIT_FREE] = {"free", SM_TO(UNIT_LEASED) | SM_TO(UNIT_VOID)},
     [UNIT_LEASED] = {"leased", SM_TO(UNIT_FREE) | SM_TO(UNIT_DONE) | SM_TO(UNIT_VOID)},
     [UNIT_DONE] = {"done", SM_TO(UNIT_DONE)},
     [UNIT_VOID] = {"void", 0}}};

void unit_move(struct sched_pool *pool, struct unit *unit, enum unit_state to)
{
    assert(unit >= pool->units && unit < pool->units + pool->count);
    enum unit_state from = unit_state_of(pool, unit);
    uint16_t *free_in = &pool->free_in[(size_t)(unit - pool->units) / BLOCK_UNITS];
    sm_check(&machine, from, to);
    assert(from != UNIT_FREE || *free_in);
    *free_in = (uint16_t)(*free_in - (from == UNIT_FREE) + (to == UNIT_FREE));
    unit->state = (uint8_t)to;
    unit->round = (uint8_t)pool->round;
}

void unit_release(struct sched_pool *pool, uint32_t unit)
{
    assert(unit < pool->count && pool->free < pool->count);
    assert(pool->units[unit].state == UNIT_LEASED);
    unit_changed(pool, unit);
    unit_move(pool, &pool->units[unit], UNIT_FREE);
    pool->free++;
    if (unit < pool->cursor)
        pool->cursor = unit;
}

/* ---- owners -------------------------------------------------------------------------------------------- */

paramo_err pool_owner_add(struct sched_pool *pool, uint64_t key, uint64_t incarnation)
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
    pool->owners[pool->owners_count++] =
        (struct owner){.key = key, .incarnation = incarnation, .own = NO_UNIT};
    sched_save_record_changed(pool->sched, RECORD_OWNERS, pool->place);
    return PARAMO_OK;
}

static paramo_err owner_find(struct sched_pool *pool, const struct sched_node *node, uint32_t customer,
                             int32_t *out)
{
    uint64_t key = (uint64_t)node->info.id << 32 | customer;
    uintptr_t found = (uintptr_t)map_get(&pool->owner_of, key);
    assert(found <= pool->owners_count && node->info.id);
    if (found && pool->owners[found - 1].incarnation == node->info.incarnation) {
        *out = (int32_t)found - 1;
        return PARAMO_OK;
    }
    paramo_err err = pool_owner_add(pool, key, node->info.incarnation);
    if (!err)
        *out = (int32_t)pool->owners_count - 1;
    return err;
}

/* ---- rounds -------------------------------------------------------------------------------------------- */

static void chain_from_end(struct sched_pool *pool)
{
    pool_check(pool);
    for (uint32_t i = 0; i < pool->owners_count; i++)
        pool->owners[i].own = NO_UNIT;
    pool->unchained = pool->count;
}

/* Units from the last one down, so that each chain is in order. next: all units that exist, for the next round. */
static void chain_some(struct sched_pool *pool, uint32_t most, bool next)
{
    assert(pool->unchained <= pool->count);
    for (; pool->unchained && most; most--) {
        uint32_t i = --pool->unchained;
        struct unit *unit = &pool->units[i];
        enum unit_state state = unit_state_of(pool, unit);
        assert(unit->owner == NO_UNIT || (uint32_t)unit->owner < pool->owners_count);
        assert(!next || state == UNIT_DONE || state == UNIT_VOID);
        unit->next = NO_UNIT;
        if (next && state == UNIT_DONE)
            pool->free_in[i / BLOCK_UNITS]++;
        if (state == (next ? UNIT_DONE : UNIT_FREE) && unit->owner != NO_UNIT) {
            unit->next = pool->owners[unit->owner].own;
            pool->owners[unit->owner].own = (int32_t)i;
        }
    }
}

void pool_chain_owners(struct sched_pool *pool)
{
    assert(!pool->chaining);
    chain_from_end(pool);
    chain_some(pool, UINT32_MAX, false);
    assert(!pool->unchained);
}

static bool is_finished(const struct sched_pool *pool)
{
    return pool->round < pool->rounds && pool->stream == pool->streams &&
           pool->done >= pool->count - pool->voids;
}

/* All units are done in the round before, so they are FREE. */
static void begin_round(struct sched_pool *pool)
{
    assert(pool->round + 1 < pool->rounds && !pool->unchained && !pool->leased);
    pool->chaining = false;
    pool->round++;
    pool_changed(pool);
    pool->free = pool->count - pool->voids;
    pool->done = 0;
    pool->cursor = 0;
    units_changed(pool, 0);
    assert_slow(pool_fits(pool));
}

static void pool_over(struct sched_pool *pool)
{
    assert(!pool->leased && !pool->chaining); /* each was reported */
    pool->round = pool->rounds;
    pool_changed(pool);
    free(pool->units);
    pool->units = NULL;
    pool->count = pool->capacity = pool->voids = pool->done = pool->free = 0;
    pool_check(pool);
}

bool pool_finish_round(struct sched_pool *pool, uint32_t most)
{
    pool_check(pool);
    assert(most && pool->round <= pool->rounds && pool->stream <= pool->streams);
    if (!is_finished(pool))
        return true;
    bool none = pool->count == pool->voids; /* in any round */
    if (none || pool->round + 1 == pool->rounds) {
        pool_over(pool);
        return true;
    }
    if (!pool->chaining)
        chain_from_end(pool);
    pool->chaining = true;
    chain_some(pool, most, true);
    if (pool->unchained)
        return false;
    begin_round(pool);
    return true;
}

void pool_stream_ends(struct sched_pool *pool, uint32_t first)
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
            continue; /* done in this round: there was none before */
        pool->free -= unit->state == UNIT_FREE;
        unit_move(pool, unit, UNIT_VOID);
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
    assert(pool->stream > stream); /* it deals no other unit of this stream */
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
    pool->units[pool->count] = (struct unit){.stream = pool->stream,
                                             .index = pool->index++,
                                             .owner = NO_UNIT,
                                             .next = NO_UNIT,
                                             .state = UNIT_FREE,
                                             .round = 0};
    pool_changed(pool);
    unit_changed(pool, pool->count);
    pool->free_in[pool->count / BLOCK_UNITS]++;
    pool->free++;
    *out = pool->count++;
    return PARAMO_OK;
}

static bool lease_free_unit(struct sched_pool *pool, int32_t owner, uint32_t *out)
{
    assert(owner >= 0 && (uint32_t)owner < pool->owners_count);
    struct owner *o = &pool->owners[owner];
    pool->looked = 0;
    /* Others may have done many of its units. Those that are left of its chain then are dealt in the order of all. */
    for (; o->own != NO_UNIT && pool->looked < POOL_CHAIN_TURN; pool->looked++) {
        uint32_t unit = (uint32_t)o->own;
        assert(unit < pool->count);
        o->own = pool->units[unit].next;
        if (unit_state_of(pool, &pool->units[unit]) == UNIT_FREE) {
            assert(pool->units[unit].owner == owner); /* another owner would have done it in this round */
            *out = unit;
            return true;
        }
    }
    if (!pool->free)
        return false;
    assert(pool->free <= pool->count && pool->cursor < pool->count);
    while (unit_state_of(pool, &pool->units[pool->cursor]) != UNIT_FREE) {
        uint32_t block = pool->cursor / BLOCK_UNITS;
        pool->cursor = pool->free_in[block] ? pool->cursor + 1 : (block + 1) * BLOCK_UNITS;
        pool->looked++;
        assert(pool->cursor < pool->count); /* one of pool->free is there */
    }
    *out = pool->cursor++;
    return true;
}

paramo_err unit_deal(struct sched_pool *pool, struct sched_node *node, uint32_t customer, uint32_t round,
                     struct pool_next_result *result)
{
    *result = (struct pool_next_result){.state = round < pool->round ? POOL_FINISHED : POOL_NONE_NOW};
    if (round != pool->round || pool->chaining)
        return PARAMO_OK;
    int32_t owner = NO_UNIT;
    uint32_t unit = 0;
    paramo_err err = owner_find(pool, node, customer, &owner);
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
    unit_move(pool, &pool->units[unit], UNIT_LEASED);
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
