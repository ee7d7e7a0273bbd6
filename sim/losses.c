/*
 * Rows whose last copy dies in a job with `--on-loss restore`. Which rows these are follows from the chains
 * of the view before and the dead servers of the new view. They return to the last whole checkpoint, and no
 * other rows do; until then their owners defer requests. So the model of these rows, and of no others,
 * becomes what that checkpoint may hold as soon as the scheduler has chosen it. A read may return older
 * values if it began before the loss, or if a server may have answered it that is declared dead but alive.
 */
#include "sim/losses.h"

#include <inttypes.h>
#include <string.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_view.h"
#include "server/shard/shard_impl.h"
#include "sim/bounds.h"
#include "sim/ckpts_state.h"
#include "sim/judge.h"
#include "sim/sums.h"
#include "sim/world.h"

static bool survives(const struct world *w, const struct view *view, unsigned shard)
{
    unsigned place = shard / w->schedule->shards;
    const struct view_node *node = shard < w->ring_shards ? view_node(view, PARAMO_ID_SERVER(place)) : NULL;
    return node && node->alive && node->incarnation == w->holder[place];
}

/* The first level with a member that is alive; RING_LEVELS: none. */
static unsigned lowest(const struct world *w, const struct view *view, unsigned partition)
{
    for (unsigned level = 0; level <= w->schedule->replicas; level++)
        if (survives(w, view, w->chains.level[level].owner[partition]))
            return level;
    return RING_LEVELS;
}

static void watch_pauses(struct losses_untold *u, const struct scheduler *s)
{
    for (unsigned i = 0; i < MIGRATIONS_MAX; i++) {
        const struct migration *migration = &s->migrations->machine.migration[i];
        if (migration->state != MIGRATION_FULL || migration->handover)
            continue;
        for (unsigned a = 0; a < migration->partitions; a++) {
            u->pausing[migration->first + a] = migration->id;
            u->target[migration->first + a] = migration->to;
        }
    }
}

void losses_watch(struct machine *m)
{
    struct world *w = m->world;
    struct losses_untold *u = &w->untold;
    const struct scheduler *s = m->up ? m->made->scheduler : NULL;
    if (!w->schedule->restores || !s)
        return;
    watch_pauses(u, s);
    if (!sched_view_is_due(s))
        return;
    if (u->view != sched_view_number(s)) {
        u->view = sched_view_number(s);
        memcpy(u->owner, w->chains.level[0].owner, sizeof u->owner);
        memcpy(u->before, u->owner, sizeof u->before);
    }
    const uint16_t *owner = sched_ring_chains(s)->level[0].owner;
    for (unsigned a = 0; a < RING_PARTITIONS; a++)
        if (owner[a] != u->owner[a]) {
            u->before[a] = u->owner[a];
            u->owner[a] = owner[a];
        }
}

/* A migration's target owned the partition, by the view that also says that the target is dead. The source gave the
 * rows up with the commit. The scheduler had no memory for the view between, or handled the commit and the death in one
 * step. In the second case no step ended with that owner, but the source was told to pause, and the view says that this
 * migration was committed. */
static bool died_untold(const struct world *w, const struct view *view, unsigned partition)
{
    const struct losses_untold *u = &w->untold;
    if (u->view == view->number &&
        (!survives(w, view, u->owner[partition]) || !survives(w, view, u->before[partition])))
        return true;
    unsigned to = u->target[partition];
    return u->pausing[partition] && to < view->shards_count &&
           view->shards[to].last_migration == u->pausing[partition] && !survives(w, view, to);
}

static void key_lost(struct world *w, struct ledger_key *k, const struct view *view)
{
    k->lost = true;
    k->stays_lost = false;
    k->past->lost_before = k->lost_at;
    /* A read that such a server answered before this loss may end after it. */
    k->past->ghost_older_at = k->past->ghost_at;
    k->past->unlost = (struct ledger_state){k->must, k->gone};
    k->past->unloaded = (struct ledger_state){0}; /* a load that is under way ends in one state of many */
    k->lost_at = ++w->moment;
    k->lost_view = view->number;
    k->lost_acked = k->acked;
    k->back = k->must = 0;
}

