#include "sim/row_checks.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "ring/partition_set.h"
#include "server/migration/target.h"
#include "server/replication/chain_impl.h"
#include "server/shard/clearing.h"
#include "server/shard/handling.h"
#include "server/shard/kept.h"
#include "server/shard/senders.h"
#include "server/shard/table_map.h"
#include "sim/capabilities.h"
#include "sim/ckpts_state.h"
#include "sim/clocks.h"
#include "sim/copies.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/sums.h"
#include "sim/world.h"

enum {
    UNKNOWN_ROWS_EVERY = 4, /* one check in 4 looks for rows that should have left */
    QUIET_EVERY = 16        /* one check in 16 is made although no event can have changed rows */
};

/* Does the shard answer DATA_LOST to requests for the key's row? */
static bool is_lost(const struct shard_table *st, const struct ledger_key *key)
{
    return st->lost && partition_set_has(st->lost_partitions, key->partition);
}

static void table_check(struct world *w, const struct machine *m, unsigned index, enum sim_table t,
                        const struct shard *shard, const struct shard_table *st)
{
    uint64_t vals[SIM_KEYS * SIM_WIDE];
    uint32_t lens[SIM_KEYS];
    uint8_t places[SIM_KEYS];
    unsigned count = 0;
    if (st->lacks)
        return;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[t].keys[i];
        if (k->shard != (int)index || losses_open(k, shard, st) || (t == SIM_CELLS && is_lost(st, k)))
            continue;
        /* The newest view gives a dead server's partition, without copies, to this shard, which has not seen
         * that view yet. Until then a dense table has no memory for the partition's rows. */
        if (st->options.kind == PARAMO_TABLE_DENSE && !partition_set_has(st->held, k->partition) &&
            view_ring(shard->view)->owner[k->partition] != (unsigned)shard->self)
            continue;
        places[count++] = (uint8_t)i;
    }
    if (count)
        copies_read(w, st, t, places, count, lens, vals);
    for (unsigned i = 0; i < count; i++) {
        const struct ledger_key *k = &w->ledger[t].keys[places[i]];
        ledger_memory_check(w, m->name, t, places[i], &vals[i * copies_width(t)], lens[i],
                            is_lost(st, k) ? 0 : k->must);
    }
}

/* Is a copy of the row lost? Only if the row of its owner is, or while a load is in progress, which does not end
 * everywhere at the same time. */
static bool copy_is_lost(const struct world *w, const struct shard_table *const tables[SIM_SHARDS],
                         unsigned s, const struct ledger_key *key)
{
    unsigned owner = w->chains.level[0].owner[key->partition];
    bool alone = owner >= w->ring_shards || !tables[owner] || w->loading || w->restoring;
    return is_lost(tables[s], key) && (alone || is_lost(tables[owner], key));
}

/* The rows of one table at all shards; each shard is asked once for all keys that it has. */
struct holdings {
    unsigned count[SIM_SHARDS];
    uint8_t places[SIM_SHARDS][SIM_KEYS]; /* in the ledger */
    uint32_t lens[SIM_SHARDS][SIM_KEYS];
    size_t at[SIM_SHARDS];                 /* its rows in vals, `row` values each */
    uint8_t holder[SIM_KEYS][RING_LEVELS]; /* 1 + shard; 0: there is no such copy */
    uint64_t vals[RING_LEVELS * SIM_KEYS * SIM_WIDE];
};

static void holdings_find(struct world *w, struct holdings *h, enum sim_table t, unsigned levels,
                          const struct shard *const shards[SIM_SHARDS],
                          const struct shard_table *const tables[SIM_SHARDS])
{
    memset(h->count, 0, sizeof h->count);
    memset(h->holder, 0, sizeof h->holder);
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *key = &w->ledger[t].keys[i];
        for (unsigned level = 0; level < levels; level++) {
            unsigned s = w->chains.level[level].owner[key->partition];
            if (s >= w->ring_shards || !tables[s])
                continue;
            bool plain = tables[s]->replicas && !key->lost_at; /* as most are */
            if (!plain && !copies_known(shards[s], tables[s], key))
                continue;
            h->holder[i][level] = (uint8_t)(s + 1);
            h->places[s][h->count[s]++] = (uint8_t)i;
        }
    }
    size_t at = 0;
    for (unsigned s = 0; s < w->ring_shards; s++) {
        h->at[s] = at;
        if (h->count[s])
            copies_read(w, tables[s], t, h->places[s], h->count[s], h->lens[s], &h->vals[at]);
        at += h->count[s] * copies_width(t);
    }
}

/* One copy of a row. */
struct copy {
    const uint64_t *vals;
    unsigned n, shard;
    uint64_t must;
};

static bool equal(const struct copy *a, const struct copy *b, unsigned row)
{
    return a->n == b->n && a->vals[0] == b->vals[0] &&
           (row == 1 || memcmp(a->vals, b->vals, row * sizeof *a->vals) == 0);
}

