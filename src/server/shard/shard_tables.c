#include "server/shard/shard_tables.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "server/migration/target.h"
#include "server/shard/clearing.h"
#include "table/table_options.h"

enum {
    TABLE_AGAIN_MS = 100, /* arbitrary: soon for a person */
    TRIM_AFTER_MS = 100,  /* a cleared table may be filled again; arbitrary */
    TRIM_CHUNKS = 8,      /* in a step, each 1 ms: without huge pages 100 us each */
};

void shard_table_free(struct shard_table *t)
{
    assert(!t->saving);
    assert(!t->table || t->options.kind != PARAMO_TABLE_USER);
    rowcache_fini(&t->rows);
    table_destroy(t->table);
    hugemem_fini(&t->memory);
    free(t);
}

/* The partitions of which this shard has the table's rows or will get them, as owner or replica. runs: of the view. */
static void held_partitions(const struct shard *s, const struct shard_table *t, const struct view *view,
                            int self, const uint64_t runs[PARTITION_WORDS],
                            uint64_t partitions[PARTITION_WORDS])
{
    const struct ring_chains *chains = &view->chains;
    const uint64_t *come = s->chain ? migration_target_partitions(s->chain) : NULL;
    if (come && migration_target_gets_table(s->chain, t))
        memcpy(partitions, come, PARTITION_WORDS * sizeof *partitions);
    else
        memset(partitions, 0, PARTITION_WORDS * sizeof *partitions);
    for (partition_set_runs(a, end, runs))
        for (unsigned level = 0; level <= chains->replicas && level <= t->replicas; level++)
            if (chains->level[level].owner[a] == (unsigned)self)
                partition_set_add_run(partitions, a, end);
}

void shard_table_lose(struct shard_table *t, const uint64_t *partitions, bool lost)
{
    if (!lost && !t->lost)
        return;
    uint64_t any = 0;
    for (unsigned i = 0; i < RING_PARTITIONS / 64; i++) {
        uint64_t these = partitions ? partitions[i] : UINT64_MAX;
        t->lost_partitions[i] = lost ? t->lost_partitions[i] | these : t->lost_partitions[i] & ~these;
        any |= t->lost_partitions[i];
    }
    t->lost = any;
    assert(!lost || t->lost || partitions); /* all of them are some */
}

/* A run of partitions is one contiguous range of the table. Returns its end. */
static uint64_t rows_of_run(const struct shard_table *t, unsigned from, unsigned to, uint64_t *first)
{
    *first = ring_first_row(&t->placement, from);
    uint64_t end = to == RING_PARTITIONS ? t->options.rows : ring_first_row(&t->placement, to);
    assert(from < to && *first <= end);
    return end;
}

static uint64_t rows_of(const struct shard_table *t, const uint64_t partitions[PARTITION_WORDS])
{
    uint64_t rows = 0, first;
    for (unsigned a = partition_set_next(partitions, 0), end; a < RING_PARTITIONS;
         a = partition_set_next(partitions, end)) {
        end = partition_set_next_absent(partitions, a);
        uint64_t last = rows_of_run(t, a, end, &first);
        rows += last - first;
    }
    return rows;
}

/* Makes the rows of these partitions; adds those to `bare` that have no values yet. */
static paramo_err own(struct shard *s, struct shard_table *t, const uint64_t fresh[PARTITION_WORDS],
                      size_t *room, uint64_t bare[PARTITION_WORDS])
{
    uint64_t first;
    paramo_err err = PARAMO_OK;
    assert(t->table && t->options.kind == PARAMO_TABLE_DENSE);
    bool at_once = clearing_fills_at_once(s, t, rows_of(t, fresh), room);
    for (unsigned a = partition_set_next(fresh, 0), end; a < RING_PARTITIONS && !err;
         a = partition_set_next(fresh, end)) {
        end = partition_set_next_absent(fresh, a);
        uint64_t last = rows_of_run(t, a, end, &first);
        if (last > first && at_once)
            err = table_dense_own(t->table, first, last - first);
        else if (last > first)
            err = table_dense_own_bare(t->table, first, last - first);
        if (err)
            break;
        assert(!partition_set_has(t->held, a) && end <= RING_PARTITIONS);
        partition_set_add_run(t->held, a, end);
        if (!at_once && last > first)
            partition_set_add_run(bare, a, end);
    }
    return err;
}

