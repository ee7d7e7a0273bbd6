#include "sim/play.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/log.h"
#include "cluster/member/member_impl.h"
#include "server/shard/clearing.h"
#include "server/shard/shard_impl.h"
#include "sim/ckpts.h"
#include "sim/ckpts_state.h"
#include "sim/client_tasks.h"
#include "sim/clocks.h"
#include "sim/cover.h"
#include "sim/disk.h"
#include "sim/held.h"
#include "sim/hits.h"
#include "sim/invariants.h"
#include "sim/island.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/machine.h"
#include "sim/memory.h"
#include "sim/migrate_fault.h"
#include "sim/ops.h"
#include "sim/row_checks.h"
#include "sim/script.h"
#include "sim/sides.h"
#include "sim/task_calls.h"
#include "sim/user_tasks.h"
#include "sim/world.h"

enum {
    STEPS_MAX = 400000, /* limit of the faulty phase; far more than any schedule needs */
    /* time for all to finish in the calm period: two request timeouts, a join, a goodbye */
    CALM_SECONDS = 200,
    EARLY_REQUESTS = 20,
    ENOUGH = 100,      /* faults that have struck; until then faults that wait for a packet get ... */
    LINGER = 40000,    /* ... this many steps to meet one after the end of the list */
    CHECK_EVERY = 256, /* events between full checks */
    NEAR = 64, /* within this many steps of a fault each event is a step; farther away only answers are ... */
    TASKS_SHARE = 8, /* where there are tasks, one event in this many is theirs, and is no step */
    IDLE = 64        /* ... and one event in this many, so that an idle cluster reaches the fault, too */
};

/* a closed customer stays closed at least this long; its numbers follow the clock */
#define CLOSED_LEAST (100 * ENV_US)
#define CLOSED_MOST  (2 * ENV_SEC)
#define FOR_GOOD     (100 * ENV_SEC) /* a host stays away this long: longer than all timeouts */

/* ---- links --------------------------------------------------------------------------------------------- */

static void line_join(struct world *w, struct line *line, size_t fault)
{
    w->pending[fault] = (struct pending){.next = SIZE_MAX, .left = w->schedule->faults[fault].n};
    if (line->first == SIZE_MAX)
        line->first = fault;
    else
        w->pending[line->last].next = fault;
    line->last = fault;
    w->waiting++;
}

/* The first waiting fault of the link strikes this packet. False: there is none. */
static bool line_strikes(struct world *w, struct line *line, uint64_t cost)
{
    size_t fault = line->first;
    if (fault == SIZE_MAX)
        return false;
    struct pending *p = &w->pending[fault];
    hits_add(w, fault);
    p->left -= cost < p->left ? cost : p->left;
    if (!p->left) {
        line->first = p->next;
        w->waiting--;
    }
    return true;
}

static struct simnet_fate decide(void *arg, struct simnet_link *link)
{
    struct world *w = arg;
    struct road *l = &w->links[link->from][link->to];
    uint64_t now = sim_now(w->sim);
    struct simnet_fate fate = {.copies = 1};
    uint64_t draw = mix64(l->seed + ++l->packets);
    /* In the calm nothing overtakes: of many datagrams at once a chain's next member takes those in order only. */
    uint64_t delay = 50 * ENV_US + (w->calm ? 50 * ENV_US : draw % (100 * ENV_US));
    if (now < l->cut_until) {
        hits_add(w, l->cut_by);
        return (struct simnet_fate){0};
    }
    if (link->bytes_per_sec && now >= l->slow_until)
        link->bytes_per_sec = 0;
    else if (link->bytes_per_sec)
        hits_add(w, l->slow_by);
    if (line_strikes(w, &l->drop, 1))
        return (struct simnet_fate){0};
    if (now < l->lag_until) {
        delay += l->lag_ns;
        hits_add(w, l->lag_by);
    }
    if (line_strikes(w, &l->repeat, 1)) {
        fate.copies = 2;
        fate.delay[1] = delay + (draw >> 32) % (2 * ENV_MS);
    }
    uint64_t late = l->late.first == SIZE_MAX ? 0 : w->pending[l->late.first].left;
    if (line_strikes(w, &l->late, late))
        delay += late;
    fate.delay[0] = delay;
    return fate;
}

