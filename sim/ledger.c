#include "sim/ledger.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "server/shard/shard_impl.h"
#include "sim/bounds.h"
#include "sim/cells.h"
#include "sim/ckpts_state.h"
#include "sim/copies.h"
#include "sim/judge.h"
#include "sim/losses.h"
#include "sim/overdue.h"
#include "sim/reals.h"
#include "sim/sums.h"
#include "sim/world.h"
#include "worker/client_impl.h"
#include "worker/numbers.h"

#define TWICE UINT64_C(0x2aaaaaaaaaaaaaaa) /* the upper bits of the digits */

#define REFUSED_VALUE (UINT64_C(1) << 62) /* above all digits: it must be nowhere */

static int by_key(const void *a, const void *b)
{
    uint64_t x = ((const struct ledger_key *)a)->key, y = ((const struct ledger_key *)b)->key;
    return (x > y) - (x < y);
}

static bool dense(unsigned table)
{
    return table == SIM_DENSE || table == SIM_ROWS;
}

static unsigned partition_of(unsigned table, uint64_t key)
{
    struct ring_placement placement = {.kind = dense(table) ? PARAMO_PLACE_DENSE : PARAMO_PLACE_MIXED,
                                       .rows = SIM_KEYS};
    return ring_partition(ring_position(&placement, key));
}

void ledger_init(struct world *w)
{
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            uint64_t key = dense(t) ? i : mix64(i + 1);
            w->ledger[t].keys[i] = (struct ledger_key){
                .key = key, .partition = partition_of(t, key), .shard = -1, .past = &w->ledger[t].past[i]};
        }
        qsort(w->ledger[t].keys, SIM_KEYS, sizeof w->ledger[t].keys[0], by_key);
    }
    for (unsigned i = 0; i < SIM_KEYS; i++)
        cell_init(&w->cells[i]);
    for (unsigned i = 0; i < SCHEDULE_NODES_MAX; i++)
        cell_init(&w->values[i]);
}

void ledger_owners(struct world *w, const struct view *view)
{
    uint64_t since = view_partitions_changed(view); /* no node need have seen that view */
    w->ring_shards = view->shards_count;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            int owner = view_ring(view)->owner[k->partition];
            if (t == SIM_USER && k->shard >= 0 && owner != k->shard)
                k->must = 0; /* the sums of a handler have no copies */
            if (owner == k->shard)
                continue;
            if (k->shard >= 0) {
                k->past->before[k->shard] = k->came;
                k->past->left[k->shard] = since;
            }
            k->shard = owner;
            k->came = since;
        }
    }
}

bool ledger_owned(const struct ledger_key *key, unsigned shard, uint64_t view)
{
    if (key->shard == (int)shard && view >= key->came)
        return true;
    return view >= key->past->before[shard] && view < key->past->left[shard];
}

unsigned ledger_index(const struct world *w, enum sim_table table, uint64_t key)
{
    const struct ledger_key *keys = w->ledger[table].keys;
    unsigned low = 0, high = SIM_KEYS;
    while (low + 1 < high) {
        unsigned middle = (low + high) / 2;
        *(keys[middle].key <= key ? &low : &high) = middle;
    }
    return keys[low].key == key ? low : SIM_KEYS;
}

static unsigned server_of(const struct world *w, const struct ledger_key *key)
{
    return (unsigned)key->shard / w->schedule->shards;
}

static bool pushes(enum op_kind kind)
{
    return kind == OP_PUSH || kind == OP_PUSHPULL || kind == OP_PUT;
}

/* Values of a cell differ by their writer and place. */
static uint64_t cell_value(const struct op *op, unsigned index)
{
    return op->kind == OP_DELETE ? 0 : (uint64_t)op->serial << 8 | index;
}

/* A handler's sums do not move: at the issue the client knew which process has the key now. */
static bool knows_handler(const struct op *op, const struct ledger_key *key)
{
    return op->table != SIM_USER || key->came <= op->issued_view;
}

/* Has a server died since then that has the key now, or has had it? */
static bool owner_died(const struct world *w, const struct ledger_key *k, const uint32_t deaths[SIM_SERVERS])
{
    bool died = false;
    for (unsigned p = 0; p < SIM_SERVERS && !died; p++) {
        bool had = k->shard < 0 || server_of(w, k) == p;
        for (unsigned s = 0; s < w->schedule->shards; s++)
            had = had || k->past->left[p * w->schedule->shards + s];
        died = had && deaths[p] != w->deaths[p];
    }
    return died;
}

