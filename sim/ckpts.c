/*
 * Checkpoints of the job. The folder is one that all servers and schedulers see, like a network disk; its operations
 * fail, and its power fails. Workers save and load checkpoints during other work. What must hold: a checkpoint with
 * a manifest is whole and holds what it must (bounds.c); a checkpoint that was reported stays at any later failure;
 * a load takes one of those, and the last one if it asks for that.
 *
 * The simulator sees at the scheduler when a save begins: all that was acknowledged by then must be in it.
 */
#include "sim/ckpts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/checkpoint/ckpt.h"
#include "cluster/member/member_impl.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_ckpt_impl.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "server/shard/shard_impl.h"
#include "server/shard/table_map.h"
#include "server/snapshot/load_state.h"
#include "server/snapshot/loading.h"
#include "sim/bounds.h"
#include "sim/call_ends.h"
#include "sim/ckpts_state.h"
#include "sim/disk.h"
#include "sim/judge.h"
#include "sim/losses.h"
#include "sim/memory.h"
#include "sim/world.h"
#include "wire/order.h"

enum { CALL_SECONDS = 20, AGAIN_MS = 200 };

/* ---- the folder ---------------------------------------------------------------------------------------- */

static struct fs *fs_of(const struct ckpts *c)
{
    return simfs_fs(c->files);
}

static paramo_err any_block(void *arg, const struct ckpt_block *b)
{
    (void)arg, (void)b;
    return PARAMO_OK;
}

/* Is the checkpoint whole, and which tables does it have? */
static bool is_whole(const struct ckpts *c, uint64_t number, bool has[SIM_TABLES])
{
    struct ckpt *ckpt = NULL;
    paramo_err err = ckpt_open(fs_of(c), c->dir, number, &ckpt);
    if (!err)
        err = ckpt_visit(ckpt, NULL, any_block, NULL);
    const struct ckpt_manifest *m = ckpt ? ckpt_manifest(ckpt, 0) : NULL;
    for (uint32_t i = 0; m && i < m->tables_count; i++)
        for (unsigned t = 0; t < SIM_TABLES; t++)
            has[t] = has[t] || strcmp(m->tables[i].name, sim_table_names[t]) == 0;
    ckpt_close(ckpt);
    return !err;
}

static void not_whole(struct world *w, uint64_t number)
{
    judge_broken(w, "checkpoint %" PRIu64 " has a manifest, and is not whole: %s", number, err_text());
}

static void path_of(const struct ckpts *c, uint64_t number, const char *file, char path[64])
{
    (void)snprintf(path, 64, "%s/%08" PRIu64 "%s", c->dir, number, file);
}

/* A checkpoint that a lying disk has damaged: the operator removes it. */
static void throw_away(struct ckpts *c, uint64_t number)
{
    char path[64], folder[64];
    path_of(c, number, "/manifest", path);
    path_of(c, number, "", folder);
    if (!fs_unlink(fs_of(c), path))
        sim_must(fs_sync_dir(fs_of(c), folder));
}

/* Has the disk lost a file of the checkpoint, or of one that it may be based on? */
static bool lost_with(const struct ckpts *c, uint64_t number)
{
    char path[64];
    bool lost = false;
    for (uint64_t n = 1; n <= number && !lost; n++) {
        path_of(c, n, "", path);
        lost = simfs_lost(c->files, path);
    }
    return lost;
}

static bool has_manifest(const struct ckpts *c, uint64_t number)
{
    char path[64];
    struct fs_file *file;
    path_of(c, number, "/manifest", path);
    if (fs_open(fs_of(c), path, FS_READ, &file))
        return false;
    fs_close(file);
    return true;
}

static void seen_free(struct ckpts *c)
{
    while (c->seen) {
        struct ckpt_seen *seen = c->seen;
        c->seen = seen->next;
        free(seen->bounds);
        free(seen);
    }
}