static void road_heal(struct road *l)
{
    static const struct line no_packets = {SIZE_MAX, SIZE_MAX};
    *l = (struct road){.link = l->link,
                       .seed = l->seed,
                       .packets = l->packets,
                       .drop = no_packets,
                       .repeat = no_packets,
                       .late = no_packets};
    l->link->bytes_per_sec = 0;
}

static void links_make(struct world *w)
{
    for (uint32_t a = 0; a < w->count; a++) {
        for (uint32_t b = 0; b < w->count; b++) {
            sim_must(simnet_link(w->net, w->nodes[a], w->nodes[b], &w->links[a][b].link));
            w->links[a][b].seed = mix64(w->schedule->seed + (a << 8 | b) + 1);
            road_heal(&w->links[a][b]);
        }
    }
}

static void links_heal(struct world *w)
{
    for (uint32_t a = 0; a < w->count; a++)
        for (uint32_t b = 0; b < w->count; b++)
            road_heal(&w->links[a][b]);
    w->waiting = 0;
}

/* ---- faults -------------------------------------------------------------------------------------------- */

static void strike_link(struct world *w, const struct fault *f, size_t i)
{
    struct road *l = &w->links[f->from][f->to];
    uint64_t now = sim_now(w->sim);
    switch (f->kind) {
    case FAULT_drop:
        line_join(w, &l->drop, i);
        break;
    case FAULT_repeat:
        line_join(w, &l->repeat, i);
        break;
    case FAULT_late:
        line_join(w, &l->late, i);
        break;
    case FAULT_cut:
        l->cut_until = now + f->n;
        l->cut_by = i;
        break;
    case FAULT_lag:
        l->lag_ns = f->n;
        l->lag_until = now + 10 * f->n;
        l->lag_by = i;
        break;
    case FAULT_slow:
        l->slow_until = now + f->n;
        l->link->bytes_per_sec = 100000;
        l->slow_by = i;
        break;
    default:
        if (w->machines[f->from].up) {
            van_sim_reset(w->machines[f->from].van, f->to);
            hits_add(w, i);
        }
    }
}

static unsigned machines_up(const struct world *w, uint32_t role)
{
    unsigned up = 0;
    for (uint32_t k = 0; k < w->count; k++)
        up += w->machines[k].up && w->machines[k].role == role;
    return up;
}

static unsigned servers_stay(const struct world *w)
{
    unsigned stay = 0;
    for (uint32_t k = 1; k <= w->schedule->servers; k++)
        stay += machine_joined(&w->machines[k]) && !w->machines[k].declared_dead && !w->machines[k].drains;
    return stay;
}

/* At most as many servers with copies die as there are replicas, except sometimes, to see that end, too. More
 * may die where lost rows return, as long as a server is left to have them. */
static bool spared(const struct world *w, const struct machine *m, const struct fault *f)
{
    bool copies = w->schedule->replicas || w->schedule->restores;
    if (!copies || m->role != PARAMO_ROLE_SERVER || f->n % 16 == 5)
        return false;
    return judge_needs(w, m) && !(w->schedule->restores && ckpts_there(w) && servers_stay(w) > 1);
}

/* A process that has not joined knows no job, and joins the one that it finds: that of the scheduler that
 * comes in this one's place, which has none of these rows. The simulator does not play two jobs at a time, so
 * no such process starts any more. */
static void unjoined_go(struct world *w)
{
    for (uint32_t k = 1; k < w->count; k++) {
        struct machine *m = &w->machines[k];
        if (m->up && m->role != PARAMO_ROLE_SCHEDULER && machine_member(m) &&
            machine_member(m)->state == MEMBER_JOINING)
            machine_kill(m, 0);
    }
}

