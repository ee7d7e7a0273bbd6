/*
 * What a checkpoint must hold and what it may hold: between all that was acknowledged when it began and all
 * that was issued when its manifest came. Also the effect on the model when a checkpoint is loaded.
 */
#include "sim/bounds.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cells.h"
#include "sim/ckpts_state.h"
#include "sim/world.h"

struct bounds {
    uint64_t from; /* the moment when it began */
    bool has[SIM_TABLES];
    bool loading; /* rows could hold anything then */
    uint32_t clears[SIM_TABLES];
    uint64_t must[SIM_TABLES][SIM_KEYS], may[SIM_TABLES][SIM_KEYS], gone[SIM_TABLES][SIM_KEYS];
    struct cell_set cells[SIM_KEYS], values[SCHEDULE_NODES_MAX];
    uint64_t sums_acked, sums_sent;
    struct deal deals[SIM_STREAMS][SIM_UNITS];
};

bool bounds_hold(enum sim_table table)
{
    return table != SIM_USER; /* the sums of handlers are not in it */
}

struct bounds *bounds_begin(struct world *w)
{
    struct bounds *b = calloc(1, sizeof *b);
    if (!b)
        abort();
    b->from = ++w->moment;
    b->loading = w->loading;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        const struct ledger_table *l = &w->ledger[t];
        b->clears[t] = l->clears;
        for (unsigned i = 0; i < SIM_KEYS; i++)
            b->gone[t][i] = l->keys[i].gone;
        for (unsigned i = 0; i < SIM_KEYS && bounds_hold((enum sim_table)t) && !l->clears_open && !l->tainted;
             i++)
            b->must[t][i] = l->keys[i].must;
    }
    b->sums_acked = w->sums_acked;
    memcpy(b->deals, w->deals, sizeof b->deals);
    return b;
}

uint64_t bounds_from(const struct bounds *b)
{
    return b->from;
}

bool bounds_has_cell(const struct bounds *b, unsigned index, uint64_t value)
{
    const struct cell_set *set = &b->cells[index];
    bool has = set->any;
    for (unsigned i = 0; i < set->n && !has; i++)
        has = set->value[i] == value;
    return has && b->has[SIM_CELLS];
}

bool bounds_loads(const struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                  struct ledger_state *state)
{
    const struct ledger_table *l = &w->ledger[table];
    const struct ledger_past *past = l->keys[index].past;
    bool sure = w->load_begun.sure[table] && l->clears == w->load_begun.clears[table] && !l->tainted;
    state->must = sure ? b->must[table][index] : 0;
    state->gone = (past->unloaded.gone | past->unloaded_acked) & ~b->may[table][index];
    return b->has[table];
}

uint64_t bounds_may_load(const struct world *w, enum sim_table table, unsigned index, uint64_t from)
{
    uint64_t may = 0;
    for (const struct ckpt_seen *s = w->ckpts ? w->ckpts->seen : NULL; s; s = s->next)
        may |= s->until >= from ? s->bounds->may[table][index] : 0;
    return may;
}

/* The digits that the key's row had in none of its states during a save. */
static uint64_t gone_during(const struct world *w, const struct bounds *b, unsigned t, unsigned i)
{
    const struct ledger_key *k = &w->ledger[t].keys[i];
    bool loaded = b->loading || w->loading || w->loaded_at > b->from;
    uint64_t gone = b->gone[t][i] & k->gone;
    struct ledger_state state;
    if (k->lost_at > b->from || (loaded && w->load_begun.before > b->from))
        return 0;
    for (const struct ckpt_seen *s = loaded ? w->ckpts->seen : NULL; s; s = s->next)
        if (s->until >= b->from && bounds_loads(w, s->bounds, (enum sim_table)t, i, &state))
            gone &= state.gone;
    return loaded ? gone & k->past->unloaded.gone : gone;
}

static void set_add(struct cell_set *set, const struct cell_set *more)
{
    set->any = set->any || more->any;
    for (unsigned i = 0; i < more->n; i++) {
        unsigned at = 0;
        while (at < set->n && set->value[at] != more->value[i])
            at++;
        if (at == SIM_CELL_VALUES)
            set->any = true;
        else if (at == set->n)
            set->value[set->n++] = more->value[i];
    }
}

/* What a cell may have held during a save. */
static void cell_during(const struct world *w, const struct bounds *b, unsigned i, struct cell_set *set)
{
    bool loaded = b->loading || w->loading || w->loaded_at > b->from;
    cell_now(&w->cells[i], b->from, set);
    set->any = set->any || (loaded && w->load_begun.before > b->from);
    for (const struct ckpt_seen *s = loaded ? w->ckpts->seen : NULL; s; s = s->next)
        if (s->until >= b->from && s->bounds->has[SIM_CELLS])
            set_add(set, &s->bounds->cells[i]);
}