bool ledger_stays(const struct world *w, enum sim_table table, unsigned index, uint64_t from,
                  const uint32_t deaths[SIM_SERVERS])
{
    const struct ledger_key *k = &w->ledger[table].keys[index];
    bool died = owner_died(w, k, deaths);
    if (table == SIM_USER && died)
        return false; /* its process may have died, and another one of the same place may own the key again */
    if (table != SIM_USER && (w->loading || from <= w->loaded_at))
        return false; /* the rows come from a checkpoint */
    /* a shard that is cut off, and dead to all others, acknowledges until its lease ends */
    if (!judge_replicas(w, table) && w->schedule->replicas)
        return k->died_at < from && k->past->ghost_at < from;
    if (w->schedule->replicas)
        return !judge_data_lost(w);
    /* The rows of a dead server are nowhere, although others may have its partitions by now. The same holds
     * for what a server does that is dead to all others and has been replaced. */
    return !died && k->past->ghost_at < from;
}

/* Is all of this key that was acknowledged since the request's issue present, wherever the key is now? */
static bool kept(const struct world *w, const struct op *op, unsigned index)
{
    return knows_handler(op, &w->ledger[op->table].keys[index]) &&
           ledger_stays(w, op->table, index, op->from, op->deaths);
}

/* The digits that a read which begins now must find, as far as the state of the row has them (struct ledger_state). */
static uint64_t must_now(const struct world *w, enum sim_table table, unsigned i)
{
    const struct ledger_key *k = &w->ledger[table].keys[i];
    return w->loading && bounds_hold(table) ? k->past->unloaded_acked : k->must;
}

/* False: the key's row cannot be read. */
static bool count_key(struct world *w, struct op *op, unsigned i)
{
    struct ledger_key *k = &w->ledger[op->table].keys[i];
    bool cells = op->table == SIM_CELLS, writes = pushes(op->kind) && !op->refused;
    if (cells && (writes || op->kind == OP_DELETE) && !cell_room(w, &w->cells[i]))
        return false;
    if (!cells && writes && k->used == (reals_has(op->table) ? SIM_REAL_DIGITS : SIM_DIGITS))
        return false;
    unsigned at = op->n++, width = sim_row_values(op->table, i), row = op->columns ? op->columns : width;
    op->index[at] = (uint16_t)i;
    op->keys[at] = k->key;
    op->lens[at] = row;
    op->must[at] = must_now(w, op->table, i);
    op->digit[at] = 0;
    if (cells && (writes || op->kind == OP_DELETE)) {
        op->digit[at] = cell_value(op, i);
        cell_write(&w->cells[i], op->digit[at], op->from);
    } else if (writes) {
        op->digit[at] = UINT64_C(1) << 2 * k->used++;
        k->sent |= op->digit[at];
        for (unsigned c = 0; c < width && op->columns; c++)
            if (c < op->column || c >= op->column + op->columns)
                w->ledger[op->table].outside[i][c] |= op->digit[at];
    }
    for (unsigned c = 0; c < row; c++)
        op->vals[op->vals_n++] = op->refused                   ? REFUSED_VALUE
                                 : reals_has(op->table)        ? reals_value(op->digit[at], c)
                                 : cells && c && op->digit[at] ? ~op->digit[at]
                                                               : op->digit[at];
    return true;
}

static bool issue_clear(struct world *w, struct op *op)
{
    struct ledger_table *t = &w->ledger[op->table];
    for (unsigned i = 0; i < SIM_KEYS && op->table == SIM_CELLS; i++)
        if (!cell_room(w, &w->cells[i]))
            return false;
    t->clears++;
    t->clears_open++;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        t->keys[i].must = t->past[i].unloaded.must = t->past[i].unlost.must = 0;
        if (op->table == SIM_CELLS)
            cell_write(&w->cells[i], 0, op->from);
    }
    return true;
}