static void manifest_came(struct world *w, uint64_t number)
{
    struct ckpts *c = w->ckpts;
    const struct bounds *begun = c->begun[0];
    if (!begun || (c->begun[1] && bounds_from(c->begun[1]) < bounds_from(begun)))
        begun = c->begun[1];
    if (!begun) {
        judge_broken(w, "checkpoint %" PRIu64 " exists, and no scheduler has begun one", number);
        return;
    }
    bool has[SIM_TABLES] = {false};
    bool whole = is_whole(c, number, has);
    if (!whole && c->lied_at > bounds_from(begun)) { /* its base is gone, or its own files are */
        throw_away(c, number);
        return;
    }
    if (!whole)
        not_whole(w, number);
    struct ckpt_seen *seen = ckpts_seen(c, number);
    if (!seen) {
        seen = calloc(1, sizeof *seen);
        if (!seen)
            abort();
        seen->number = number;
        seen->next = c->seen;
        c->seen = seen;
    }
    free(seen->bounds);
    seen->bounds = bounds_end(w, begun, has);
    seen->there = seen->loadable = true;
    if (w->loading && number >= c->load_least)
        seen->until = UINT64_MAX;
    seen->has_all = true;
    for (unsigned t = 0; t < SIM_TABLES; t++)
        seen->has_all = seen->has_all && (has[t] || t == SIM_USER);
}

static void folder_check(struct world *w)
{
    struct ckpts *c = w->ckpts;
    uint64_t next;
    if (simfs_steps(c->files) == c->steps)
        return;
    c->steps = simfs_steps(c->files);
    if (ckpt_next_number(fs_of(c), c->dir, &next))
        return;
    for (uint64_t number = 1; number < next; number++) {
        const struct ckpt_seen *seen = ckpts_seen(c, number);
        if ((!seen || !seen->there) && has_manifest(c, number))
            manifest_came(w, number);
    }
}

/* After the power of the machine with the folder has failed, and at the end. */
static void all_check(struct world *w)
{
    struct ckpts *c = w->ckpts;
    for (struct ckpt_seen *seen = c->seen; seen; seen = seen->next) {
        bool has[SIM_TABLES] = {false}, lost = lost_with(c, seen->number);
        seen->there = has_manifest(c, seen->number);
        bool whole = seen->there && is_whole(c, seen->number, has);
        if (!whole && lost) {
            throw_away(c, seen->number);
            w->counts[PLAY_lies] += seen->there || seen->promised;
            seen->there = seen->promised = false;
        } else if (seen->there && !whole) {
            not_whole(w, seen->number);
        } else if (!seen->there && seen->promised) {
            judge_broken(w, "checkpoint %" PRIu64 " was taken, and is gone", seen->number);
        }
    }
}

static void power_fails(struct world *w)
{
    w->ckpts->failed_at = w->ckpts->power_at = ++w->moment;
    simfs_restart(w->ckpts->files);
    if (simfs_lost(w->ckpts->files, w->ckpts->dir)) {
        w->ckpts->lied_at = ++w->moment;
        for (struct ckpt_seen *s = w->ckpts->seen; s && w->loading; s = s->next)
            s->until = UINT64_MAX; /* the load takes the last one that is left */
    }
    all_check(w);
}

/* ---- callers ------------------------------------------------------------------------------------------- */

static bool no_job(const struct machine *m, paramo_err status)
{
    return !machine_joined(m) || m->declared_dead || m->world->over || m->world->scheduler_lost ||
           call_ends_with_job(m, status);
}

/* The standby scheduler, after the first; NULL: there is none. */
static const struct machine *next_scheduler(const struct world *w, const struct machine *m)
{
    const struct machine *last = &w->machines[w->count - 1];
    return m != last && last->role == PARAMO_ROLE_SCHEDULER ? last : NULL;
}

/* The incarnation of the server in this place, if the scheduler has declared it dead; 0: it has not. */
static uint64_t dead_at(const struct scheduler *s, uint32_t place)
{
    const struct slot_list *servers = &s->roster->slots[SLOTS_SERVERS];
    const struct sched_node *node = place < servers->count ? servers->node[place] : NULL;
    return node && node->state == SNODE_DEAD ? node->info.incarnation : 0;
}

/* Does a scheduler know of a server's death that it did not know of at the call? Its view comes after its answer. Or
 * does it know of one that no view says yet, because there is no memory for that view? */