/* What the application or the operator of a machine does. */
static bool comes_or_goes(struct machine *m, const struct fault *f)
{
    struct world *w = m->world;
    uint64_t now = sim_now(w->sim);
    if (sim_host_paused_until(m->host) > now)
        return false;
    if (f->kind == FAULT_idle)
        m->script.silent_until = now + f->n;
    else if (f->kind == FAULT_drain)
        return w->complete && !w->scheduler_lost && servers_stay(w) > w->schedule->replicas + 1 &&
               machine_drain(m, f->n); /* with fewer servers there would be fewer copies */
    else
        return machine_close_customer(m, (unsigned)(f->n % w->schedule->customers),
                                      f->n / 2 % 2 ? CLOSED_LEAST : CLOSED_LEAST + f->n % CLOSED_MOST);
    return true;
}

/* The disk of a server or scheduler; or the folder that all of them see. */
static void slow_disks(struct world *w, const struct fault *f, size_t i)
{
    uint64_t now = sim_now(w->sim), most = 8 * ENV_SEC, until = now + (20 * f->n < most ? 20 * f->n : most);
    for (uint32_t k = 0; k < w->count; k++) {
        const struct machine *m = &w->machines[k];
        if (m->up && m->role != PARAMO_ROLE_WORKER && (k == f->from || f->from != f->to)) {
            sim_host_slow_blocking_jobs(m->host, f->n, until);
            hits_add(w, i);
        }
    }
}

static int32_t drift_of(uint64_t n)
{
    int32_t ppm = (int32_t)(n / 2 < DRIFT_MOST ? n / 2 : DRIFT_MOST);
    return n % 2 ? -ppm : ppm;
}

static void strike_node(struct world *w, const struct fault *f, size_t i)
{
    struct machine *m = &w->machines[f->from];
    uint64_t n = f->n;
    if (!m->up)
        return;
    if (f->kind == FAULT_lie && m->role == PARAMO_ROLE_WORKER) {
        disk_lie(m->disk, 1 + (unsigned)(n % 6));
        hits_add(w, i);
        return;
    }
    if (f->kind == FAULT_lie || f->kind == FAULT_save || f->kind == FAULT_load || f->kind == FAULT_renew ||
        (f->kind == FAULT_disk && m->role == PARAMO_ROLE_SERVER)) {
        if (ckpts_strike(m, f))
            hits_add(w, i);
        return;
    }
    if (f->kind == FAULT_close || f->kind == FAULT_idle || f->kind == FAULT_drain) {
        if (comes_or_goes(m, f))
            hits_add(w, i);
        return;
    }
    if (f->kind == FAULT_memory) {
        memory_strike(m, i);
        return;
    }
    if (f->kind == FAULT_split || f->kind == FAULT_netsplit || f->kind == FAULT_amid) {
        sides_strike(w, f, i);
        return;
    }
    if (f->kind == FAULT_island) {
        island_strike(w, i);
        return;
    }
    w->jumped_at = f->kind == FAULT_jump ? ++w->moment : w->jumped_at;
    switch (f->kind) {
    case FAULT_pause:
        sim_host_pause(m->host, sim_now(w->sim) + n);
        hits_add(w, i);
        break;
    case FAULT_jump:
        sim_host_jump(m->host, n);
        hits_add(w, i);
        break;
    case FAULT_drift:
        sim_host_drift(m->host, drift_of(n));
        hits_add(w, i);
        break;
    case FAULT_freeze:
        sim_host_freeze(m->host, sim_now(w->sim) + n);
        hits_add(w, i);
        break;
    case FAULT_stall:
        if (m->role != PARAMO_ROLE_WORKER) {
            slow_disks(w, f, i);
            break;
        }
        m->disk_takes = n;
        m->disk_slow_until = sim_now(w->sim) + 20 * n;
        m->disk_slow_by = i;
        break;
    case FAULT_disk:
        if (m->http) {
            simetcd_fail(m->http, (enum simetcd_fault)(n % SIMETCD_FAULTS), (unsigned)(n / 4 % 8),
                         1 + (unsigned)(n / 32 % 6), (1 + n % 9000) * ENV_MS);
            hits_add(w, i);
        } else if (m->files) {
            simfs_plan(m->files, (enum simfs_fault)(n % SIMFS_FAULTS),
                       simfs_steps(m->files) + n / SIMFS_FAULTS % 16);
            hits_add(w, i);
        } else if (m->client_task) {
            disk_fail(m->disk, (enum simfs_fault)(n % SIMFS_FAULTS), (unsigned)(n / SIMFS_FAULTS % 16));
            hits_add(w, i);
        }
        break;
    case FAULT_migrate:
        if (migrate_fault_strike(w, f))
            hits_add(w, i);
        break;
    default:
        if (spared(w, m, f))
            return;
        if (m->role == PARAMO_ROLE_SCHEDULER && !w->schedule->durable) {
            /* The scheduler keeps nothing: a restarted one leads another job and knows no node. So this job
             * must have begun its work before, and no process that dies later can return. */
            if (w->serial - w->serial_before < EARLY_REQUESTS)
                return;
            w->scheduler_lost = true;
            unjoined_go(w);
        } else if (w->scheduler_lost && machines_up(w, m->role) == 1) {
            return;
        }
        hits_add(w, i);
        if (f->kind == FAULT_vanish)
            sides_vanish(w, m, n ? n : FOR_GOOD, i);
        if (m->files && f->n % 2) /* with the power; otherwise the kernel still writes what it was given */
            simfs_plan(m->files, SIMFS_CRASH, simfs_steps(m->files));
        if (!n && !w->complete)
            n = ENV_SEC; /* a cluster that was never complete waits for all nodes */
        machine_kill(m, n);
        if (m->disk && f->n % 2) /* the machine's power, not only the process */
            client_task_power_fails(m);
        client_task_check_files(m);
    }
}