bool ledger_issue(struct world *w, struct op *op, struct dice *dice)
{
    const struct ledger_table *t = &w->ledger[op->table];
    op->from = ++w->moment;
    op->clears = t->clears;
    op->certain = !t->tainted && !t->clears_open;
    memcpy(op->deaths, w->deaths, sizeof op->deaths);
    op->n = op->vals_n = 0;
    if (op->kind == OP_CLEAR)
        return issue_clear(w, op);
    for (unsigned i = 0; i < SIM_KEYS && op->kind >= OP_STAT; i++)
        op->all_must[i] = must_now(w, op->table, i);
    if (op->kind >= OP_CLEAR && op->kind != OP_TRANSFORM)
        return true;
    uint64_t some = op->only ? op->only : op->same;
    if (some) {
        for (unsigned i = 0; i < SIM_KEYS && op->n < SIM_OP_KEYS; i++)
            if (some >> i & 1)
                (void)count_key(w, op, i);
        return op->n > 0;
    }
    unsigned want = 1 + (unsigned)dice_draw(dice, SIM_OP_KEYS), gap = 2 * SIM_KEYS / want;
    if (op->range) {
        for (unsigned i = (unsigned)dice_draw(dice, SIM_KEYS); i < SIM_KEYS && op->n < want; i++)
            if (!count_key(w, op, i))
                break;
        return op->n > 0;
    }
    for (unsigned i = (unsigned)dice_draw(dice, gap / 2); i < SIM_KEYS && op->n < want;
         i += 1 + (unsigned)dice_draw(dice, gap))
        (void)count_key(w, op, i);
    return op->n > 0;
}

static void value_check(struct world *w, const char *where, enum sim_table table,
                        const struct ledger_key *key, uint64_t value, uint64_t sent, uint64_t must)
{
    if (value & ~sent & ~TWICE)
        judge_broken(w,
                     "%s: table %d key %" PRIu64 " holds %" PRIx64 ", but only %" PRIx64 " was ever pushed",
                     where, (int)table, key->key, value, sent);
    else if (value & TWICE)
        judge_broken(w, "%s: table %d key %" PRIu64 " holds %" PRIx64 ": a push was applied twice", where,
                     (int)table, key->key, value);
    else if (must & ~value)
        judge_broken(w, "%s: table %d key %" PRIu64 " holds %" PRIx64 ", but %" PRIx64 " was acknowledged",
                     where, (int)table, key->key, value, must);
}

void ledger_check(struct world *w, const char *where, enum sim_table table, const struct ledger_key *key,
                  uint64_t value, uint64_t must)
{
    value_check(w, where, table, key, value, key->sent, must);
}

void ledger_ghost(struct machine *server)
{
    struct world *w = server->world;
    if (server->ghost_until == w->moment)
        return;
    server->ghost_until = w->moment;
    for (unsigned i = 0; i < server->made->own->shards_count; i++) {
        const struct shard *shard = server->made->own->shards[i].shard;
        if (!shard || !shard->view || shard->self < 0)
            continue;
        for (unsigned t = 0; t < SIM_TABLES; t++)
            for (unsigned k = 0; k < SIM_KEYS; k++) {
                struct ledger_key *key = &w->ledger[t].keys[k];
                if (view_ring(shard->view)->owner[key->partition] != (unsigned)shard->self)
                    continue;
                key->past->ghost_at = w->moment;
                if (w->loading || server->dead_at <= w->loaded_at)
                    key->past->ghost_stale_at = w->moment;
                if (server->dead_at <= key->past->lost_before)
                    key->past->ghost_older_at = w->moment;
            }
    }
}

/* May a read of the key that began then come from a server that was declared dead before the last load, and does not
 * know it? Without copies there is no lease: such a server also answers clients that do not know of its death, from
 * its rows before that load, and without what its successor has acknowledged since. */
static bool of_the_dead(const struct world *w, enum sim_table table, const struct ledger_key *k,
                        uint64_t from)
{
    return !judge_replicas(w, table) && k->past->ghost_stale_at >= from;
}

bool ledger_of_before_death(const struct world *w, enum sim_table table, const struct ledger_key *k,
                            uint64_t from)
{
    return w->loaded_at && of_the_dead(w, table, k, from);
}

/* ---- the states that a read may find a row in ---- */

/* Was a load under way when the read began, or has one begun since? */
static bool while_loading(const struct world *w, enum sim_table table, uint64_t from)
{
    return bounds_hold(table) && (w->loading || from <= w->loaded_at);
}