/* Compares what the new view and the one before list as lost, and what died in the new one. */
static void table_came(struct world *w, const struct view *view, bool follows, enum sim_table t,
                       const uint8_t left[RING_PARTITIONS])
{
    const struct view_table *vt = view_table_named(view, sim_table_names[t]);
    unsigned replicas = judge_replicas(w, t);
    for (unsigned i = 0; i < SIM_KEYS && vt; i++) {
        struct ledger_key *k = &w->ledger[t].keys[i];
        bool reported = view->lost_at > vt->since && view->lost[k->partition] > replicas;
        if (left[k->partition] > replicas && reported)
            /* not listed: a copy was made in the same view, or the row will be missed */
            key_lost(w, k, view);
        else if (reported && !k->lost && follows && !died_untold(w, view, k->partition))
            judge_broken(w, "view %" PRIx64 " has partition %u of table %d lost, but a living server has it",
                         view->number, k->partition, (int)t);
        else if (reported && !k->lost)
            key_lost(w, k, view);
    }
}

/* By the views the rows are there again, unless the scheduler has given them up. */
static void all_back(struct world *w)
{
    bool back = true, can = ckpts_can_return(w); /* the folder may have failed during the restore */
    ckpts_returned(w);
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            back = back && (!k->lost || k->back);
            if (k->lost && t == SIM_SUMS)
                sums_returned(w, i);
            k->stays_lost = k->stays_lost || (k->lost && (!k->back || !can));
            k->lost = false;
        }
    w->counts[PLAY_returned] += back;
    if (!back || !can)
        w->given_up = ++w->moment;
}

void losses_came(struct world *w, const struct view *view, uint64_t before)
{
    uint8_t left[RING_PARTITIONS] = {0};
    if (!w->schedule->restores)
        return;
    bool any = false;
    for (unsigned a = 0; a < RING_PARTITIONS && before; a++) {
        left[a] = (uint8_t)lowest(w, view, a);
        any = any || left[a];
    }
    if (any && !view->lost_at) /* given up before a node saw a view that says so; or no table has lost any */
        w->given_up = ++w->moment;
    for (unsigned t = 0; t < SIM_TABLES && view->lost_at; t++)
        if (t != SIM_USER)
            table_came(w, view, view->number == before + 1, (enum sim_table)t, left);
    if (w->loss_view && !view->lost_at)
        all_back(w);
    if (!w->loss_view && view->lost_at) {
        w->loss_began = w->server_gone_at;
        w->loss_first = view->lost_at;
    }
    w->loss_view = view->lost_at;
}

void losses_back(struct world *w, uint64_t number, const struct bounds *b)
{
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            if (!k->lost || k->back == number)
                continue;
            bounds_returned(w, b, (enum sim_table)t, i, k->back != 0);
            k->back = number;
        }
}

bool losses_between(const struct ledger_key *k, uint64_t from)
{
    return k->lost_at && (from <= k->lost_at || k->past->ghost_at >= from);
}

bool losses_open(const struct ledger_key *k, const struct shard *shard, const struct shard_table *st)
{
    bool is_lost = (k->lost || k->stays_lost) && partition_set_has(st->lost_partitions, k->partition);
    return k->lost_at && (!shard->view || shard->view->number < k->lost_view || is_lost);
}

void losses_forget(struct world *w)
{
    w->loss_view = w->given_up = 0;
    memset(&w->untold, 0, sizeof w->untold);
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            struct ledger_key *k = &w->ledger[t].keys[i];
            k->lost = k->stays_lost = false;
            k->died_at = k->lost_at = k->lost_view = k->lost_acked = k->back = 0;
        }
}