/* True: the fault has struck something. */
static bool strike(struct world *w)
{
    const struct schedule *s = w->schedule;
    size_t before = w->next_fault;
    while (w->next_fault < s->count && s->faults[w->next_fault].step <= w->step) {
        size_t i = w->next_fault++;
        if (s->faults[i].kind <= FAULT_reset)
            strike_link(w, &s->faults[i], i);
        else
            strike_node(w, &s->faults[i], i);
    }
    return w->next_fault != before;
}

/* ---- a world ------------------------------------------------------------------------------------------- */

/* The place of the scheduler's state. */
static void stores_make(struct world *w)
{
    struct simfs **files = &w->machines[0].files;
    if (w->schedule->meta) {
        sim_must(simetcd_create(w->sim, &w->etcd));
        simetcd_watch(w->etcd, invariants_etcd, w);
    } else if (w->schedule->durable) {
        sim_must(simfs_create(w->schedule->seed, files));
        simfs_set_sim(*files, w->sim);
        sim_must(fs_make_dir(simfs_fs(*files), "/d"));
    }
}

static void stores_free(struct world *w)
{
    simfs_destroy(w->machines[0].files);
    simetcd_destroy(w->etcd);
    w->machines[0].files = NULL;
    w->etcd = NULL;
}

static void turn(void *arg, uint32_t host)
{
    struct world *w = arg;
    memory_of(host < w->count ? &w->machines[host] : NULL);
}

static void holds(void *arg, bool on)
{
    (void)arg;
    if (on)
        memory_hold();
    else
        memory_resume();
}

static const struct app_ops application = {.start = script_start,
                                           .stop = script_stop,
                                           .joined = script_joined,
                                           .wake = script_wake,
                                           .reader_opens = machine_reader_opens,
                                           .reader_closes = machine_reader_closes,
                                           .works = script_works,
                                           .over = script_over,
                                           .task_dies = client_task_die,
                                           .tasks_start = user_tasks_start,
                                           .tasks_join = user_tasks_join,
                                           .tasks_end = user_tasks_end,
                                           .handler = op_handler};