/* May the row be in a state that the model has forgotten? Yes, if two events that change rows fall into one read. The
 * same holds for rows of a server that was declared dead before a load, or, without copies, before the last loss but
 * one. */
static bool is_unknown(const struct world *w, enum sim_table table, const struct ledger_key *k, uint64_t from)
{
    bool lost = losses_between(k, from), load = while_loading(w, table, from);
    bool older = !judge_replicas(w, table) && k->past->ghost_older_at >= from;
    return (lost && load) || (load && from <= w->load_begun.before) ||
           (lost && (older || from <= k->past->lost_before)) || ledger_of_before_death(w, table, k, from);
}

/* What is read of a row. */
struct reading {
    const char *where;
    enum sim_table table;
    unsigned index, first, n; /* n values from column `first` on; 0: there is no row */
    const uint64_t *vals;
    uint64_t must;  /* digits that were acknowledged when it began: it has those that the row's state has */
    uint64_t own;   /* digits that it has in each state */
    uint64_t early; /* digits that it has in none */
    uint64_t from;  /* the moment when it began */
    double error;
    bool memory; /* a look into a server's memory: a load may have removed the row, and not brought it back */
};

/* May the row be as in that checkpoint? In memory it may also be as in a base of an incremental one, which comes
 * first. */
static bool may_show(const struct reading *r, const struct ckpt_seen *s)
{
    return s->until >= r->from || r->memory;
}

static bool fits(struct world *w, const struct reading *r, struct ledger_state state)
{
    const struct ledger_key *k = &w->ledger[r->table].keys[r->index];
    const uint64_t *outside = &w->ledger[r->table].outside[r->index][r->first], *vals = r->vals;
    uint64_t digits[2], wrong = 0, gone = state.gone | r->early, must = (state.must & r->must) | r->own;
    if (!r->n)
        return !must;
    if (reals_has(r->table)) {
        if (r->n != 2 || !reals_digits(w, NULL, k, vals, r->n, must, gone, r->error, digits))
            return false;
        vals = digits;
    }
    for (unsigned c = 0; c < r->n && r->first + c < SIM_WIDE; c++)
        wrong |= (vals[c] & (~(k->sent & ~outside[c]) | gone)) | (must & ~outside[c] & ~vals[c]);
    return !wrong;
}

/* Is it a state that the row had, or may have got, while the read was under way? */
static bool fits_another(struct world *w, const struct reading *r)
{
    const struct ledger_key *k = &w->ledger[r->table].keys[r->index];
    const struct ledger_past *past = k->past;
    const uint64_t all = r->memory ? 0 : UINT64_MAX;
    struct ledger_state state;
    if (is_unknown(w, r->table, k, r->from) && fits(w, r, (struct ledger_state){0}))
        return true;
    /* a dead owner that does not know it may have had the row before what was acknowledged last */
    uint64_t unlost = r->from <= k->lost_at ? past->unlost.must & all : 0;
    if (losses_between(k, r->from) && fits(w, r, (struct ledger_state){unlost, past->unlost.gone}))
        return true;
    if (!while_loading(w, r->table, r->from))
        return false;
    bool ok = fits(w, r, (struct ledger_state){past->unloaded.must & all, past->unloaded.gone});
    for (const struct ckpt_seen *s = w->ckpts ? w->ckpts->seen : NULL; s && !ok; s = s->next) {
        bool loads = may_show(r, s) && bounds_loads(w, s->bounds, r->table, r->index, &state);
        state.must &= all;
        ok = loads && fits(w, r, state);
    }
    return ok;
}

uint64_t ledger_least(const struct world *w, enum sim_table table, unsigned index, uint64_t must,
                      uint64_t from)
{
    const struct ledger_key *k = &w->ledger[table].keys[index];
    const struct ledger_past *past = k->past;
    struct ledger_state state;
    if (is_unknown(w, table, k, from))
        return 0;
    must &= w->loading && bounds_hold(table) ? UINT64_MAX : k->must;
    if (losses_between(k, from))
        must &= from <= k->lost_at ? past->unlost.must : 0;
    if (!while_loading(w, table, from))
        return must;
    for (const struct ckpt_seen *s = w->ckpts ? w->ckpts->seen : NULL; s; s = s->next)
        if (s->until >= from && bounds_loads(w, s->bounds, table, index, &state))
            must &= state.must;
    return must & past->unloaded.must;
}