static bool death_came(const struct machine *m)
{
    const struct ckpts *c = m->world->ckpts;
    const struct scheduler *s = m->up ? m->made->scheduler : NULL;
    if (!s)
        return false;
    bool came = m->term != c->asked_leads[m->rank] ||
                s->roster->replaced_count != c->asked_replaced[m->rank]; /* another has its place already */
    for (uint32_t place = 0; place < SIM_SERVERS && !came; place++) {
        uint64_t dead = dead_at(s, place);
        came = dead && (dead != c->asked_dead[m->rank][place] || dead == m->world->copies_at[place]);
    }
    return came;
}

/* Has a server died since the call, in fact, by a view, or by the scheduler's roster? Without copies the partitions
 * of a server that died before have no other owner, and no checkpoint is whole. */
static bool server_died(const struct world *w)
{
    const struct ckpts *c = w->ckpts;
    bool died = w->server_gone_at > c->asked_moment;
    for (uint32_t i = 0; i < SIM_SERVERS && !died; i++)
        died = w->deaths[i] != c->asked_deaths[i];
    for (const struct machine *m = w->machines; m && !died; m = next_scheduler(w, m))
        died = death_came(m);
    died = died || c->death_came;
    bool others_own = w->schedule->replicas || w->schedule->restores;
    for (uint32_t i = 0; i < SIM_SERVERS && !others_own && !died; i++)
        died = w->holder[i] && !w->copies_at[i] && !w->left[i];
    for (uint32_t k = 1; k <= w->schedule->servers && !others_own && !died; k++)
        died = !w->machines[k].up || w->machines[k].declared_dead;
    return died;
}

static bool any_may_be_lost(const struct world *w)
{
    uint64_t from = w->ckpts->asked_moment;
    bool any = false;
    for (unsigned i = 0; i < SIM_TABLES && !any; i++) {
        enum sim_table t = (enum sim_table)i;
        any = t != SIM_USER && (judge_may_be_lost(w, t, from) || ckpts_may_have_lost(w, t, from));
    }
    return any;
}

static uint32_t newest_term(const struct world *w)
{
    uint32_t newest = w->etcd_term;
    for (uint32_t k = 0; k < w->count; k++)
        newest = w->machines[k].term > newest ? w->machines[k].term : newest;
    return newest;
}

static bool has_cause(const struct machine *m, paramo_err status)
{
    const struct world *w = m->world;
    const struct ckpts *c = w->ckpts;
    switch (status) {
    case PARAMO_OK:
    case PARAMO_E_AGAIN: /* it ends in the calm period, when a call has to succeed */
        return true;
    case PARAMO_E_FULL:
        return c->orders_full_at > c->asked_moment;
    case PARAMO_E_TIMEOUT: /* by the clock of the worker, the scheduler or a server, which may run fast */
        return w->jumped_at > c->asked_moment ||
               lane_now(m->made->control) + sim_host_stood(m->host, c->asked_at) >=
                   c->asked_at + CALL_SECONDS * ENV_SEC / 10 * 9;
    case PARAMO_E_IO:
        return c->failed_at > c->asked_moment;
    case PARAMO_E_NODE_LOST: /* perhaps no view says so yet */
        return server_died(w);
    case PARAMO_E_DATA_LOST:
        return !c->load && (judge_data_lost(w) || any_may_be_lost(w));
    case PARAMO_E_NOT_FOUND:
        return (c->load && !c->least && !c->load_number) || c->lied_at > c->asked_moment;
    case PARAMO_E_MEMORY:
        return memory_failed_call(m, UINT32_MAX, c->asked_moment);
    case PARAMO_E_CORRUPT: /* the damage of the lying disk is found, ... */
        /* ... or a save misses a file: servers sync their files, and the scheduler then syncs the names of all of
         * them. A power failure before that takes a name whose server has answered. */
        return c->lied_at > c->asked_moment || (!c->load && c->power_at > c->asked_moment);
    case PARAMO_E_FORMAT:
        return c->lied_at > c->asked_moment;
    case PARAMO_E_CANCELLED: /* by a scheduler that has begun to lead since */
        return newest_term(w) > c->asked_term;
    default:
        return false;
    }
}