static void world_make(struct world *w, const struct schedule *s)
{
    w->schedule = s;
    w->app = &application;
    w->hit = calloc(s->count + 1, sizeof *w->hit);
    w->pending = calloc(s->count + 1, sizeof *w->pending);
    if (!w->hit || !w->pending)
        abort();
    w->dice = dice_of(s->seed, 2);
    w->clocks_dice = dice_of(s->seed, 40);
    w->clocks = dice_draw(&w->clocks_dice, 3) > 0;
    sim_must(sim_create(s->seed, &w->sim));
    w->turns = (struct sim_turns){turn, holds, w};
    sim_set_turns(w->sim, &w->turns);
    sim_must(simnet_create(w->sim, &w->net));
    simnet_set_decider(w->net, decide, w);
    sim_must(
        van_sim_watch(w->net, &(struct simvan_watch){invariants_watch_leaves, invariants_watch_arrives, w}));
    w->count = schedule_nodes(s);
    w->workers = &w->machines[1 + s->servers];
    for (uint32_t k = 0; k < w->count; k++) {
        struct machine *m = &w->machines[k];
        bool schedules = k == 0 || m == w->workers + s->workers, worker = !schedules && m >= w->workers;
        m->world = w;
        m->node = k;
        m->role = schedules ? PARAMO_ROLE_SCHEDULER : worker ? PARAMO_ROLE_WORKER : PARAMO_ROLE_SERVER;
        m->rank = schedules ? k > 0 : worker ? (uint32_t)(m - w->workers) : k - 1;
        (void)snprintf(m->name, sizeof m->name, "%s%u", schedules ? "sched" : worker ? "w" : "s", m->rank);
        cover_make(m);
        sim_must(sim_host_create(w->sim, k, &m->host));
        sim_must(simnet_node(w->net, m->name, &w->nodes[k]));
        if (worker)
            client_task_disk(m, s->seed + k);
    }
    stores_make(w);
    links_make(w);
    ledger_init(w);
    ckpts_make(w);
    task_calls_make(w);
    for (uint32_t k = 0; k < w->count; k++)
        if (s->extra && &w->machines[k] == &w->workers[s->workers - 1])
            machine_start_in(&w->machines[k], s->extra_after);
        else if (s->late && k == s->servers)
            machine_start_in(&w->machines[k], s->late_after);
        else
            machine_start(&w->machines[k]);
}

static void world_free(struct world *w)
{
    for (uint32_t k = w->count; k-- > 0;) {
        sim_cancel(w->sim, &w->machines[k].restart);
        machine_kill(&w->machines[k], 0);
        sim_cancel(w->sim, &w->machines[k].restart);
        if (w->machines[k].disk)
            disk_free(w->machines[k].disk);
        cover_free(&w->machines[k]);
    }
    ckpts_free(w);
    task_calls_free(w);
    stores_free(w);
    simnet_destroy(w->net);
    sim_destroy(w->sim);
    for (unsigned i = 0; i < SIM_QUARANTINE; i++)
        free(w->quarantine[i]);
    while (w->free_ops) {
        struct op *next = w->free_ops->next;
        free(w->free_ops);
        w->free_ops = next;
    }
    free(w->hit);
    free(w->pending);
}

/* The job has ended early (all its workers were dead at once, for example), or no process is left of a job
 * that has lost its scheduler: the rest of the faults strikes the next job. Or all processes are to die, and
 * a job begins with the last checkpoint and without the scheduler's state. */