static void row_broken(struct world *w, const struct reading *r, struct ledger_state state)
{
    const struct ledger_key *k = &w->ledger[r->table].keys[r->index];
    uint64_t must = (state.must & r->must) | r->own, gone = state.gone | r->early, digits[2];
    const uint64_t *outside = &w->ledger[r->table].outside[r->index][r->first], *vals = r->vals;
    if (reals_has(r->table) && r->n) {
        if (r->n != 2 || !reals_digits(w, r->where, k, vals, r->n, must, gone, r->error, digits))
            return;
        vals = digits;
    }
    if (!r->n)
        ledger_check(w, r->where, r->table, k, 0, must);
    for (unsigned c = 0; c < r->n && r->first + c < SIM_WIDE; c++) {
        value_check(w, r->where, r->table, k, vals[c], k->sent & ~outside[c], must & ~outside[c]);
        if (vals[c] & gone)
            judge_broken(w,
                         "%s: table %d key %" PRIu64 " holds %" PRIx64
                         ", and a checkpoint was loaded that has nothing of %" PRIx64,
                         r->where, (int)r->table, k->key, vals[c], gone);
    }
}

static void row_check(struct world *w, const struct reading *r)
{
    const struct ledger_key *k = &w->ledger[r->table].keys[r->index];
    bool loading = w->loading && bounds_hold(r->table);
    struct ledger_state now = {k->must, k->gone};
    if (loading) /* what was acknowledged is in the row as long as it is not loaded */
        now.must = r->memory ? 0 : k->past->unloaded.must;
    if (r->table == SIM_VAR && r->n != 0 && r->n != sim_row_values(r->table, r->index))
        judge_broken(w, "%s: a row of %u values, all of this key have %u", r->where, r->n,
                     sim_row_values(r->table, r->index));
    bool ok = fits(w, r, now) || fits_another(w, r), cut = r->table == SIM_ROWS && r->n;
    if (!ok && !cut)
        row_broken(w, r, now);
    /* Slices of a row that is longer than a chunk are read at different times. */
    for (unsigned c = 0; !ok && cut && c < r->n; c++) {
        struct reading value = *r;
        value.first += c;
        value.vals += c;
        value.n = 1;
        if (!fits(w, &value, now) && !fits_another(w, &value))
            row_broken(w, &value, now);
    }
}

/* Has a push of this key written the value? 0: no push has. A server that is declared dead may have either. */
static bool was_written(const struct world *w, unsigned index, uint64_t value)
{
    return !value || ((value & 0xff) == index && value >> 8 <= w->serial);
}

static void cell_check(struct world *w, const struct reading *r)
{
    static const uint64_t none[2];
    const struct ledger_key *k = &w->ledger[SIM_CELLS].keys[r->index];
    uint64_t value = judge_row(w, r->where, r->n ? r->vals : none);
    bool load = while_loading(w, SIM_CELLS, r->from);
    bool ok = cell_may_be(&w->cells[r->index], value, r->from) || (load && r->memory && !value);
    for (const struct ckpt_seen *s = load && w->ckpts ? w->ckpts->seen : NULL; s && !ok; s = s->next)
        ok = may_show(r, s) && bounds_has_cell(s->bounds, r->index, value);
    bool unknown = is_unknown(w, SIM_CELLS, k, r->from) || losses_between(k, r->from);
    if (!ok && !(unknown && was_written(w, r->index, value)))
        judge_broken(
            w, "%s: cell %u holds %" PRIx64 ", which no push wrote, or which was overwritten before that",
            r->where, r->index, value);
}

static void check(struct world *w, const struct reading *r)
{
    if (w->restoring)
        return;
    if (r->table == SIM_CELLS)
        cell_check(w, r);
    else
        row_check(w, r);
}

void ledger_columns_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                          unsigned first, const uint64_t *vals, unsigned n, uint64_t must, uint64_t from)
{
    check(w, &(struct reading){.where = where,
                               .table = table,
                               .index = index,
                               .first = first,
                               .n = n,
                               .vals = vals,
                               .must = must,
                               .from = from});
}

void ledger_row_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                      const uint64_t *vals, unsigned n, uint64_t must, uint64_t from)
{
    ledger_columns_check(w, where, table, index, 0, vals, n, must, from);
}