static void saved(struct world *w, uint64_t number)
{
    struct ckpts *c = w->ckpts;
    folder_check(w);
    struct ckpt_seen *seen = ckpts_seen(c, number);
    if (!seen || !seen->there) {
        if (c->lied_at < c->asked_moment)
            judge_broken(w, "checkpoint %" PRIu64 " was taken, and has no manifest", number);
        return;
    }
    seen->promised = true;
    w->counts[PLAY_ckpt_saves]++;
    c->calm_saved = c->calm_saved || w->calm;
}

/* The answer to a load may come late: since the load the scheduler has taken others by its clock, and has removed the
 * one that was loaded. It removes none that was reported to a caller. */
static bool removed_since(const struct world *w, const struct ckpt_seen *seen)
{
    const struct ckpt_seen *last = ckpts_last(w->ckpts, false);
    return w->schedule->ckpt_keep && seen->loadable && !seen->promised && last && last->number > seen->number;
}

static void loaded(struct world *w, uint64_t number)
{
    struct ckpts *c = w->ckpts;
    const struct ckpt_seen *seen = ckpts_seen(c, number);
    bool other = seen && (c->load_number ? number != c->load_number : number < c->least);
    bool gone = seen && !seen->there && !removed_since(w, seen);
    if (!seen || ((gone || other) && c->lied_at < c->asked_moment)) {
        judge_broken(w, "checkpoint %" PRIu64 " was loaded; asked for was %" PRIu64 ", the last is %" PRIu64,
                     number, c->load_number, c->least);
        return;
    }
    bounds_loaded(w, seen->bounds, &c->attempt);
    for (struct ckpt_seen *s = c->seen; s; s = s->next)
        s->until = s->until == UINT64_MAX ? w->loaded_at : s->until;
    if (w->newest_view >> 32 != c->load_term)
        c->restarted_at = w->loaded_at;
    c->again = NULL;
    c->again_at = 0;
    w->counts[PLAY_ckpt_loads]++;
    c->calm_loaded = c->calm_loaded || c->calm_saved;
    if (w->calm)
        w->calm_since = sim_now(w->sim); /* requests have waited for it */
}

/* The result of the load is unknown, or it failed: rows may hold anything until a checkpoint is loaded. */
static void failed(struct machine *m, paramo_err status)
{
    struct ckpts *c = m->world->ckpts;
    if (m->world->calm && !c->load && status == PARAMO_E_DATA_LOST && !m->world->loading)
        c->calm_saved = c->calm_loaded = true; /* a table that no checkpoint has, and that no worker clears */
    if (c->load) {
        c->again = m;
        c->again_process = m->made->own->incarnation;
    }
    c->again_at = sim_now(m->world->sim) + AGAIN_MS * ENV_MS;
    /* A lying disk has lost every checkpoint, and an earlier load has failed midway: the operator begins again. */
    if (c->load && status == PARAMO_E_NOT_FOUND && !ckpts_last(c, false))
        m->world->renew = true;
}

static void call_ended(struct machine *m, const struct member_call *call, paramo_err status)
{
    struct world *w = m->world;
    struct ckpts *c = w->ckpts;
    c->asks = NULL;
    if (m->dying || no_job(m, status)) {
        failed(m, status);
        return;
    }
    if (!has_cause(m, status))
        judge_broken(w, "%s: a checkpoint was not %s: %s, without a cause: %s", m->name,
                     c->load ? "loaded" : "taken", err_name(status), err_text());
    if (status)
        failed(m, status);
    else if (c->load)
        loaded(w, call->result.number);
    else
        saved(w, call->result.number);
}

static void answered(struct member_call *call, paramo_err status)
{
    memory_hold();
    call_ended(call->arg, call, status);
    memory_resume();
}

/* A load with an unknown result may still be carried out while the scheduler counts its worker as alive. So
 * that worker has to load first: with its next call the scheduler knows that the earlier one is old. */
static bool may_come(const struct ckpts *c, const struct machine *m)
{
    const struct view *view = member_view(machine_member(m));
    bool may = false;
    for (uint32_t i = 0; c->again && view && i < view->nodes_count; i++)
        may = may || (view->nodes[i].alive && view->nodes[i].incarnation == c->again_process);
    return may && m->made->own->incarnation != c->again_process;
}

