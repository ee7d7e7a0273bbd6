/*
 * What a checkpoint must hold and what it may hold: between all that was acknowledged when it began and all
 * that was issued when its manifest came. Also the effect on the model when a checkpoint is loaded.
 */
#include "sim/bounds.h"

#include <stdlib.h>
#include <string.h>

#include "sim/cells.h"
#include "sim/sums.h"
#include "sim/world.h"

struct bounds {
    uint64_t from; /* the moment when it began */
    bool has[SIM_TABLES];
    bool loading; /* rows could hold anything then */
    uint32_t clears[SIM_TABLES];
    uint64_t must[SIM_TABLES][SIM_KEYS], may[SIM_TABLES][SIM_KEYS];
    struct cell_set cells[SIM_KEYS], values[SCHEDULE_NODES_MAX];
    uint64_t sums_acked, sums_sent;
    struct deal deals[SIM_STREAMS][SIM_UNITS];
};

static bool in_checkpoints(unsigned table)
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
        for (unsigned i = 0; i < SIM_KEYS && in_checkpoints(t) && !l->clears_open && !l->tainted; i++)
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

struct bounds *bounds_end(const struct world *w, const struct bounds *begun, const bool has[SIM_TABLES])
{
    struct bounds *b = malloc(sizeof *b);
    if (!b)
        abort();
    *b = *begun;
    bool loose = begun->loading || w->loading || w->loaded_at > begun->from;
    memcpy(b->has, has, sizeof b->has);
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        const struct ledger_table *l = &w->ledger[t];
        if (!has[t])
            continue;
        if (l->clears != b->clears[t] || l->tainted)
            memset(b->must[t], 0, sizeof b->must[t]); /* a clear may have come before the snapshot */
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            const struct ledger_key *k = &l->keys[i];
            b->may[t][i] = k->sent & ~(loose || k->lost_at > b->from ? 0 : k->gone);
        }
    }
    static const struct cell_set none = {.n = 1}, any = {.any = true};
    for (unsigned i = 0; i < SIM_KEYS; i++)
        if (has[SIM_CELLS] && loose)
            b->cells[i] = any;
        else if (has[SIM_CELLS])
            cell_now(&w->cells[i], b->from, &b->cells[i]);
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
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ledger_table *l = &w->ledger[t];
        if (!in_checkpoints(t))
            continue;
        if (!w->loading) {
            l->clears++;
            l->clears_open++;
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
        if (!in_checkpoints(t))
            continue;
        l->clears_open--;
        if (b->has[t]) {
            l->mended_from = a->from;
            l->mended_at = w->moment;
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
        sums_returned(w, i);
}

/* ---- of what was lost ---------------------------------------------------------------------------------- */

void bounds_returned(struct world *w, const struct bounds *b, enum sim_table table, unsigned index,
                     bool again)
{
    const struct ledger_table *l = &w->ledger[table];
    struct ledger_key *k = &w->ledger[table].keys[index];
    bool sure = b->has[table] && !w->loading && !l->clears_open && !l->tainted;
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
    w->loaded_at = ++w->moment;
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        struct ledger_table *l = &w->ledger[t];
        l->clears = l->clears_open = 0;
        l->late_count = 0;
        l->tainted = false;
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &l->keys[i];
            k->must = b->must[t][i];
            k->acked = k->sent; /* a client without an answer is dead, and so are its requests */
            k->gone = in_checkpoints(t) ? k->sent & ~b->may[t][i] : 0;
            k->shard = -1;
            *k->past = (struct ledger_past){0};
        }
    }
    for (unsigned i = 0; i < SIM_KEYS; i++) {
        cell_restored(w, &w->cells[i], &b->cells[i]);
        sums_returned(w, i);
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
