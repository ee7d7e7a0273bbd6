/*
 * A stand-in for migration: arcs that hold nothing get another owner, so that requests that were cut by the
 * old view are refused, wait for the new one and are cut anew. What holds nothing needs nothing carried over;
 * that nobody applies a request to an arc that has just gone is seen to by giving all servers the view at
 * once, as a commit would. Nothing moves once a server has died: what it had lost would look like nothing.
 * And keys that are on their way again, after their chunk was cut anew, stay where they are: arcs bring no
 * record of what was applied with them here, and the new owner may have recorded another part of that chunk.
 */
#include <stdlib.h>
#include <string.h>

#include "post/sched.h"
#include "sim/world.h"
#include "worker/client_impl.h"

static bool steady(const struct world *w, const struct machine *m)
{
    return m->up && sim_host_paused_until(m->host) <= sim_now(w->sim);
}

static bool possible(const struct world *w)
{
    const struct machine *scheduler = &w->machines[0];
    if (!w->complete || !steady(w, scheduler) || w->schedule->durable || w->schedule->replicas)
        return false; /* what happens here happens at once, and a view that is saved first does not */
    const struct scheduler *s = scheduler->made->scheduler;
    if (s->state != SCHED_RUNNING || s->view_changed)
        return false;
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        if (w->workers[i].errand)
            return false; /* the old owner still lists rows of arcs that it had: a file would have them twice
                           */
    for (uint32_t i = 0; i < w->schedule->servers; i++) {
        const struct machine *m = &w->machines[1 + i];
        const struct sched_node *node = s->slots[SLOTS_SERVERS].node[i];
        if (!steady(w, m) || !machine_joined(m) || m->declared_dead || w->deaths[i] ||
            node->state != SNODE_JOINED)
            return false;
    }
    return true;
}

static unsigned arc_of(const struct world *w, enum sim_table t, unsigned index)
{
    return ledger_arc(t, w->ledger[t].keys[index].key);
}

static void mark_used(struct world *w, bool used[RING_ARCS])
{
    uint64_t vals[SIM_WIDE];
    unsigned n;
    memset(used, 0, RING_ARCS * sizeof *used);
    for (unsigned t = 0; t < SIM_TABLES; t++) {
        for (unsigned i = 0; i < SIM_KEYS; i++) {
            uint64_t any = w->ledger[t].keys[i].must;
            if (judge_row(w, (enum sim_table)t, i, 0, vals, &n)) {
                for (unsigned k = 0; k < n; k++)
                    any |= vals[k];
            }
            used[arc_of(w, (enum sim_table)t, i)] |= any != 0;
        }
    }
}

static void mark_cut_anew(struct world *w, bool used[RING_ARCS])
{
    for (uint32_t i = 0; i < w->schedule->workers; i++) {
        const struct machine *m = &w->workers[i];
        for (unsigned c = 0; m->up && c < w->schedule->customers; c++) {
            const paramo_worker *worker = m->customers[c].worker;
            const struct request *r = worker ? worker->client->requests : NULL;
            for (; r; r = r->next)
                for (const struct chunk *chunk = r->chunks; chunk; chunk = chunk->next)
                    for (uint32_t k = 0; chunk->attempt && k < chunk->slice.count; k++)
                        used[ring_arc(ring_position(&r->table->placement, chunk->slice.keys[k]))] = true;
        }
    }
}

/* The scheduler's view as it is now, for the servers. */
static struct view *view_of(struct scheduler *s)
{
    const struct slot_list *servers = &s->slots[SLOTS_SERVERS], *workers = &s->slots[SLOTS_WORKERS];
    struct view_node nodes[SCHEDULE_NODES_MAX];
    uint32_t count = 0;
    nodes[count++] = s->self;
    for (uint32_t rank = 0; rank < servers->count || rank < workers->count; rank++) {
        if (rank < servers->count)
            nodes[count++] = servers->node[rank]->info;
        if (rank < workers->count)
            nodes[count++] = workers->node[rank]->info;
    }
    struct view view = {.job = s->job,
                        .number = s->view_number,
                        .num_servers = servers->count,
                        .num_workers = workers->count,
                        .complete = true,
                        .nodes_count = count,
                        .nodes = nodes,
                        .shards_count = s->shards_count,
                        .shards = s->shards,
                        .tables_count = s->tables_count,
                        .tables = s->tables,
                        .chains = s->chains};
    struct writer out = {0};
    struct view *made;
    view_encode(&view, &out);
    struct reader in = reader_over(out.data, out.len);
    sim_must(view_decode(&in, &made));
    writer_fini(&out);
    return made;
}

static void commit(struct world *w)
{
    struct machine *scheduler = &w->machines[0];
    struct scheduler *s = scheduler->made->scheduler;
    if (!lane_enter(scheduler->made->control))
        abort();
    sched_view_change(s);
    lane_timer_cancel(scheduler->made->control, &s->view_timer);
    s->view_timer.fire(&s->view_timer); /* before anything else changes */
    struct view *view = view_of(s);
    lane_leave(scheduler->made->control);
    for (uint32_t i = 0; i < w->schedule->servers; i++) {
        struct seat *seat = w->machines[1 + i].made->own;
        for (unsigned k = 0; k < seat->shards_count; k++) {
            if (!lane_enter(seat->shards[k].lane))
                abort();
            shard_set_view(seat->shards[k].shard, view);
            lane_leave(seat->shards[k].lane);
        }
    }
    for (unsigned t = 0; t < SIM_TABLES; t++)
        for (unsigned i = 0; i < SIM_KEYS; i++)
            w->ledger[t].keys[i].shard = view_ring(view)->owner[arc_of(w, (enum sim_table)t, i)];
    view_unref(view);
}

/* What has arrived has arrived before. */
static void lanes_drain(struct world *w)
{
    for (uint32_t i = 0; i <= w->schedule->servers; i++) {
        const struct machine *m = &w->machines[i];
        if (!steady(w, m))
            continue;
        for (unsigned k = 0; i && k < m->made->own->shards_count; k++) {
            if (!lane_enter(m->made->own->shards[k].lane))
                abort();
            lane_leave(m->made->own->shards[k].lane);
        }
        if (!lane_enter(m->made->control))
            abort();
        lane_leave(m->made->control);
    }
}

static void changed(struct view_shard *shard, uint64_t view)
{
    shard->arcs_changed = shard->chain_changed = view;
}

bool moves_strike(struct world *w, const struct fault *f)
{
    bool used[RING_ARCS], some = false;
    lanes_drain(w);
    if (!possible(w))
        return false;
    struct scheduler *s = w->machines[0].made->scheduler;
    unsigned shards = w->schedule->shards;
    struct dice dice = dice_of(f->n, 3);
    mark_used(w, used);
    mark_cut_anew(w, used);
    for (unsigned a = 0; a < RING_ARCS; a++) {
        unsigned from = s->chains.level[0].owner[a];
        if (used[a] || from / shards != f->from - 1 || dice_draw(&dice, 2))
            continue;
        unsigned to = (f->to - 1) * shards + (unsigned)dice_draw(&dice, shards);
        if (to == from)
            continue;
        some = true;
        s->chains.level[0].owner[a] = (uint16_t)to;
        changed(&s->shards[from], s->view_number + 1);
        changed(&s->shards[to], s->view_number + 1);
    }
    if (some) {
        commit(w);
        w->moves++;
    }
    return some;
}