static void world_again(struct world *w)
{
    w->past_view = w->over_view;
    /* a scheduler may have found the end that another one announced */
    for (uint32_t k = 0; k < w->count; k++)
        if (machine_end_view(&w->machines[k]) > w->past_view)
            w->past_view = machine_end_view(&w->machines[k]);
    for (uint32_t k = w->count; k-- > 0;) {
        struct machine *m = &w->machines[k];
        machine_kill(m, 0);
        sim_cancel(w->sim, &m->restart);
        sim_host_pause(m->host, 0);
        m->gone = m->has_stale = false;
        if (m->role == PARAMO_ROLE_WORKER)
            client_task_disk(m, w->schedule->seed + k + ++w->disks * SCHEDULE_NODES_MAX);
    }
    if (w->renew) {
        stores_free(w);
        stores_make(w);
        w->etcd_term = 0;
        w->past_view = 0;
        memset(w->term_told, 0, sizeof w->term_told);
        for (uint32_t k = 0; k < w->count; k++)
            w->machines[k].term = 0;
    }
    w->past_status = w->over_status;
    w->jobs++;
    w->serial_before = w->serial;
    bool continues = ckpts_again(w, w->renew || w->over_status);
    w->renew = w->complete = w->gathered = w->scheduler_lost = w->over = w->emptying = w->recovered = false;
    w->over_crashed = w->end_durable = false;
    memset(w->term_view, 0, sizeof w->term_view);
    w->over_status = PARAMO_OK;
    memset(w->deaths, 0, sizeof w->deaths);
    memset(w->holder, 0, sizeof w->holder);
    memset(w->copies_at, 0, sizeof w->copies_at);
    memset(w->left, 0, sizeof w->left);
    w->gone = 0;
    w->successions = 0;
    task_calls_forget(w);
    memset(w->death_view, 0, sizeof w->death_view);
    memset(w->lacked, 0, sizeof w->lacked);
    memset(w->barrier, 0, sizeof w->barrier);
    clocks_forget(w);
    w->island.until = w->island.commit_until = 0;
    w->deaths_seen = false;
    w->lost_at = w->ghost_at = 0;
    losses_forget(w);
    w->newest_tables = 0;
    w->newest_view = w->migrations = 0;
    w->pool_leaks = false;
    memset(w->sums_changing, 0, sizeof w->sums_changing);
    if (!continues) {
        memset(w->sums_seen, 0, sizeof w->sums_seen);
        memset(w->ledger, 0, sizeof w->ledger);
        memset(w->deals, 0, sizeof w->deals);
        w->sums_sent = w->sums_acked = 0;
        ledger_init(w);
    }
    for (uint32_t k = 0; k < w->count; k++)
        machine_start(&w->machines[k]);
}

/* Faults come after work: time in which all wait for one another counts little. */
static bool counts(const struct world *w, bool answered)
{
    const struct schedule *s = w->schedule;
    if (island_still(w) || (w->tasks && w->events % TASKS_SHARE == 1))
        return false;
    bool near = w->next_fault == s->count || s->faults[w->next_fault].step <= w->step + NEAR;
    return near || answered || w->events % IDLE == 0;
}

/* Events at one time without an end: a schedule has about 40,000 events. */
static void instant_check(struct world *w)
{
    enum { INSTANT_EVENTS = 1000000 };
    uint64_t now = sim_now(w->sim);
    w->instant_events = now == w->instant ? w->instant_events + 1 : 0;
    w->instant = now;
    if (w->instant_events >= INSTANT_EVENTS)
        judge_broken(w, "%d events came at one time, and there is no end of them", INSTANT_EVENTS);
}

static bool step(struct world *w)
{
    uint64_t answers = w->answers;
    bool struck = strike(w);
    if (w->broken[0] || !sim_step(w->sim))
        return false;
    w->events++;
    instant_check(w);
    uint32_t ran = sim_lane_host(w->sim), first = 0, end = w->count;
    if (ran < w->count)
        cover_watch(&w->machines[ran]);
    w->step += counts(w, w->answers != answers);
    if (!struck && ran < w->count) { /* one process has taken a step, the others are unchanged */
        first = ran;
        end = ran + 1;
    } else if (!struck && sim_was_network(w->sim)) {
        end = 0;
    }
    for (uint32_t k = first; k < end; k++)
        if (w->machines[k].role == PARAMO_ROLE_SCHEDULER)
            machine_scheduler_tick(&w->machines[k]);
        else
            machine_tick(&w->machines[k]);
    for (uint32_t k = first; k < end; k++)
        for (unsigned i = 0; i < w->schedule->customers; i++)
            held_carriers(w, &w->machines[k].customers[i]);
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        client_task_step(&w->workers[i]);
    ckpts_check(w);
    sides_step(w);
    island_step(w);
    invariants_step(w, first, end);
    if (w->events % CHECK_EVERY == 0) {
        held_update_all(w);
        row_checks_all(w, false);
    }
    return !w->broken[0];
}