static bool is_any(const uint64_t partitions[PARTITION_WORDS])
{
    return partition_set_next(partitions, 0) < RING_PARTITIONS;
}

paramo_err shard_table_own(struct shard *s, struct shard_table *t, size_t *room)
{
    uint64_t fresh[PARTITION_WORDS], bare[PARTITION_WORDS] = {0};
    assert(s->view && t->table);
    held_partitions(s, t, s->view, s->self, s->place->runs, fresh);
    for (unsigned i = 0; i < PARTITION_WORDS; i++)
        fresh[i] &= ~t->held[i];
    paramo_err err = own(s, t, fresh, room, bare);
    if (is_any(bare))
        clearing_fill(s, t, bare);
    return err;
}

/* Returns freed memory of tables to the system in steps. */
static void trimming_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_upkeep, trimming)->shard;
    unsigned chunks = TRIM_CHUNKS;
    bool more = false;
    struct shard_table *t;
    for (size_t i = 0; !more && (t = shard_table_next(s, &i));) {
        struct hugemem *m = &t->memory;
        size_t before = m->chunks.count;
        more = hugemem_trim(m, chunks);
        assert(before >= m->chunks.count && before - m->chunks.count <= chunks);
        chunks -= (unsigned)(before - m->chunks.count);
    }
    if (more && lane_timer_arm(s->lane, timer, lane_now(s->lane) + ENV_MS))
        log_debug("shard %u: no memory for a timer: freed memory is kept", s->config.index);
}

static void trim_soon(void *shard)
{
    struct shard *s = shard;
    assert(s->upkeep->shard == s && s->upkeep->trimming.fire == trimming_fire);
    if (!s->upkeep->trimming.slot &&
        lane_timer_arm(s->lane, &s->upkeep->trimming, lane_now(s->lane) + TRIM_AFTER_MS * ENV_MS))
        log_debug("shard %u: no memory for a timer: freed memory is kept", s->config.index);
}

uint64_t shard_table_bytes(const struct shard_table *t)
{
    return t->table ? table_get_stats(t->table).bytes + hugemem_idle(&t->memory) : 0;
}

paramo_err shard_table_make(struct shard *s, const struct view_table *from, struct shard_table **made)
{
    struct shard_table *t = calloc(1, sizeof *t);
    if (!t)
        return err_memory(sizeof *t);
    hugemem_init(&t->memory);
    t->memory.emptied = trim_soon;
    t->memory.ctx = s;
    rowcache_init(&t->rows, &s->pool);
    t->id = from->id;
    memcpy(t->name, from->name, sizeof t->name);
    t->options = from->options;
    t->replicas =
        from->options.replicas == PARAMO_REPLICAS_OF_JOB ? RING_REPLICAS_MAX : from->options.replicas;
    t->placement =
        (struct ring_placement){.kind = table_options_placement(&from->options), .rows = from->options.rows};
    t->value_bytes = (uint32_t)table_dtype_size(from->options.dtype);
    if (from->options.kind == PARAMO_TABLE_SPARSE || from->options.kind == PARAMO_TABLE_DENSE) {
        t->row_values = from->options.dim;
        t->state_values = (uint32_t)table_state_values(&from->options);
        t->stored_values = (uint32_t)table_stored_values(&from->options);
    }
    assert(t->stored_values >= t->row_values + t->state_values);
    assert(!t->table && !t->lost && !t->clears);
    *made = t;
    return PARAMO_OK;
}

