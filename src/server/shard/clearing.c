#include "server/shard/clearing.h"

#include <assert.h>
#include <string.h>

#include "base/assert_slow.h"
#include "base/log.h"
#include "server/replication/acks.h"
#include "server/replication/gate.h"
#include "server/shard/table_map.h"
#include "server/snapshot/saving.h"
#include "table/table.h"
#include "table/table_snapshot.h"
#include "wire/reduction_body.h"
#include "wire/transform_body.h"

enum {
    STEP_KEYS = 4096,       /* examined, and at most removed, in one step: 1 to 2 ms */
    STEP_BYTES = 512 << 10, /* of rows of a dense table, which get their initial values */
    FEW_STEPS = 64,         /* of a table that has few rows, though its index may have had many */
    TABLE_KEYS = 4,         /* what a step of a table costs beside its keys, in keys: 1 us */
};

struct portion {
    const struct shard_table *t;
    size_t n, most;
    bool full; /* a sweep that found many keys will find others */
    uint64_t keys[STEP_KEYS];
};

static void portion_add(void *ctx, uint64_t key)
{
    struct portion *p = ctx;
    if (!partition_set_has(p->t->clearing, ring_partition(ring_position(&p->t->placement, key))))
        return;
    assert(p->n <= p->most);
    assert(!p->full || p->n == p->most);
    p->full = p->n == p->most;
    if (!p->full)
        p->keys[p->n++] = key;
}

static size_t step_keys(const struct shard *s)
{
    size_t keys = s->config.scan_keys;
    return keys && keys < STEP_KEYS ? keys : STEP_KEYS;
}

/* ---- steps ---- */

static size_t dense_rows(const struct shard *s, const struct shard_table *t)
{
    size_t row = ((size_t)t->row_values + t->state_values) * t->value_bytes;
    size_t rows = row < STEP_BYTES ? STEP_BYTES / row : 1, most = step_keys(s);
    return rows < most ? rows : most;
}

/* clear_at is a row. Skips rows that this shard does not hold. */
static paramo_err dense_step(struct shard_table *t, struct portion *p, bool *more)
{
    assert(t->options.kind == PARAMO_TABLE_DENSE && t->clears && !p->n);
    paramo_err err = PARAMO_OK;
    while (p->n < p->most && !err) {
        unsigned from = t->clear_at < t->options.rows
                            ? ring_partition(ring_position(&t->placement, t->clear_at))
                            : RING_PARTITIONS;
        unsigned partition = partition_set_next(t->clearing, from);
        if (partition == RING_PARTITIONS) {
            *more = false;
            break;
        }
        uint64_t first = ring_first_row(&t->placement, partition);
        uint64_t end =
            partition + 1 == RING_PARTITIONS ? t->options.rows : ring_first_row(&t->placement, partition + 1);
        uint64_t row = first > t->clear_at ? first : t->clear_at;
        assert(end > t->clear_at); /* so each turn makes progress */
        for (; row < end && p->n < p->most && partition_set_has(t->held, partition); row++)
            p->keys[p->n++] = row;
        t->clear_at = partition_set_has(t->held, partition) ? row : end;
    }
    return table_delete(t->table, p->keys, p->n, NULL);
}

/* clear_at is a hash. */
static paramo_err sweep_step(struct shard_table *t, struct portion *p, bool *more)
{
    assert(t->options.kind != PARAMO_TABLE_DENSE && t->clears && !p->n);
    uint64_t before = t->clear_at;
    *more = table_sweep(t->table, &t->clear_at, p->most, portion_add, p);
    assert(p->n <= p->most && (!*more || t->clear_at > before));
    paramo_err err = table_delete(t->table, p->keys, p->n, NULL);
    if (p->full) { /* removed rows are not visited again */
        t->clear_at = before;
        *more = true;
    }
    return err;
}

/* False: no row of its partitions is left. */
static bool step(struct shard *s, struct shard_table *t)
{
    bool dense = t->options.kind == PARAMO_TABLE_DENSE, more = true;
    assert(t->clears && t->table && s->clearing->tables > 0);
    struct portion p; /* the keys stay as they are: there is room for many */
    p.t = t;
    p.n = 0;
    p.most = dense ? dense_rows(s, t) : step_keys(s);
    p.full = false;
    paramo_err err = dense ? dense_step(t, &p, &more) : sweep_step(t, &p, &more);
    if (err && s->chain) /* this cannot fail for rows that are held, nor for any keys */
        chain_fail(s->chain, err);
    if (err)
        more = false;
    return more;
}