/* ---- the calm ------------------------------------------------------------------------------------------ */

static bool finished(const struct world *w)
{
    for (uint32_t i = 0; i < w->schedule->workers; i++)
        if (!script_over(&w->workers[i]))
            return false;
    return true;
}

static void unfinished(struct world *w)
{
    char text[256] = "";
    size_t at = 0;
    for (uint32_t i = 0; i < w->schedule->workers; i++) {
        const struct machine *m = &w->workers[i];
        if (script_over(m))
            continue;
        at += (size_t)snprintf(
            text + at, sizeof text - at, " %s is in step %d (up %d, state %d) with %u and %u requests;",
            m->name, (int)m->script.step, m->up, (int)m->seen, m->customers[0].open, m->customers[1].open);
    }
    judge_broken(w, "%d seconds after the end of the faults some work has not ended:%s job %s", CALM_SECONDS,
                 text, w->over ? "over" : "not over");
}

/* Waits for rows that are still being removed in steps. */
static bool some_clear(const struct world *w)
{
    for (uint32_t k = 1; k <= w->schedule->servers; k++) {
        const struct machine *m = &w->machines[k];
        const struct member_slot *member_slot = m->up ? m->made->own : NULL;
        for (unsigned i = 0; member_slot && i < member_slot->shards_count; i++)
            if (member_slot->shards[i].shard && member_slot->shards[i].shard->clearing->tables)
                return true;
    }
    return false;
}

static void calm(struct world *w)
{
    for (uint32_t k = 0; k < w->count; k++)
        w->machines[k].memory.next = 0;
    links_heal(w);
    ckpts_calm(w);
    sides_heal(w);
    island_heal(w);
    w->calm = true;
    w->calm_since = sim_now(w->sim);
    for (uint32_t k = 0; k < w->count; k++) {
        sim_host_pause(w->machines[k].host, 0);
        sim_host_drift(w->machines[k].host, 0);
        sim_host_slow_blocking_jobs(w->machines[k].host, 0, 0);
    }
    if (w->schedule->extra &&
        w->workers[w->schedule->workers - 1].restart.slot) /* before the others have finished */
        machine_start_in(&w->workers[w->schedule->workers - 1], 0);
    for (uint32_t i = 0; i < w->schedule->workers; i++) /* what the application has postponed */
        if (w->workers[i].script.tick.slot)
            sim_must(sim_schedule(w->sim, &w->workers[i].script.tick, sim_now(w->sim)));
    uint64_t until = sim_now(w->sim) + CALM_SECONDS * ENV_SEC;
    while (!finished(w) && sim_next_at(w->sim) <= until) {
        if (!step(w))
            break;
        if (w->renew) {
            world_again(w);
            until = sim_now(w->sim) + CALM_SECONDS * ENV_SEC;
        }
    }
    if (!w->broken[0] && !finished(w))
        unfinished(w);
    /* The goodbyes: the scheduler ends the job when all workers have left. */
    while (!w->broken[0] && !w->over && !w->scheduler_lost && sim_next_at(w->sim) <= until)
        if (!step(w))
            break;
    if (!w->broken[0] && !w->over && !w->scheduler_lost)
        unfinished(w);
    while (!w->broken[0] && some_clear(w) && sim_next_at(w->sim) <= until)
        if (!step(w))
            break;
    /* Was the checkpoint that the job begins with not loaded? ckpts.c judges why. */
    if (!w->broken[0] && w->over && w->over_status != PARAMO_OK && w->over_status != PARAMO_E_NODE_LOST &&
        w->over_status != PARAMO_E_DATA_LOST && !(ckpts_restored(w) && w->restoring))
        judge_broken(w, "the job ended with %s", err_name(w->over_status));
    if (!w->broken[0])
        row_checks_all(w, true);
    ckpts_end(w);
    for (uint32_t i = 0; i < w->schedule->workers && !w->broken[0]; i++)
        client_task_check_files(&w->workers[i]);
}