/* Are both copies of a row lost, where a load that failed has replaced some of the table's rows at some shards, and the
 * load after it was of a checkpoint without the table? They may differ: they are not read until a clear or another
 * load replaces both. */
static bool left_lost(const struct world *w, enum sim_table t, const struct ledger_key *key,
                      const struct shard_table *a, const struct shard_table *b)
{
    return ckpts_left_lost(w, t, w->moment) && is_lost(a, key) && is_lost(b, key);
}

/* Each copy of a table has all that was acknowledged, and copies with the same number are equal. */
static void copies_check(struct world *w, enum sim_table t, const struct machine *const machines[SIM_SHARDS])
{
    const struct shard_table *tables[SIM_SHARDS];
    const struct shard *shards[SIM_SHARDS];
    unsigned levels = judge_replicas(w, t) + 1, taken[SIM_SHARDS] = {0};
    struct holdings h;
    for (unsigned s = 0; s < w->ring_shards; s++) {
        shards[s] = machines[s] ? copies_shard(w, machines[s], s) : NULL;
        tables[s] = shards[s] ? copies_table(w, shards[s], t) : NULL;
    }
    holdings_find(w, &h, t, levels, shards, tables);
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        const struct ledger_key *key = &w->ledger[t].keys[i];
        unsigned seen = 0, partition = key->partition, row = sim_row_values(t, i);
        struct copy copies[RING_LEVELS];
        for (unsigned level = 0; level < levels; level++) {
            unsigned s = h.holder[i][level], others = 0;
            if (!s--)
                continue;
            struct copy *c = &copies[seen];
            *c = (struct copy){.vals = &h.vals[h.at[s] + taken[s] * copies_width(t)],
                               .n = h.lens[s][taken[s]],
                               .shard = s,
                               .must = copy_is_lost(w, tables, s, key) ? 0 : key->must};
            taken[s]++;
            bool same = false; /* as a copy that was looked at */
            for (unsigned k = 0; k < seen; k++) {
                bool is = equal(&copies[k], c, row);
                others |= (unsigned)!is << k;
                same = same || (is && copies[k].must == c->must && c->n <= row);
            }
            if (!same)
                ledger_memory_check(w, machines[s]->name, t, i, c->vals, c->n, c->must);
            for (unsigned k = 0; k < seen && others && !w->loading && !w->restoring; k++) {
                uint64_t last = shards[s]->chain->last[partition];
                if (others >> k & 1 && shards[copies[k].shard]->chain->last[partition] == last &&
                    !left_lost(w, t, key, tables[s], tables[copies[k].shard]))
                    judge_broken(w,
                                 "%s: table %d key %" PRIu64 " holds %" PRIx64 " after change %" PRIu64
                                 " of its partition, another copy %" PRIx64,
                                 machines[s]->name, (int)t, key->key, c->vals[0], last, copies[k].vals[0]);
            }
            seen++;
        }
    }
}

static void all_copies_check(struct world *w)
{
    const struct machine *machines[SIM_SHARDS] = {NULL};
    for (unsigned s = 0; s < w->ring_shards; s++)
        machines[s] = copies_machine(w, s);
    for (unsigned t = 0; t < SIM_TABLES; t++)
        if (t != SIM_USER)
            copies_check(w, (enum sim_table)t, machines);
}

/* Violations: slices that wait for a view beyond their time, and requests of handlers that are kept below the
 * floor. */
static void kept_answers_check(struct world *w, const struct machine *m, const struct shard *shard)
{
    if (shard->clearing->tables)
        judge_broken(w, "%s has not removed all rows that were cleared", m->name);
    for (const struct qnode *node = shard->kept->for_view.head; node; node = node->next)
        if (container_of(node, struct kept, node)->deadline + 6 * ENV_SEC < lane_now(shard->lane))
            judge_broken(w, "%s keeps a request that waits for a view beyond its time", m->name);
    for (const struct sender *s = senders_first(shard); s; s = s->next)
        for (unsigned i = 0; s->handled && i < DATA_WINDOW; i++)
            if (s->handled[i] && s->handled[i]->head.number < s->applied_window.own.floor)
                judge_broken(w, "%s keeps the answer to request %" PRIu64 " below its sender's floor",
                             m->name, s->handled[i]->head.number);
}

