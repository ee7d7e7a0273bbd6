#include "cluster/scheduler/sched_pool_records.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_node.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_units.h"

static void pool_write(const struct sched_pool *pool, struct writer *w)
{
    pool_check(pool);
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
        assert(unit->owner == NO_UNIT || (uint32_t)unit->owner < pool->owners_count);
        write_u8(w, (uint8_t)unit_state_of(pool, unit));
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
    assert(kind >= RECORD_POOL && kind <= RECORD_UNITS);
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
    paramo_err err = fits ? sched_pool_add(s, &m, &pool) : damaged();
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
        pool->units[i] = (struct unit){.owner = NO_UNIT, .next = NO_UNIT, .state = UNIT_VOID};
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
        unit_move(pool, &pool->units[unit], UNIT_FREE);
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
            (owner != (uint32_t)NO_UNIT &&
             (owner >= pool->owners_count || (!pool->round && state != UNIT_DONE))))
            return damaged();
        *unit = (struct unit){.stream = stream,
                              .index = index,
                              .owner = (int32_t)owner,
                              .next = NO_UNIT,
                              .state = state,
                              .round = (uint8_t)pool->round};
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
        err = r->failed ? damaged() : pool_owner_add(pool, owner, incarnation);
    }
    return err;
}

void sched_pool_restored(struct scheduler *s)
{
    uint32_t places = 0;
    for (struct sched_pool *pool = s->pools->first; pool; pool = pool->next) {
        places = pool->place >= places ? pool->place + 1 : places;
        assert(!pool->free && !pool->done && !pool->voids); /* they are counted here */
        memset(pool->free_in, 0, sizeof pool->free_in);
        for (uint32_t i = 0; i < pool->count; i++) {
            pool->free += pool->units[i].state == UNIT_FREE;
            if (pool->units[i].state == UNIT_FREE)
                pool->free_in[i / BLOCK_UNITS]++;
            pool->done += pool->units[i].state == UNIT_DONE;
            pool->voids += pool->units[i].state == UNIT_VOID;
        }
        pool_chain_owners(pool);
        (void)pool_finish_round(pool, UINT32_MAX); /* if the save was between two turns before a round */
        assert_slow(pool_fits(pool));
    }
    s->pools->count = places;
}