/* Notes the checkpoints that the scheduler may load: that of the number, or the last one, and none that is older
 * than one that a caller was told of. */
static void load_tried(struct world *w, uint64_t number)
{
    struct ckpts *c = w->ckpts;
    if (!w->loading) {
        c->load_least = UINT64_MAX;
        c->replaced = false;
    }
    if (!number && c->least < c->load_least)
        c->load_least = c->least;
    for (struct ckpt_seen *s = c->seen; s; s = s->next)
        if (c->lied_at ? s->loadable : number ? s->number == number : s->loadable && s->number >= c->least)
            s->until = UINT64_MAX;
}

/* Asks for a checkpoint or a load. False: this is not the moment. */
static bool ask(struct machine *m, bool load, uint64_t number, bool changes)
{
    struct world *w = m->world;
    struct ckpts *c = w->ckpts;
    struct lane *control = m->made->control;
    const struct ckpt_seen *last = ckpts_last(c, true);
    if (c->asks || !machine_joined(m) || m->declared_dead || m->script.step == SCRIPT_LEAVE)
        return false;
    if (load && may_come(c, m))
        return false;
    bool enter = !lane_held(control);
    if (enter && !lane_enter(control))
        abort();
    c->call = (struct member_call){.done = answered, .arg = m};
    c->load = load;
    c->asked_moment = ++w->moment;
    c->death_came = false;
    c->asked_term = newest_term(w);
    memcpy(c->asked_deaths, w->deaths, sizeof c->asked_deaths);
    for (const struct machine *s = w->machines; s; s = next_scheduler(w, s)) {
        c->asked_leads[s->rank] = s->term;
        const struct scheduler *leads = s->up ? s->made->scheduler : NULL;
        c->asked_replaced[s->rank] = leads ? leads->roster->replaced_count : 0;
        for (uint32_t place = 0; place < SIM_SERVERS; place++)
            c->asked_dead[s->rank][place] = leads ? dead_at(leads, place) : 0;
    }
    for (struct ckpt_seen *seen = c->seen; seen && load; seen = seen->next)
        seen->loadable = seen->there && has_manifest(c, seen->number);
    c->load_number = number;
    c->least = last ? last->number : 0;
    c->asked_at = lane_now(control);
    uint64_t deadline = c->asked_at + CALL_SECONDS * ENV_SEC;
    paramo_err err = load ? member_ckpt_load(machine_member(m), &c->call, c->dir, number, deadline)
                          : member_ckpt_save(machine_member(m), &c->call, c->dir, changes, deadline);
    if (!err) {
        c->asks = m;
        if (load) {
            load_tried(w, number);
            bounds_load_begins(w, &c->attempt);
            c->load_term = (uint32_t)(w->newest_view >> 32);
        }
    }
    if (enter)
        lane_leave(control);
    return !err;
}

/* The last checkpoint, or sometimes another one that must exist. */
static uint64_t number_draw(struct ckpts *c, uint64_t draw)
{
    uint64_t n = 0;
    for (const struct ckpt_seen *s = c->seen; s; s = s->next)
        n += s->there && s->promised;
    if (!n || draw % 4)
        return 0;
    n = draw / 4 % n;
    for (const struct ckpt_seen *s = c->seen; s; s = s->next)
        if (s->there && s->promised && !n--)
            return s->number;
    return 0;
}

bool ckpts_strike(struct machine *m, const struct fault *f)
{
    struct world *w = m->world;
    struct ckpts *c = w->ckpts;
    if (!c || sim_host_paused_until(m->host) > sim_now(w->sim))
        return false;
    switch (f->kind) {
    case FAULT_save:
        return m->role == PARAMO_ROLE_WORKER && ask(m, false, 0, f->n % 2);
    case FAULT_load:
        return m->role == PARAMO_ROLE_WORKER && ckpts_last(c, false) &&
               ask(m, true, number_draw(c, f->n), false);
    case FAULT_lie:
        simfs_lie(c->files, 1 + (unsigned)(f->n % 12));
        return true;
    case FAULT_disk:
        simfs_plan(c->files, (enum simfs_fault)(f->n % SIMFS_FAULTS),
                   simfs_steps(c->files) + f->n / SIMFS_FAULTS % 64);
        return true;
    default:
        if (!ckpts_last(c, false) || !w->complete)
            return false;
        w->renew = true;
        if (f->n % 2)
            power_fails(w);
        return true;
    }
}