/* A shard has only rows of partitions in whose chains it is, or that it is about to get. */
static void unknown_rows_check(struct world *w, const struct machine *m, const struct shard *shard,
                               enum sim_table t, const struct shard_table *st)
{
    const struct chain *c = shard->chain;
    uint64_t keys[SIM_KEYS];
    uint32_t rows[SIM_KEYS], lens[SIM_KEYS];
    size_t count = 0, total;
    for (unsigned i = 0; c && st->options.kind != PARAMO_TABLE_DENSE && i < SIM_KEYS; i++) {
        const struct ledger_key *k = &w->ledger[t].keys[i];
        int level = c->level[k->partition];
        if (!chain_has(st, level) && !migration_target_has(c, k->partition) &&
            (level >= 0 || !c->origin_of[k->partition]) && !copies_cleared(st, k))
            keys[count++] = k->key;
    }
    bool var = st->options.kind == PARAMO_TABLE_VAR;
    if (!count || (!var && table_resolve(st->table, keys, count, rows, false)))
        return;
    if (var)
        table_var_lens(st->table, keys, count, lens, &total);
    for (size_t i = 0; i < count; i++)
        if (var ? lens[i] != 0 : rows[i] != TABLE_NO_ROW)
            judge_broken(w, "%s: table %d has kept key %" PRIu64 ", whose partition has left", m->name,
                         (int)t, keys[i]);
}

static void server_check(struct world *w, struct machine *m, bool last)
{
    const struct member_slot *member_slot = m->made->own;
    bool in_place = machine_joined(m) && !m->declared_dead;
    for (unsigned i = 0; i < member_slot->shards_count; i++) {
        const struct shard *shard = member_slot->shards[i].shard;
        if (last)
            kept_answers_check(w, m, shard);
        if (senders_count(shard) > (size_t)w->schedule->workers * w->schedule->customers * 8)
            judge_broken(w, "%s remembers %zu senders", m->name, senders_count(shard));
        if (!in_place || shard->self < 0)
            continue;
        for (unsigned t = 0; t < SIM_TABLES; t++) {
            const struct shard_table *st = copies_any_table(w, shard, (enum sim_table)t);
            if (st && (last || w->looks % UNKNOWN_ROWS_EVERY == 0))
                unknown_rows_check(w, m, shard, (enum sim_table)t, st);
            if (st && !w->schedule->replicas)
                table_check(w, m, (unsigned)shard->self, (enum sim_table)t, shard, st);
        }
    }
    for (unsigned i = 0; i < SIM_KEYS && m->place >= 0; i++) {
        const struct ledger_key *k = &w->ledger[SIM_USER].keys[i];
        unsigned owner =
            k->shard < 0 ? SIM_SHARDS : (unsigned)k->shard - (unsigned)m->place * w->schedule->shards;
        for (unsigned s = 0; s < w->schedule->shards && owner < w->schedule->shards; s++)
            ledger_check(w, m->name, SIM_USER, k, m->sums[s][i], in_place && s == owner ? k->must : 0);
    }
}

/* Would this shard refuse that clear? */
static bool refuses(const struct shard *shard, const struct late_clear *late)
{
    for (const struct sender *s = senders_first(shard); s; s = s->next)
        if (s->id.incarnation == late->incarnation && s->id.customer == late->customer)
            return s->fenced || s->applied_window.own.floor >= late->floor;
    const struct view_node *node = shard->view ? view_node(shard->view, late->node) : NULL;
    return node && (node->incarnation != late->incarnation || !node->alive);
}

static bool all_refuse(const struct world *w, const struct late_clear *late)
{
    for (uint32_t k = 1; k <= w->schedule->servers; k++) {
        const struct machine *m = &w->machines[k];
        for (unsigned i = 0; m->up && i < m->made->own->shards_count; i++)
            if (!refuses(m->made->own->shards[i].shard, late))
                return false;
    }
    return true;
}

/* Forgets failed clears that no server carries out any more. */
static void clears_check(const struct world *w, struct ledger_table *t)
{
    if (t->late_count > SIM_LATE)
        return; /* some are no longer known */
    unsigned left = 0;
    for (unsigned i = 0; i < t->late_count; i++)
        if (!all_refuse(w, &t->late[i]))
            t->late[left++] = t->late[i];
    t->late_count = left;
    t->tainted = left > 0;
}

void row_checks_all(struct world *w, bool last)
{
    for (unsigned t = 0; t < SIM_TABLES; t++)
        if (w->ledger[t].tainted)
            clears_check(w, &w->ledger[t]);
    if (!last && !w->stirred && w->looks++ % QUIET_EVERY)
        return; /* no node has received anything that changes rows */
    w->looks += w->stirred;
    w->stirred = false;
    capabilities_check(w);
    sums_combined(w);
    clocks_check(w);
    for (uint32_t k = 1; k < w->count; k++) {
        struct machine *m = &w->machines[k];
        if (m->up && m->role == PARAMO_ROLE_SERVER)
            server_check(w, m, last);
    }
    if (w->schedule->replicas && !judge_data_lost(w))
        all_copies_check(w);
    for (unsigned i = 0; i < SIM_QUARANTINE; i++)
        if (w->quarantine[i])
            ledger_poisoned(w, w->quarantine[i]);
}