/* ---- what waits ---- */

bool clearing_touches(const struct shard_table *t, const uint64_t *partitions)
{
    uint64_t any = 0;
    for (unsigned i = 0; i < PARTITION_WORDS && t->clears; i++)
        any |= t->clearing[i] & partitions[i];
    return any != 0;
}

static bool table_holds(const struct shard *s, uint32_t id, const struct wire_head *h,
                        const struct van_seg *seg)
{
    const struct shard_table *t = shard_table_get(s, id);
    if (!t || !t->clears)
        return false;
    bool holds = !h->count || h->kind == WIRE_SCAN;
    const uint64_t *keys = h->count ? seg[WIRE_SEG_KEYS].data : NULL;
    for (size_t i = 0; i < h->count && !holds; i++)
        holds = partition_set_has(t->clearing, ring_partition(ring_position(&t->placement, keys[i])));
    return holds;
}

bool clearing_holds(struct shard *s, const struct wire_head *h, const struct van_seg *seg)
{
    uint32_t other;
    if (!s->clearing->tables || h->kind == WIRE_CLEAR)
        return false;
    bool two = (h->kind == WIRE_REDUCE && reduction_other(seg[WIRE_SEG_BODY].data, &other)) ||
               (h->kind == WIRE_TRANSFORM && transform_other(seg[WIRE_SEG_BODY].data, &other));
    return table_holds(s, h->table, h, seg) || (two && table_holds(s, other, h, seg));
}

size_t clearing_room(const struct shard *s)
{
    return step_keys(s);
}

/* What removing all rows costs, or one step if they are too many for one. */
static size_t cost(const struct shard *s, const struct shard_table *t)
{
    size_t most = step_keys(s);
    bool many = t->options.kind == PARAMO_TABLE_DENSE || table_rows(t->table) + TABLE_KEYS > most;
    return many ? most : (size_t)table_rows(t->table) + TABLE_KEYS;
}

/* It has no rows, and none are being removed. */
static bool is_empty(const struct shard_table *t)
{
    return t->options.kind != PARAMO_TABLE_DENSE && !t->clears && !table_rows(t->table);
}

/* Are the rows few enough for one step? */
static bool is_few(const struct shard *s, const struct shard_table *t)
{
    return t->options.kind != PARAMO_TABLE_DENSE && table_rows(t->table) <= step_keys(s);
}

static void table_over(struct shard *s, struct shard_table *t)
{
    if (!t->clears)
        return;
    assert(s->clearing->tables > 0);
    t->clears = false;
    memset(t->clearing, 0, sizeof t->clearing);
    assert(t->table && t->options.kind != PARAMO_TABLE_USER);
    s->clearing->tables--;
    s->clearing->ended = true;
}

/* A removal has ended: the members before may send what waited for it. */
static void go_on(struct shard *s)
{
    assert(s->clearing->ended);
    assert(!s->place->adopting);
    s->clearing->ended = false;
    for (struct chain_source *source = s->chain ? s->chain->sources : NULL; source; source = source->next)
        if (source->again)
            acks_soon(source);
}

/* A step of each table, as many as cost no more than one of a large table. False: there is nothing to do. *waits is set
 * if a step must wait; waits NULL: the steps run in any case. */
static bool some_steps(struct shard *s, bool *waits)
{
    size_t room = step_keys(s);
    bool any = false;
    assert(room > 0 && room <= STEP_KEYS);
    if (waits)
        *waits = false;
    struct shard_table *t;
    for (size_t i = 0; (t = shard_table_next(s, &i));) {
        if (waits && t->clears && saving_behind(s, t)) {
            *waits = true;
            continue;
        }
        if (!t->clears && !t->remains)
            continue;
        size_t costs = t->clears ? cost(s, t) : step_keys(s);
        if (any && costs > room)
            return true;
        any = true;
        assert(costs <= room);
        room -= costs;
        if (!t->clears) {
            t->remains = table_clear_step(t->table);
            continue;
        }
        if (!step(s, t))
            table_over(s, t);
        t->remains = table_clear_due(t->table);
    }
    return any;
}

static void steps_due(struct shard *s, uint64_t pause)
{
    if (s->clearing->timer.slot || !lane_timer_arm(s->lane, &s->clearing->timer, lane_now(s->lane) + pause))
        return;
    while (some_steps(s, NULL)) { /* no memory for a timer */
    }
}