static void memory_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                         const uint64_t *vals, unsigned n, uint64_t must, uint64_t own)
{
    check(w, &(struct reading){.where = where,
                               .table = table,
                               .index = index,
                               .n = n,
                               .vals = vals,
                               .must = must,
                               .own = own,
                               .from = w->moment,
                               .memory = true});
}

void ledger_file_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                       const uint64_t *vals, unsigned n, uint64_t must, uint64_t from)
{
    check(
        w,
        &(struct reading){
            .where = where, .table = table, .index = index, .n = n, .vals = vals, .own = must, .from = from});
}

void ledger_memory_check(struct world *w, const char *where, enum sim_table table, unsigned index,
                         const uint64_t *vals, unsigned n, uint64_t must)
{
    memory_check(w, where, table, index, vals, n, must, 0);
}

/* What is acknowledged is applied at that moment: by the process that has held the place since the issue,
 * and, with copies, by all that have one. */
static void applied(struct world *w, const struct op *op)
{
    uint64_t vals[SIM_WIDE];
    unsigned n;
    for (unsigned i = 0; i < op->n; i++) {
        if (losses_between(&w->ledger[op->table].keys[op->index[i]], op->from))
            continue; /* perhaps it was, by servers that are dead */
        for (unsigned level = 0; level <= judge_replicas(w, op->table) && kept(w, op, op->index[i]); level++)
            if (copies_row(w, op->table, op->index[i], level, vals, &n))
                memory_check(w, level ? "an acknowledged push's copy" : "an acknowledged push", op->table,
                             op->index[i], vals, n, 0, op->digit[i]);
    }
}

static void acknowledged(struct world *w, const struct op *op)
{
    struct ledger_table *t = &w->ledger[op->table];
    for (unsigned i = 0; i < op->n; i++)
        t->keys[op->index[i]].acked |= op->digit[i];
    if (!op->certain || t->tainted || t->clears_open || t->clears != op->clears)
        return; /* a clear may have followed it */
    applied(w, op);
    for (unsigned i = 0; i < op->n; i++) {
        struct ledger_key *k = &t->keys[op->index[i]];
        /* The sums of a handler, and rows without a copy, die with their process. */
        bool alone = op->table == SIM_USER || !judge_replicas(w, op->table);
        if ((!alone || kept(w, op, op->index[i])) && !losses_between(k, op->from))
            k->must |= op->digit[i];
    }
}

static void pulled(struct world *w, const struct op *op)
{
    const struct ledger_table *t = &w->ledger[op->table];
    bool own = op->kind == OP_PUSHPULL && op->certain && !t->tainted && t->clears == op->clears;
    double error = reals_has(op->table) ? reals_pulled(op) : 0;
    unsigned at = 0;
    for (unsigned i = 0; i < op->n; i++) {
        const struct ledger_key *k = &t->keys[op->index[i]];
        struct reading r = {.where = "a pull",
                            .table = op->table,
                            .index = op->index[i],
                            .first = op->column,
                            .vals = op->vals + at,
                            .must = knows_handler(op, k) ? op->must[i] : 0,
                            .from = op->from,
                            .error = error};
        sums_seen(op, i, &r.must, &r.early);
        overdue_read(k, &r.from, &r.must);
        unsigned row = op->columns ? op->columns : sim_row_values(op->table, op->index[i]);
        if (own && (op->table != SIM_USER || kept(w, op, op->index[i])))
            r.own = op->digit[i];
        if (op->table == SIM_VAR)
            row = op->lens[i];
        if (at + row > op->vals_n) {
            judge_broken(w, "a row of %u values was pulled, all of this key have %u", row,
                         sim_row_values(op->table, op->index[i]));
            return;
        }
        r.n = row;
        check(w, &r);
        at += row;
    }
}

/* Without copies a write may have been done by a server that is gone, or will be: then it may have taken effect or
 * not. */
static bool cell_stays(const struct world *w, const struct op *op, unsigned index)
{
    return (w->schedule->replicas || kept(w, op, index)) &&
           !losses_between(&w->ledger[SIM_CELLS].keys[index], op->from);
}