/* Without copies a whole checkpoint needs all servers. */
static bool server_gone(const struct world *w)
{
    for (uint32_t k = 1; k <= w->schedule->servers && !w->schedule->replicas && !w->schedule->restores; k++)
        if (w->machines[k].gone)
            return true;
    return false;
}

bool ckpts_turn(struct machine *m, bool leaving)
{
    struct world *w = m->world;
    struct ckpts *c = w->ckpts;
    if (!c || w->scheduler_lost || w->over || (leaving && server_gone(w)) || !machine_joined(m) ||
        m->declared_dead)
        return false;
    bool waits = c->asks || sim_now(w->sim) < c->again_at;
    bool lives = c->again && machine_joined(c->again) && !c->again->declared_dead && !w->app->over(c->again);
    if (w->loading) { /* the earlier request may arrive late: its worker has to be first */
        if (!waits && (!lives || c->again == m))
            (void)ask(m, true, 0, false);
        return !server_gone(w);
    }
    if (!leaving)
        return false;
    if (!c->calm_saved) {
        if (!waits)
            (void)ask(m, ckpts_last(c, false) && w->recovered && !c->load, 0, true);
        /* otherwise the rows are not whole, and a save would keep that */
        return ckpts_last(c, false) || !w->recovered;
    }
    if (!c->calm_loaded && !waits)
        (void)ask(m, true, 0, false);
    return !c->calm_loaded;
}

/* ---- after each event ---------------------------------------------------------------------------------- */

/* Lost rows return to that checkpoint. */
static void returns(struct world *w, uint64_t number)
{
    const struct ckpt_seen *seen = ckpts_seen(w->ckpts, number), *last = ckpts_last(w->ckpts, true);
    if (seen && (seen->there || w->ckpts->lied_at) && (!last || last->number <= number))
        losses_back(w, number, seen->bounds);
    else
        judge_broken(w, "what is lost goes back to checkpoint %" PRIu64 ", the last is %" PRIu64, number,
                     last ? last->number : 0);
}

/* The job begins with this checkpoint. It is the one that was the last when the job began, unless the power has shown
 * since that a sync of that one had lied; then it is the last that is whole. */
static void begins_with(struct world *w, uint64_t number)
{
    struct ckpts *c = w->ckpts;
    const struct ckpt_seen *seen = ckpts_seen(c, number), *before = ckpts_seen(c, c->restored);
    if (number == c->restored)
        return;
    if (!seen || !seen->there || (before && before->there)) {
        judge_broken(w, "the job begins with checkpoint %" PRIu64 ", the last is %" PRIu64, number,
                     c->restored);
        return;
    }
    c->restored = number;
    bounds_restored(w, seen->bounds);
}

/* Is a partition without an owner that this scheduler counts among the living? */
static bool owner_gone(const struct scheduler *s)
{
    bool gone = false;
    for (size_t a = 0; a < RING_PARTITIONS && !gone; a++) {
        uint16_t owner = sched_ring_chains(s)->level[0].owner[a];
        gone = owner == RING_NONE || !sched_roster_is_here(sched_ring_server(s, owner));
    }
    return gone;
}

/* The load that the job begins with is carried out again after a failure that passes. It ends the job only if a server
 * is gone and no copy has taken over. */
static void begin_watch(struct world *w, const struct machine *m)
{
    static const paramo_err passing[] = {PARAMO_E_AGAIN, PARAMO_E_NODE_LOST, PARAMO_E_CANCELLED,
                                         PARAMO_E_FULL, PARAMO_E_CLOSED};
    const struct scheduler *s = m->made->scheduler;
    uint32_t *tries = &w->ckpts->tries[m->rank];
    w->counts[PLAY_restored_again] += s->ckpts->begin.tries > *tries;
    *tries = s->ckpts->begin.tries;
    if (s->state < SCHED_ENDING || !strstr(s->end->text, "was not loaded"))
        return;
    for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
        if (s->end->status == passing[i] && !owner_gone(s))
            judge_broken(w, "the checkpoint that the job begins with was not loaded again: %s: %s",
                         err_name(s->end->status), s->end->text);
}