static paramo_err rows_make(struct shard *s, struct shard_table *t)
{
    assert(!t->table || t->options.kind != PARAMO_TABLE_USER);
    struct table_alloc alloc = {.alloc = hugemem_alloc, .release = hugemem_release, .ctx = &t->memory};
    return t->options.kind == PARAMO_TABLE_USER || t->table
               ? PARAMO_OK
               : table_create(&t->options, env_random(lane_env(s->lane)), &alloc, &t->table);
}

/* Makes the table, and room for the rows that belong here. */
static paramo_err table_furnish(struct shard *s, struct shard_table *t, size_t *room)
{
    paramo_err err = rows_make(s, t);
    if (!err && s->self >= 0 && t->options.kind == PARAMO_TABLE_DENSE)
        err = shard_table_own(s, t, room);
    assert(err || !t->table == (t->options.kind == PARAMO_TABLE_USER));
    return err;
}

paramo_err shard_table_prepare(struct shard *s, const struct view_table *from, const struct view *view,
                               int self, const uint64_t runs[PARTITION_WORDS], size_t *room,
                               struct shard_table **out)
{
    struct shard_table *t;
    uint64_t fresh[PARTITION_WORDS];
    assert(self < (int)view->shards_count && !s->config.app_endpoint);
    paramo_err err = shard_table_make(s, from, &t);
    if (err)
        return err;
    assert(!t->table && t->id == from->id);
    err = rows_make(s, t);
    if (!err && self >= 0 && t->options.kind == PARAMO_TABLE_DENSE) {
        held_partitions(s, t, view, self, runs, fresh);
        err = own(s, t, fresh, room, t->clearing);
    }
    if (err)
        shard_table_free(t);
    else
        *out = t;
    return err;
}

/* Tables that lack memory try again. Until they succeed, requests to them answer MEMORY, and members before
 * us wait. */
void shard_tables_furnish(struct shard *s)
{
    char label[VIEW_LABEL_MAX];
    bool lacks = false;
    struct shard_table *t;
    size_t room = clearing_room(s);
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        bool before = t->lacks;
        assert(t->options.kind != PARAMO_TABLE_USER || !t->table);
        t->lacks = table_furnish(s, t, &room) != PARAMO_OK;
        lacks |= t->lacks;
        if (t->lacks && !before)
            log_error("%s, shard %u: table %s is not usable yet; retrying: %s",
                      view_id_label(s->config.node, label), s->config.index, t->name, err_text());
        else if (before && !t->lacks)
            log_info("%s, shard %u: table %s is usable", view_id_label(s->config.node, label),
                     s->config.index, t->name);
    }
    if (lacks)
        shard_table_again(s);
}

void shard_table_again(struct shard *s)
{
    if (!s->upkeep->furnishing.slot &&
        lane_timer_arm(s->lane, &s->upkeep->furnishing, lane_now(s->lane) + TABLE_AGAIN_MS * ENV_MS))
        log_debug("shard %u: no memory for a timer: tables wait for the next request", s->config.index);
}

static void furnishing_fire(struct lane_timer *timer)
{
    shard_tables_furnish(container_of(timer, struct shard_upkeep, furnishing)->shard);
}

void shard_tables_init(struct shard *s)
{
    assert(!s->upkeep->furnishing.slot);
    assert(!s->upkeep->trimming.slot);
    shard_table_map_init(s);
    s->upkeep->shard = s;
    s->upkeep->furnishing.fire = furnishing_fire;
    s->upkeep->trimming.fire = trimming_fire;
}

void shard_tables_close(struct shard *s)
{
    struct shard_table *t;
    lane_timer_cancel(s->lane, &s->upkeep->furnishing);
    for (size_t i = 0; (t = shard_table_next(s, &i));)
        shard_table_free(t);
    shard_table_map_fini(s);
    lane_timer_cancel(s->lane, &s->upkeep->trimming); /* freeing tables may have armed it */
    assert(!s->upkeep->furnishing.slot && !s->upkeep->trimming.slot);
}