struct bounds *bounds_end(const struct world *w, const struct bounds *begun, const bool has[SIM_TABLES])
{
    struct bounds *b = malloc(sizeof *b);
    if (!b)
        abort();
    *b = *begun;
    memcpy(b->has, has, sizeof b->has);
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        const struct ledger_table *l = &w->ledger[t];
        if (!has[t])
            continue;
        if (l->clears != b->clears[t] || l->tainted)
            memset(b->must[t], 0, sizeof b->must[t]); /* a clear may have come before the snapshot */
        for (unsigned i = 0; i < SIM_KEYS; i++)
            b->may[t][i] = l->keys[i].sent & ~gone_during(w, b, t, i);
    }
    static const struct cell_set none = {.n = 1};
    for (unsigned i = 0; i < SIM_KEYS; i++)
        if (has[SIM_CELLS])
            cell_during(w, b, i, &b->cells[i]);
        else
            b->cells[i] = none;
    for (unsigned i = 0; i < SCHEDULE_NODES_MAX; i++)
        cell_now(&w->values[i], b->from, &b->values[i]);
    b->sums_sent = w->sums_sent;
    for (unsigned s = 0; s < SIM_STREAMS; s++)
        for (unsigned i = 0; i < SIM_UNITS; i++)
            memcpy(b->deals[s][i].sent, w->deals[s][i].sent, sizeof b->deals[s][i].sent);
    return b;
}

/* ---- loaded into the running job ----------------------------------------------------------------------- */

void bounds_load_begins(struct world *w, struct load_attempt *a)
{
    a->from = ++w->moment;
    if (!w->loading)
        w->load_begun.before = w->loaded_at;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ledger_table *l = &w->ledger[t];
        if (!bounds_hold((enum sim_table)t))
            continue;
        for (unsigned i = 0; i < SIM_KEYS && !w->loading; i++) {
            const struct ledger_key *k = &l->keys[i];
            k->past->unloaded = (struct ledger_state){k->must, k->gone};
            k->past->unloaded_acked = k->acked;
        }
        if (!w->loading) {
            l->clears++;
            l->clears_open++;
            w->load_begun.clears[t] = l->clears;
            w->load_begun.sure[t] = l->clears_open == 1 && !l->tainted;
        }
        a->clears[t] = l->clears;
        a->sure[t] = l->clears_open == 1 && !l->tainted;
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            l->keys[i].must = 0;
            a->acked[t][i] = l->keys[i].acked;
        }
    }
    w->loading = true;
}

void bounds_loaded(struct world *w, const struct bounds *b, const struct load_attempt *a)
{
    w->loading = false;
    w->loaded_at = ++w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ledger_table *l = &w->ledger[t];
        if (!bounds_hold((enum sim_table)t))
            continue;
        l->clears_open--;
        if (b->has[t]) {
            l->mended_from = a->from;
            l->mended_at = w->moment;
        } else if (w->ckpts->load_lost_at > l->mended_at) {
            w->ckpts->left_lost[t] = w->moment;
        }
        bool sure = a->sure[t] && !l->clears_open && !l->tainted && l->clears == a->clears[t];
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &l->keys[i];
            /* it was lost during the save, and is as in another checkpoint */
            bool since = k->lost_at > a->from;
            k->must = sure && !since ? b->must[t][i] : 0;
            if (since)
                k->gone = 0;
            else if (b->has[t]) /* other tables stay as they are */
                k->gone = (k->gone | a->acked[t][i]) & ~b->may[t][i];
        }
    }
    for (unsigned i = 0; i < SIM_KEYS && b->has[SIM_CELLS]; i++)
        cell_becomes(w, &w->cells[i], &b->cells[i], a->from);
    for (unsigned i = 0; i < SIM_KEYS && b->has[SIM_SUMS]; i++)
        w->sums_seen[i] |= b->may[SIM_SUMS][i];
}

/* ---- of what was lost ---------------------------------------------------------------------------------- */

void bounds_returned(struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                     bool again)
{
    const struct ledger_table *l = &w->ledger[table];
    struct ledger_key *k = &w->ledger[table].keys[index];
    bool sure = b->has[table] && !w->loading && !l->clears_open && !l->tainted;
    k->past->unloaded = (struct ledger_state){0};
    if (table == SIM_CELLS) {
        w->moment++;
        cell_becomes(w, &w->cells[index], &b->cells[index], k->lost_at);
        return;
    }
    k->must = sure ? b->must[table][index] & (again ? k->must : UINT64_MAX) : 0;
    k->gone = sure ? (again ? k->gone : k->gone | k->lost_acked) & ~b->may[table][index] : 0;
}

/* ---- a job that begins with it ------------------------------------------------------------------------- */

static void cell_restored(struct world *w, struct cell *cell, const struct cell_set *set)
{
    *cell = (struct cell){0};
    cell_becomes(w, cell, set, w->moment);
}

void bounds_restored(struct world *w, const struct bounds *b)
{
    w->restoring = true;
    w->loaded_at = w->load_begun.before = ++w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ledger_table *l = &w->ledger[t];
        l->clears = l->clears_open = 0;
        l->late_count = 0;
        l->tainted = false;
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &l->keys[i];
            k->must = b->must[t][i];
            k->acked = k->sent; /* a client without an answer is dead, and its requests are over */
            k->gone = bounds_hold((enum sim_table)t) ? k->sent & ~b->may[t][i] : 0;
            k->shard = -1;
            *k->past = (struct ledger_past){0};
        }
    }
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        cell_restored(w, &w->cells[i], &b->cells[i]);
        w->sums_seen[i] |= b->may[SIM_SUMS][i];
    }
    for (unsigned i = 0; i < SCHEDULE_NODES_MAX; i++)
        cell_restored(w, &w->values[i], &b->values[i]);
    w->sums_acked = b->sums_acked;
    w->sums_sent = b->sums_sent;
    memcpy(w->deals, b->deals, sizeof w->deals);
    for (unsigned s = 0; s < SIM_STREAMS; s++)
        for (unsigned i = 0; i < SIM_UNITS; i++)
            w->deals[s][i].holder = 0;
}