/* A server has unfinished orders, and this scheduler has given it as many as may be unfinished. */
static bool orders_full(const struct scheduler *s)
{
    bool full = false;
    for (uint32_t i = 0; s && i < s->roster->slots[SLOTS_SERVERS].count && !full; i++) {
        const struct sched_node *node = s->roster->slots[SLOTS_SERVERS].node[i];
        full = node && node->orders.first && (uint32_t)node->orders.next_id > ORDERS_WINDOW;
    }
    return full;
}

static bool any_lost(const struct shard *s)
{
    const struct shard_table *t;
    bool any = false;
    for (size_t at = 0; !any && (t = shard_table_next(s, &at));)
        any = t->lost;
    return any;
}

/* Has a load begun to replace rows, and has a shard lost rows since then? */
static void load_watch(struct world *w)
{
    struct ckpts *c = w->ckpts;
    bool lost = false;
    for (uint32_t k = 1; k <= w->schedule->servers; k++) {
        const struct machine *m = &w->machines[k];
        for (unsigned i = 0; m->up && i < m->made->own->shards_count; i++) {
            const struct shard *s = m->made->own->shards[i].shard;
            enum loading_phase phase = HOLDING;
            uint64_t number;
            if (s && loading_now(s))
                (void)loading_state(s->loads->current, &phase, &number);
            c->replaced = c->replaced || phase >= LOADING;
            lost = lost || (s && c->replaced && any_lost(s));
        }
    }
    if (lost)
        c->load_lost_at = ++w->moment;
}

void ckpts_check(struct world *w)
{
    struct ckpts *c = w->ckpts;
    if (!c)
        return;
    if (w->loading)
        load_watch(w);
    if (c->asks && orders_full(world_scheduler(w)))
        c->orders_full_at = ++w->moment;
    if (simfs_struck(c->files) != c->struck) {
        c->struck = simfs_struck(c->files);
        c->failed_at = ++w->moment;
    }
    if (simfs_crashed(c->files))
        power_fails(w);
    folder_check(w);
    for (const struct machine *m = w->machines; m; m = next_scheduler(w, m)) {
        if (c->asks &&
            !c->death_came) /* that scheduler may answer, and die before any view names the death */
            c->death_came = death_came(m);
        const uint64_t back = m->up && m->made->scheduler ? sched_ckpt_returns(m->made->scheduler) : 0;
        /* servers may carry it out after the scheduler has given it up */
        c->returns = back ? back : c->returns;
        c->returns_at = back ? m->made->scheduler->lost->at : c->returns_at;
        const uint64_t begins = m->up && m->made->scheduler ? sched_ckpt_begins_with(m->made->scheduler) : 0;
        if (begins && w->restoring)
            begins_with(w, begins);
        if (m->up && m->made->scheduler && c->restored && w->restoring)
            begin_watch(w, m);
        struct bounds **begun = &c->begun[m->rank];
        const struct sched_ckpt *one =
            m->up && m->made->scheduler ? m->made->scheduler->ckpts->current : NULL;
        uint64_t id = one ? one->order.id : 0; /* one may end and the next begin in one event */
        if (id != c->begun_id[m->rank]) {
            free(*begun);
            *begun = id ? bounds_begin(w) : NULL;
            if (id)
                c->begun_at[m->rank] = bounds_from(*begun);
        }
        c->begun_id[m->rank] = id;
    }
    /* A scheduler that died before it could save a death had chosen a checkpoint for a loss that no view will
     * ever name: the next scheduler, of a later term, has that server alive. */
    if (c->returns && w->loss_view && c->returns_at >> 32 >= w->loss_first >> 32)
        returns(w, c->returns);
}

void ckpts_calm(struct world *w)
{
    if (!w->ckpts)
        return;
    simfs_plan(w->ckpts->files, SIMFS_FAIL, UINT64_MAX);
    simfs_lie(w->ckpts->files, 0);
}

