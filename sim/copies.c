#include "sim/copies.h"

#include <string.h>

#include "ring/partition_set.h"
#include "server/replication/chain_impl.h"
#include "server/shard/table_map.h"
#include "sim/losses.h"
#include "sim/world.h"

bool copies_cleared(const struct shard_table *st, const struct ledger_key *key)
{
    return partition_set_has(st->clearing, key->partition);
}

/* Reads rows of a table of variable lengths; vals has room for SIM_WIDE values of each. */
static void var_rows_read(const struct shard_table *st, const uint64_t *keys, unsigned count, uint32_t *lens,
                          uint64_t *vals)
{
    uint64_t packed[SIM_KEYS * SIM_WIDE], *next = packed;
    size_t total;
    table_var_lens(st->table, keys, count, lens, &total);
    bool fits = total <= SIM_KEYS * SIM_WIDE;
    if (fits)
        table_var_pull(st->table, keys, count, packed);
    for (unsigned i = 0; i < count; i++) {
        uint64_t *row = &vals[i * SIM_WIDE];
        unsigned len = lens[i] <= SIM_WIDE ? lens[i] : 0;
        if (!fits && len)
            table_var_pull(st->table, &keys[i], 1, row);
        else
            memcpy(row, next, len * sizeof *row);
        memset(row + len, 0, (SIM_WIDE - len) * sizeof *row);
        next += lens[i];
    }
}

void copies_read(const struct world *w, const struct shard_table *st, enum sim_table t, const uint8_t *places,
                 unsigned count, uint32_t *lens, uint64_t *vals)
{
    const struct ledger_key *ledger = w->ledger[t].keys;
    const unsigned row = copies_width(t);
    uint64_t keys[SIM_KEYS];
    if (!count)
        return;
    for (unsigned i = 0; i < count; i++) {
        keys[i] = ledger[places[i]].key;
        lens[i] = row;
    }
    if (t == SIM_VAR)
        var_rows_read(st, keys, count, lens, vals);
    else
        sim_must(table_pull(st->table, keys, count, vals, false));
    for (unsigned i = 0; i < count; i++)
        if (copies_cleared(st, &ledger[places[i]])) {
            lens[i] = st->row_values;
            memset(&vals[i * row], 0, row * sizeof *vals);
        }
}

const struct machine *copies_machine(const struct world *w, unsigned shard)
{
    unsigned place = shard / w->schedule->shards;
    for (uint32_t k = 1; k <= w->schedule->servers && shard < w->ring_shards; k++) {
        const struct machine *m = &w->machines[k];
        if (m->up && m->place == (int)place && m->made->own->incarnation == w->holder[place])
            return m;
    }
    return NULL;
}

uint64_t copies_shard_view(const struct world *w, unsigned shard)
{
    const struct machine *m = copies_machine(w, shard);
    return m ? m->shard_view_seen[shard % w->schedule->shards] : 0;
}

const struct shard *copies_shard(const struct world *w, const struct machine *m, unsigned shard)
{
    return m->made->own->shards[shard % w->schedule->shards].shard;
}

/* view_table_named(): the tables of all views are in the order in which they were made. */
static const struct view_table *named(struct world *w, const struct view *view, enum sim_table table)
{
    uint32_t *place = &w->table_at[table];
    const char *name = sim_table_names[table];
    if (!view || (*place < view->tables_count && strcmp(view->tables[*place].name, name) == 0))
        return view ? &view->tables[*place] : NULL;
    const struct view_table *found = view_table_named(view, name);
    *place = found ? (uint32_t)(found - view->tables) : *place;
    return found;
}

const struct shard_table *copies_any_table(struct world *w, const struct shard *shard, enum sim_table table)
{
    const struct view_table *vt = named(w, shard->view, table);
    const struct shard_table *st = vt ? shard_table_get(shard, vt->id) : NULL;
    return st && st->table ? st : NULL;
}

const struct shard_table *copies_table(struct world *w, const struct shard *shard, enum sim_table table)
{
    const struct shard_table *st = copies_any_table(w, shard, table);
    return st && !st->lacks ? st : NULL; /* lacks: it answers no request to that table */
}

bool copies_known(const struct shard *shard, const struct shard_table *st, const struct ledger_key *key)
{
    return (st->replicas || shard->chain->level[key->partition] == 0) && !losses_open(key, shard, st);
}

bool copies_row(struct world *w, enum sim_table table, unsigned i, unsigned level, uint64_t *vals,
                unsigned *n)
{
    const struct ledger_key *key = &w->ledger[table].keys[i];
    unsigned shard = (unsigned)key->shard;
    if (level)
        shard = w->chains.level[level].owner[key->partition];
    const struct machine *m = copies_machine(w, shard);
    if (!m || (table == SIM_USER && level))
        return false;
    if (table == SIM_USER) {
        *vals = m->sums[shard % w->schedule->shards][i];
        *n = 1;
        return true;
    }
    const struct shard_table *st = copies_table(w, copies_shard(w, m, shard), table);
    if (!st || !copies_known(copies_shard(w, m, shard), st, key))
        return false;
    uint32_t len;
    copies_read(w, st, table, &(uint8_t){(uint8_t)i}, 1, &len, vals);
    *n = len;
    return true;
}