static void cells_done(struct world *w, const struct op *op)
{
    if (op->kind == OP_CLEAR) {
        for (unsigned i = 0; i < SIM_KEYS; i++)
            if (cell_stays(w, op, i))
                cell_written(&w->cells[i], 0, op->from, w->moment);
    } else if (pushes(op->kind) || op->kind == OP_DELETE) {
        for (unsigned i = 0; i < op->n; i++)
            if (cell_stays(w, op, op->index[i]))
                cell_written(&w->cells[op->index[i]], op->digit[i], op->from, w->moment);
        applied(w, op);
    }
}

/* Counts the rows that a table can have: all of a dense table, otherwise those of used keys. Also those that
 * must exist at least. Each row counts once; the count restarts where partitions change owners. */
static void counted(struct world *w, const struct op *op)
{
    uint64_t rows = op->stats.rows, least = dense(op->table) ? SIM_KEYS : 0;
    for (unsigned i = 0; i < SIM_KEYS && !dense(op->table); i++) {
        uint64_t must = op->all_must[i], from = op->from;
        overdue_read(&w->ledger[op->table].keys[i], &from, &must);
        least += ledger_least(w, op->table, i, must, from) != 0;
    }
    if (rows < least || rows > SIM_KEYS)
        judge_broken(w, "%s: table %d has %" PRIu64 " rows, between %" PRIu64 " and %d are there",
                     op->machine->name, (int)op->table, rows, least, SIM_KEYS);
}

/* A clear may still be in flight, and arrive when the customer no longer waits for it, until the servers know
 * that. */
static void clear_failed(struct ledger_table *t, const struct op *op)
{
    const struct machine *m = op->machine;
    t->tainted = true;
    if (t->late_count < SIM_LATE)
        t->late[t->late_count] =
            (struct late_clear){.node = member_id(m->made->own->member),
                                .customer = op->customer,
                                .incarnation = m->made->own->incarnation,
                                .floor = numbers_next(m->customers[op->customer].worker->client)};
    t->late_count++;
}

void ledger_done(struct world *w, struct op *op, paramo_err status)
{
    struct ledger_table *t = &w->ledger[op->table];
    w->moment++;
    if (op->kind == OP_CLEAR) {
        t->clears_open--;
        if (status) {
            clear_failed(t, op);
        } else if (op->from > t->mended_from && w->ghost_at < op->from) {
            t->mended_from = op->from;
            t->mended_at = w->moment;
        }
    }
    if (status)
        return;
    if (op->kind == OP_STAT)
        counted(w, op);
    if (op->table == SIM_CELLS)
        cells_done(w, op);
    else if (op->kind == OP_PUSH || op->kind == OP_PUSHPULL || op->kind == OP_TRANSFORM)
        acknowledged(w, op);
    if (op->kind == OP_PULL || op->kind == OP_PUSHPULL)
        pulled(w, op);
}

void ledger_server_died(struct world *w, unsigned place)
{
    w->deaths[place]++;
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        struct ledger_key *k = &w->ledger[SIM_USER].keys[i];
        if (k->shard >= 0 && server_of(w, k) == place)
            k->must = 0;
        k = &w->ledger[SIM_CELLS].keys[i];
        if (k->shard >= 0 && server_of(w, k) == place && !w->schedule->replicas && !w->schedule->restores)
            cell_lost(w, &w->cells[i]);
    }
}

/* ---- whose arrays they are ---- */

#define POISON UINT64_C(0x5050505050505050)

void ledger_poison(struct op *op)
{
    for (unsigned i = 0; i < op->n; i++) { /* ascending, so that a key that is read out of order shows */
        op->keys[i] = POISON + i;
        op->lens[i] = 1;
    }
    for (unsigned i = 0; i < op->vals_n; i++)
        op->vals[i] = POISON + i;
    op->reduction.rows = POISON;
}

void ledger_poisoned(struct world *w, const struct op *op)
{
    uint64_t other =
        op->reduction.rows ^ POISON; /* bits that differ; without a branch, so that it becomes vector code */
    for (unsigned i = 0; i < op->n; i++)
        other |= (op->keys[i] ^ (POISON + i)) | (op->lens[i] ^ 1);
    for (unsigned i = 0; i < op->vals_n; i++)
        other |= op->vals[i] ^ (POISON + i);
    if (other)
        judge_broken(w, "the arrays of request %" PRIu64 " were written to after its end", op->ts);
}