void ckpts_end(struct world *w)
{
    if (w->ckpts)
        all_check(w);
}

/* ---- machines and jobs --------------------------------------------------------------------------------- */

void ckpts_machine(struct machine *m)
{
    struct world *w = m->world;
    paramo_node *node = m->made;
    if (!w->ckpts || m->role == PARAMO_ROLE_WORKER)
        return;
    disk_process_gone(m->folder, false, 0);
    node->fs = disk_fs(m->folder);
    node->ckpt_queue_bytes = w->schedule->ckpt_queue_bytes;
    sim_must(blocking_jobs_create(node->env, "checkpoints", &node->blocking_jobs));
}

void ckpts_machine_dies(struct machine *m)
{
    if (m->folder) /* in the middle of the work of its thread */
        disk_process_gone(m->folder, true, (unsigned)dice_draw(&m->world->ckpts->dice, 24));
}

void ckpts_scheduler(const struct machine *m, struct scheduler_config *config)
{
    const struct ckpts *c = m->world->ckpts;
    if (!c)
        return;
    config->fs = m->made->fs;
    config->blocking_jobs = m->made->blocking_jobs;
    config->checkpoint_full_every = m->world->schedule->ckpt_full_every;
    config->checkpoint_keep = m->world->schedule->ckpt_keep;
    config->checkpoint_every_ms = m->world->schedule->ckpt_every;
    config->on_loss_restore = m->world->schedule->restores;
    memcpy(config->checkpoint_dir, c->dir, sizeof c->dir);
    if (c->restored)
        memcpy(config->restore_dir, c->dir, sizeof c->dir);
}

static void folder_new(struct world *w)
{
    struct ckpts *c = w->ckpts;
    seen_free(c);
    (void)snprintf(c->dir, sizeof c->dir, "/c/%" PRIu32, w->jobs);
    c->replaced = false;
    c->load_lost_at = c->restarted_at = c->returns = c->restored = 0;
    memset(c->left_lost, 0, sizeof c->left_lost);
}

bool ckpts_again(struct world *w, bool wanted)
{
    struct ckpts *c = w->ckpts;
    if (!c)
        return false;
    folder_check(w);
    for (unsigned i = 0; i < 2; i++) {
        free(c->begun[i]);
        c->begun[i] = NULL;
        c->begun_id[i] = 0;
    }
    c->asks = c->again = NULL;
    c->again_at = 0;
    w->loading = w->restoring = c->replaced = false;
    c->load_lost_at = c->restarted_at = c->returns = 0;
    memset(c->left_lost, 0, sizeof c->left_lost);
    for (struct ckpt_seen *s = c->seen; s; s = s->next)
        s->until = 0;
    const struct ckpt_seen *last = ckpts_last(c, false);
    if (!wanted || !last) {
        folder_new(w);
        return false;
    }
    c->restored = last->number;
    bounds_restored(w, last->bounds);
    w->counts[PLAY_restores]++;
    return true;
}

void ckpts_make(struct world *w)
{
    const struct schedule *s = w->schedule;
    if (!s->ckpt)
        return;
    struct ckpts *c = calloc(1, sizeof *c);
    if (!c)
        abort();
    w->ckpts = c;
    c->dice = dice_of(s->seed, 6);
    sim_must(simfs_create(s->seed + 77, &c->files));
    simfs_set_sim(c->files, w->sim);
    sim_must(fs_make_dir(fs_of(c), "/c"));
    folder_new(w);
    for (uint32_t k = 0; k < w->count; k++)
        if (w->machines[k].role != PARAMO_ROLE_WORKER)
            w->machines[k].folder = disk_share(c->files);
}

void ckpts_free(struct world *w)
{
    struct ckpts *c = w->ckpts;
    if (!c)
        return;
    for (uint32_t k = 0; k < w->count; k++)
        if (w->machines[k].folder)
            disk_free(w->machines[k].folder);
    free(c->begun[0]);
    free(c->begun[1]);
    seen_free(c);
    simfs_destroy(c->files);
    free(c);
    w->ckpts = NULL;
}