/* ---- the play ------------------------------------------------------------------------------------------ */

struct ear {
    struct world *w;
    struct play_result *result;
};

/* What the product logs when a peer breaks the protocol: here all peers are its own. After an internal error the
 * process aborts, so the result has the text at once. */
static void overhear(void *arg, int level, const char *line)
{
    const struct ear *ear = arg;
    (void)level;
    bool internal = strncmp(line, "internal error", strlen("internal error")) == 0;
    if (internal || strstr(line, "broke the protocol") || strstr(line, "closing the connection of node"))
        judge_broken(ear->w, "%s", line);
    if (internal)
        memcpy(ear->result->text, ear->w->broken, sizeof ear->result->text);
}

const char *play_count_name(enum play_count count)
{
    static const char *const names[] = {
#define PLAY_NAME(name) #name,
        PLAY_COUNTS(PLAY_NAME)
#undef PLAY_NAME
    };
    return names[count];
}

void play(const struct schedule *schedule, struct play_result *result)
{
    struct world *w = calloc(1, sizeof *w);
    if (!w)
        abort();
    int level = log_level();
    struct ear ear = {w, result};
    *result = (struct play_result){0};
    if (level < LOG_INFO) {
        log_set_level(LOG_WARN);
        log_set_sink(overhear, &ear);
    }
    world_make(w, schedule);
    uint64_t linger = 0;
    while (w->events < STEPS_MAX &&
           (w->next_fault < schedule->count || (w->waiting && w->struck < ENOUGH && linger++ < LINGER))) {
        if (!step(w))
            break;
        if (w->over || w->renew || (w->scheduler_lost && (finished(w) || linger > LINGER / 40)))
            world_again(w);
    }
    if (!w->broken[0] && w->events == STEPS_MAX)
        judge_broken(w, "the faults do not end");
    if (!w->broken[0])
        calm(w);
    result->failed = w->broken[0] != 0;
    memcpy(result->text, w->broken, sizeof result->text);
    result->trace = sim_trace(w->sim);
    result->steps = w->events;
    result->sim_ns = sim_now(w->sim) - ENV_SEC;
    result->requests = w->serial;
    for (size_t i = 0; i < schedule->count; i++) {
        result->injected[schedule->faults[i].kind] += w->hit[i];
        result->injected_total += w->hit[i];
    }
    result->coverage = w->coverage;
    world_free(w);
    memcpy(result->counts, w->counts, sizeof result->counts);
    if (!result->failed && w->broken[0]) { /* a violation was found while the world was closed */
        result->failed = true;
        memcpy(result->text, w->broken, sizeof result->text);
    }
    log_set_sink(NULL, NULL);
    log_set_level(level);
    free(w);
}

/* ---- shrinking ----------------------------------------------------------------------------------------- */

void play_shrink(struct schedule *s, struct play_result *result, unsigned plays)
{
    struct schedule less = *s;
    struct play_result got;
    less.faults = malloc((s->count + 1) * sizeof *less.faults);
    if (!less.faults)
        return;
    for (size_t part = (s->count + 1) / 2; part && plays;) {
        bool shrunk = false;
        for (size_t from = 0; from < s->count && plays;) {
            size_t out = s->count - from < part ? s->count - from : part;
            memcpy(less.faults, s->faults, from * sizeof *s->faults);
            memcpy(less.faults + from, s->faults + from + out, (s->count - from - out) * sizeof *s->faults);
            less.count = s->count - out;
            plays--;
            play(&less, &got);
            if (!got.failed) {
                from += out;
                continue;
            }
            memcpy(s->faults, less.faults, less.count * sizeof *s->faults);
            s->count = less.count;
            *result = got;
            shrunk = true;
        }
        if (part == 1 && !shrunk)
            break;
        part = part > 1 ? part / 2 : 1;
    }
    free(less.faults);
}