/* One step. */
static void turn_fire(struct lane_timer *timer)
{
    struct shard *s = container_of(timer, struct shard_clearing, timer)->shard;
    bool waits;
    if (some_steps(s, &waits) || waits) /* in a simulation, other events come between two steps */
        steps_due(s, waits || s->config.scan_keys ? ENV_MS : 0);
    if (s->clearing->ended) {
        go_on(s);
        s->clearing->over(s);
    }
}

void clearing_init(struct shard *s, void (*over)(struct shard *s))
{
    assert(!s->clearing->tables && !s->clearing->ended);
    assert(!s->clearing->timer.slot);
    s->clearing->shard = s;
    s->clearing->over = over;
    s->clearing->timer.fire = turn_fire;
}

/* Tables of which rows are being removed. */
static unsigned tables_count(const struct shard *s)
{
    const struct shard_table *t;
    unsigned n = 0;
    for (size_t i = 0; (t = shard_table_next(s, &i));)
        n += t->clears;
    return n;
}

void clearing_close(struct shard *s)
{
    lane_timer_cancel(s->lane, &s->clearing->timer);
    assert_slow(tables_count(s) == s->clearing->tables);
}

void clearing_update(struct shard *s, struct shard_table *t)
{
    assert(t->table);
    assert(t->options.kind != PARAMO_TABLE_USER);
    t->remains = table_clear_due(t->table);
    if (t->remains)
        steps_due(s, 0);
}

/* ---- what begins ---- */

static void whole(struct shard *s, struct shard_table *t, bool few)
{
    assert(t->table && t->options.kind != PARAMO_TABLE_USER);
    table_clear(t->table);
    while (few && table_clear_step(t->table)) {
    }
    t->remains = !few;
    table_over(s, t);
    assert(!t->clears);
    if (!few || s->clearing->ended) /* requests that waited are handled later */
        steps_due(s, 0);
}

/* False: the partitions are being cleared already. */
static bool note(struct shard_table *t, const uint64_t *partitions)
{
    bool fresh = false;
    for (unsigned i = 0; i < PARTITION_WORDS; i++) {
        uint64_t these = partitions ? partitions[i] : UINT64_MAX;
        fresh |= these & ~t->clearing[i];
        t->clearing[i] |= these;
    }
    return fresh;
}

static void restart(struct shard *s, struct shard_table *t)
{
    assert(t->table);
    s->clearing->tables += !t->clears;
    t->clears = true;
    t->clear_at = 0;
    assert(s->clearing->tables > 0);
}

void clearing_fill(struct shard *s, struct shard_table *t, const uint64_t *partitions)
{
    (void)note(t, partitions);
    restart(s, t); /* also if these are being cleared: the sweep skipped rows that were not held */
    steps_due(s, 0);
}

bool clearing_fills_at_once(const struct shard *s, const struct shard_table *t, uint64_t rows, size_t *room)
{
    size_t most = dense_rows(s, t);
    uint64_t costs = rows <= most ? (rows * step_keys(s) + most - 1) / most : UINT64_MAX;
    if (costs > *room)
        return false;
    *room -= (size_t)costs;
    return true;
}

void clearing_begin_some(struct shard *s, struct shard_table *t, const uint64_t *partitions, size_t *room)
{
    if (partitions && is_empty(t))
        return;
    size_t costs = cost(s, t);
    bool now = costs <= *room, few = now && is_few(s, t), more = true;
    assert(costs > 0);
    *room -= now ? costs : 0;
    if (!partitions && table_clear_is_short(t->table)) {
        whole(s, t, few);
        return;
    }
    if (!note(t, partitions))
        return;
    restart(s, t);
    for (unsigned i = 0, most = few ? FEW_STEPS : now; i < most && more; i++)
        more = step(s, t);
    if (!more) {
        table_over(s, t);
        clearing_update(s, t);
    } else {
        table_changes_forget(
            t->table); /* a checkpoint that adds to the last would not know which rows go later */
        steps_due(s, 0);
    }
    if (s->clearing->ended)
        steps_due(s, 0);
}

void clearing_begin(struct shard *s, struct shard_table *t, const uint64_t *partitions)
{
    size_t room = clearing_room(s);
    clearing_begin_some(s, t, partitions, &room);
}
