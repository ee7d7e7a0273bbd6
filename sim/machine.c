#include "sim/machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "cluster/meta/store_dir.h"
#include "cluster/meta/store_etcd.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_view.h"
#include "env/process.h"
#include "node/clock.h"
#include "node/member_slot.h"
#include "node/serve.h"
#include "node/tasks.h"
#include "sim/call_ends.h"
#include "sim/capabilities.h"
#include "sim/ckpts.h"
#include "sim/ckpts_state.h"
#include "sim/clocks.h"
#include "sim/cover.h"
#include "sim/filters.h"
#include "sim/held.h"
#include "sim/judge.h"
#include "sim/ledger.h"
#include "sim/losses.h"
#include "sim/memory.h"
#include "sim/observing.h"
#include "sim/world.h"
#include "wire/calls.h"
#include "wire/end.h"
#include "worker/client_impl.h"

static const char *const scheduler_addresses[] = {"scheduler:1", "scheduler:2"};
enum {
    REQUEST_MS = 20000,
    HEARTBEAT_MS = 1000,
    HEARTBEAT_TIMEOUT_MS = 10000,
    SCHEDULER_WAIT_MS = 1000,
    CONNECT_MS = 60000,
    DRAIN_SECONDS = 60
};

static void *must_have(void *p)
{
    if (!p)
        abort();
    return p;
}

/* ---- starting ------------------------------------------------------------------------------------------ */

/* By the scheduler's roster more servers are gone than may be. No other node may know of the last death. If no view of
 * the job was seen, the rule is that of its first view (copies_count). */
static void judge_lost(const struct machine *m)
{
    const struct world *w = m->world;
    const struct scheduler *s = m->made->scheduler;
    unsigned gone = w->gone;
    for (uint32_t i = 0; i < s->roster->slots[SLOTS_SERVERS].count && i < SIM_SERVERS; i++) {
        const struct sched_node *node = s->roster->slots[SLOTS_SERVERS].node[i];
        bool dead = node->state == SNODE_DEAD;
        if (w->copies_at[i])
            gone += dead || node->info.incarnation != w->copies_at[i];
        else
            gone += !w->holder[i] && (dead || node->info.recovered);
    }
    if (w->schedule->restores && ckpts_can_return(w))
        judge_broken(m->world, "the job has lost rows, and there is a checkpoint that has them");
    /* The servers that are left own all partitions in the view of the deaths: a chain that is long enough is
     * complete then, as are chains whose rows are being restored. */
    bool some_alone = false; /* a table without copies: a single death loses rows */
    for (unsigned t = 0; t < SIM_TABLES; t++)
        some_alone = some_alone || (t != SIM_USER && !judge_replicas(w, (enum sim_table)t));
    bool died = w->schedule->restores && ((w->lost_at && some_alone) || w->loss_view);
    if (judge_enough(w, gone) && !died)
        judge_broken(m->world, "the job has lost rows, and %u servers have died since all had their copies",
                     gone);
}

/* The end of a job stays in the store if the store cannot be emptied (its disk fails). The next scheduler
 * over that store finds the end and announces it again, although all nodes of that job are gone. The present
 * job loses nothing by that, and the other one was judged at its end. View numbers only rise in one store, so
 * a view of the earlier job is known by its number. */
static bool told_again(const struct machine *m, paramo_err status)
{
    const struct world *w = m->world;
    return m->found_end && m->found_view <= w->past_view && status == w->past_status;
}

uint64_t machine_end_view(const struct machine *m)
{
    const struct scheduler *s = m->up ? m->made->scheduler : NULL;
    return s && (m->found_end || s->state == SCHED_ENDING || s->state == SCHED_OVER) ? s->view->number : 0;
}

/* Does it say that the job is over? Otherwise it is an error of the store, and the job goes on. */
static bool says_over(paramo_err status)
{
    return status == PARAMO_OK || status == PARAMO_E_NODE_LOST || status == PARAMO_E_DATA_LOST ||
           status == PARAMO_E_SHUTDOWN;
}

static void job_ended(struct machine *m, paramo_err status)
{
    struct world *w = m->world;
    if (status == PARAMO_E_FENCED || !judge_scheduler_end_durable(m->made->scheduler)) {
        if (says_over(status))
            judge_broken(w, "%s says that the job has ended with %s, and that is not durable", m->name,
                         err_name(status));
        m->fenced = true;
        return;
    }
    /* A former leader may have announced the end, and the next one announces it again. So does the next scheduler
     * over a store that was not emptied, because the machine crashed at that: it finds the end there. */
    if (w->over && !w->schedule->meta && !(w->over_crashed && m->found_end))
        judge_broken(w, "the job ended twice");
    if (m->found_end && status != m->found_status)
        judge_broken(w, "the job has ended with %s, and the scheduler that starts again says %s",
                     err_name(m->found_status), err_name(status));
    if (status == PARAMO_E_DATA_LOST && !told_again(m, status))
        judge_lost(m);
    if (status == PARAMO_E_MEMORY && !w->restoring && !told_again(m, status))
        judge_broken(w, "the job ended, because there was no memory");
    w->over = true;
    w->over_status = status;
    w->over_view = m->made->scheduler->view->number;
    w->over_crashed = m->files && simfs_crashed(m->files);
}

static void job_over(void *arg, paramo_err status, const char *text)
{
    (void)text;
    memory_hold();
    job_ended(arg, status);
    memory_resume();
}

/* In half of the schedules a turn of the scheduler is short, so that other events come between two of them. */
static void scheduler_turns(struct scheduler *scheduler, const struct schedule *s)
{
    if (mix64(s->seed + 41) % 2) {
        scheduler->calls->most = scheduler->saves->most = 1;
        scheduler->calls->pause = scheduler->saves->pause = 100000;
    }
}

static void create_scheduler(struct machine *m, struct store *store, const struct store_state *found)
{
    const struct schedule *s = m->world->schedule;
    struct scheduler_config config = {.van = m->van,
                                      .lane = m->made->control,
                                      .address = scheduler_addresses[m->rank],
                                      .token = "token",
                                      .num_servers = s->servers - s->late,
                                      .num_workers = s->workers - s->extra,
                                      .replicas = s->replicas,
                                      .heartbeat_ms = HEARTBEAT_MS,
                                      .heartbeat_timeout_ms = HEARTBEAT_TIMEOUT_MS,
                                      .recovery_ms = s->recovery_ms,
                                      .migration_partitions = s->migration_partitions,
                                      .store = store,
                                      .found = found,
                                      .arg = m,
                                      .over = job_over};
    ckpts_scheduler(m, &config);
    if (scheduler_create(&config, &m->made->scheduler))
        judge_broken(m->world, "a scheduler cannot start: %s", err_text());
    else {
        m->made->store = NULL; /* the scheduler's */
        scheduler_turns(m->made->scheduler, s);
    }
}

/* Does it empty its store at the end of its job? It may die before it reports so here. */
static void end_check(const struct machine *m)
{
    struct world *w = m->world;
    const struct scheduler *s = m->made->scheduler;
    if (!s || s->state != SCHED_OVER || m->fenced)
        return;
    if (!w->emptying && s->end->status == PARAMO_E_DATA_LOST && !told_again(m, s->end->status))
        judge_lost(m);
    w->emptying = true;
    w->emptying_status = s->end->status;
}

/* The last term that a scheduler of this store has begun; 0: none. */
static uint32_t last_term(const struct world *w)
{
    uint32_t last = SIM_TERMS - 1;
    while (last && !w->term_told[last])
        last--;
    return last;
}

/* The later one of two starts has the higher term. In etcd the transaction is the start (invariants_etcd() sees
 * their order). A scheduler that stands still behind its transaction reports a lower term than one that took
 * over in that time, but never one that was reported before. */
static void judge_term(struct world *w, uint32_t term)
{
    uint32_t last = last_term(w);
    if (w->schedule->meta ? w->term_told[term] || term > w->etcd_term : term <= last)
        judge_broken(w, "the scheduler's term is %" PRIu32 " after %" PRIu32, term,
                     w->schedule->meta ? w->etcd_term : last);
}

/* A scheduler finds all that any node has seen of terms below its own. If it finds nothing, an earlier one
 * may have died between emptying its store, since the job was over, and reporting that: then the next job
 * begins. */
static void judge_found_view(struct world *w, const struct store_state *found, uint64_t number)
{
    uint64_t seen = 0;
    for (uint32_t term = 0; term < found->term; term++)
        seen = w->term_view[term] > seen ? w->term_view[term] : seen;
    if (number >= seen || w->over)
        return;
    if (!found->bytes && w->emptying) {
        w->over = true;
        w->over_status = w->emptying_status;
        return;
    }
    judge_broken(w, "view %" PRIx64 " was seen, and the scheduler that starts again has %" PRIx64, seen,
                 number);
}

/* What a restarted scheduler has found: nothing that any node has seen may be missing. */
static void judge_found(struct machine *m, const struct store_state *found)
{
    struct world *w = m->world;
    struct reader records = reader_over(found->records, found->bytes), cell;
    uint64_t id, number = 0;
    m->found_end = false;
    while (store_record_next(&records, &id, &cell)) {
        struct view *view;
        char text[CALL_TEXT_MAX];
        if (id >> 56 == RECORD_END) {
            m->found_end = true;
            if (end_decode(&cell, &m->found_status, text))
                judge_broken(w, "an end that was saved cannot be read: %s", err_text());
        }
        if (id >> 56 != RECORD_VIEW)
            continue;
        (void)read_u32(&cell); /* the job's size */
        (void)read_u32(&cell);
        if (view_decode(&cell, &view)) {
            judge_broken(w, "a view that was saved cannot be read: %s", err_text());
            return;
        }
        number = view->number;
        view_unref(view);
    }
    if (found->term >= SIM_TERMS) {
        judge_broken(w, "the scheduler's term is %" PRIu32, found->term);
        return;
    }
    judge_term(w, found->term);
    judge_found_view(w, found, number);
    if (judge_end_durable(w) && !w->over && found->bytes && !m->found_end)
        judge_broken(w,
                     "the end of the job was durable, and the scheduler that starts again does not find it");
    m->found_view = number;
    w->counts[PLAY_took_over] += w->schedule->meta && w->complete && found->term > 1;
    w->term_told[found->term] = true;
    m->term = found->term;
}

static void started(struct machine *m, paramo_err status, const struct store_state *found)
{
    if (status == PARAMO_E_CLOSED) { /* a standby scheduler: the job is over */
        m->world->over = true;
        return;
    }
    m->cannot_start = status != PARAMO_OK;
    if (status == PARAMO_E_CORRUPT || status == PARAMO_E_FORMAT)
        judge_broken(m->world, "what the scheduler has saved cannot be read: %s", err_text());
    if (status)
        return;
    judge_found(m, found);
    create_scheduler(m, m->made->store, found);
}

static void store_started(void *arg, paramo_err status, const struct store_state *found)
{
    memory_hold();
    started(arg, status, found);
    memory_resume();
}

static void open_etcd(struct machine *m)
{
    paramo_node *node = m->made;
    sim_must(simetcd_http(m->world->etcd, &m->http));
    struct store_etcd_config config = {.lane = node->control,
                                       .blocking_jobs = node->files,
                                       .http = m->http,
                                       .meta = "etcd://etcd:1,etcd:2",
                                       .name = scheduler_addresses[m->rank],
                                       .patience_ms = CONNECT_MS};
    sim_must(store_etcd_open(&config, &node->store));
}

static void start_scheduler(struct machine *m)
{
    paramo_node *node = m->made;
    if (!lane_enter(node->control))
        abort();
    if (m->world->schedule->meta) {
        sim_must(blocking_jobs_create(node->env, "files", &node->files));
        open_etcd(m);
        sim_must(store_start(node->store, store_started, m));
    } else if (m->files) {
        sim_must(blocking_jobs_create(node->env, "files", &node->files));
        struct store_dir_config config = {
            .lane = node->control, .blocking_jobs = node->files, .fs = simfs_fs(m->files), .dir = "/d/state"};
        sim_must(store_dir_open(&config, &node->store));
        sim_must(store_start(node->store, store_started, m));
    } else {
        create_scheduler(m, NULL, NULL);
    }
    lane_leave(node->control);
}

void machine_scheduler_tick(struct machine *m)
{
    bool ends = m->cannot_start || m->fenced || (m->files && simfs_crashed(m->files));
    if (m->up)
        end_check(m);
    losses_watch(m);
    if (m->up && told_again(m, m->found_status) && machine_end_view(m) > m->world->past_view)
        m->world->past_view = machine_end_view(m); /* its own views, which the next scheduler may find */
    if (!m->up || !ends)
        return;
    m->cannot_start = m->fenced = false;
    machine_kill(m, 50 * ENV_MS);
}

static void start_member_slot(struct machine *m)
{
    paramo_node *node = m->made;
    struct member_slot *member_slot = must_have(calloc(1, sizeof *member_slot));
    *member_slot = (struct member_slot){
        .node = node, .role = m->role, .rank = -1, .incarnation = env_random(node->env) | 1};
    node->member_slots = node->own = member_slot;
    node->member_slots_count = 1;
    if (member_slot->incarnation >> 8 & 3) /* pages: so small that even a table of few keys has several */
        node->scan_keys = 1 + (member_slot->incarnation >> 16) % 24;
    node->turn_records = 1 + (member_slot->incarnation >> 24) % 3;
    node->turn_tables = (member_slot->incarnation >> 28) % 4;
    char listen[16];
    (void)snprintf(listen, sizeof listen, "%s:1", m->name);
    if (m->role == PARAMO_ROLE_SERVER) {
        member_slot->shards_count = m->world->schedule->shards;
        member_slot->shards = must_have(calloc(member_slot->shards_count, sizeof *member_slot->shards));
        for (unsigned i = 0; i < member_slot->shards_count; i++)
            sim_must(lane_create(node->env, "shard", 0, &member_slot->shards[i].lane));
    }
    if (!lane_enter(node->control))
        abort();
    /* The listen address of a worker is not used. */
    sim_must(member_slot_open(member_slot, node->config.scheduler, listen));
    lane_leave(node->control);
}

void machine_start(struct machine *m)
{
    struct world *w = m->world;
    paramo_node *node = must_have(calloc(1, sizeof *node));
    m->made = node;
    m->terms = last_term(w);
    m->seen = MEMBER_SLOT_JOINING;
    m->memory.next = m->memory.failed = 0;
    m->view_seen = m->shard_view_seen[0] = m->shard_view_seen[1] = 0;
    memset(m->combined_seen, 0, sizeof m->combined_seen);
    m->drains = false;
    judge_dead(m, false);
    memset(m->overdue, 0, sizeof m->overdue);
    m->place = -1;
    memset(m->sums, 0, sizeof m->sums);
    sim_must(van_sim_create(w->net, m->name, &m->van));
    van_sim_set_faulty(m->van, w->schedule->datagrams);
    m->van->capabilities = capabilities_draw(w, m->node);
    node->env = sim_host_env(m->host);
    node->van = m->van;
    node->interrupt_fd = -1;
    node->generation = process_generation();
    node->config =
        (paramo_config){.roles = m->role,
                        .scheduler = w->schedule->meta ? "scheduler:1,scheduler:2" : scheduler_addresses[0],
                        .token = "token",
                        .connect_timeout_ms = CONNECT_MS,
                        .request_timeout_ms = REQUEST_MS,
                        .heartbeat_ms = HEARTBEAT_MS,
                        .heartbeat_timeout_ms = HEARTBEAT_TIMEOUT_MS,
                        .scheduler_wait_ms = SCHEDULER_WAIT_MS,
                        .weight = SIM_WEIGHT,
                        .max_message_bytes = 1 << 20};
    node->handlers[0] = (struct handler){.state = HANDLER_OPEN, .fn = w->app->handler, .arg = m};
    node->handlers_used = 1;
    sim_must(lane_create(node->env, "control", 0, &node->control));
    ckpts_machine(m);
    m->up = true;
    /* connected to it after it has joined */
    w->migrations += w->schedule->late && m->node == w->schedule->servers;
    if (m->role == PARAMO_ROLE_SCHEDULER) {
        start_scheduler(m);
    } else {
        m->world->app->tasks_start(m);
        start_member_slot(m);
        if (m->role == PARAMO_ROLE_WORKER)
            m->world->app->start(m);
    }
    cover_watch(m);
}

/* ---- customers ----------------------------------------------------------------------------------------- */

/* A worker, with the members that the product's worker does not have. */
struct opened {
    paramo_worker worker;
    struct machine *machine;
    struct view_feed feed; /* of a reader: its observer's views */
};

enum { READER = 1 }; /* the customer that may be one */

static void takes_view(void *target, struct view *view)
{
    client_set_view(target, view);
}

/* A reader's process has no membership whose views could come. */
static void takes_none(void *target, struct view *view)
{
    (void)target, (void)view;
}

static struct opened *opened_of(paramo_worker *worker)
{
    return container_of(worker, struct opened, worker);
}

static void need_run(struct lane_task *task)
{
    paramo_worker *worker = container_of(task, paramo_worker, need);
    struct machine *m = opened_of(worker)->machine;
    atomic_store(&worker->need_posted, false);
    if (m->customers[worker->customer].reads)
        observing_need(m, atomic_load(&worker->needed));
    else
        view_feed_offer(&worker->feed, member_view(machine_member(m)));
}

static void needs_view(void *arg, uint64_t number)
{
    paramo_worker *worker = arg;
    atomic_store(&worker->needed, number);
    if (!atomic_exchange(&worker->need_posted, true))
        lane_post(worker->node->control, &worker->need);
}

static void nudge_run(struct lane_task *task)
{
    atomic_store(&container_of(task, paramo_worker, nudge)->nudge_posted, false);
}

static void customer_reopen(struct sim_event *event);

/* The second customer of every eighth worker is a reader: it makes no push that counts. */
static bool reads(const struct machine *m, unsigned customer)
{
    return customer == READER && mix64(m->world->schedule->seed ^ m->node) % 8 == 0;
}

static void customer_open(struct machine *m, unsigned i)
{
    paramo_node *node = m->made;
    struct member *member = node->own->member;
    struct customer *c = &m->customers[i];
    struct opened *opened = must_have(calloc(1, sizeof *opened));
    paramo_worker *worker = &opened->worker;
    opened->machine = m;
    *c = (struct customer){
        .worker = worker, .machine = m, .reads = reads(m, i), .reopen.fire = customer_reopen};
    worker->node = node;
    worker->customer = i;
    worker->session = mix64(node->own->incarnation ^ mix64(sim_now(m->world->sim) << 1 | i)) | 1;
    worker->need.run = need_run;
    worker->nudge.run = nudge_run;
    sim_must(lane_create(node->env, "customer", 0, &worker->lane));
    struct client_config config = {.lane = worker->lane,
                                   .van = m->van,
                                   .view = c->reads ? observing_view(m) : member_view(member),
                                   .node = c->reads ? 0 : member_id(member),
                                   .incarnation = node->own->incarnation,
                                   .customer = i,
                                   .token = "token",
                                   .frame_bytes = node->config.max_message_bytes,
                                   .chunk_bytes = m->world->schedule->chunk_bytes,
                                   .portion_keys = 2 + (uint32_t)(node->own->incarnation >> 36) % 12,
                                   .turn_keys = 1 + (uint32_t)(node->own->incarnation >> 32) % 4 * 50,
                                   .request_timeout_ms = REQUEST_MS,
                                   .connect_timeout_ms = 5000,
                                   .need_view = needs_view,
                                   .need_clock = clock_needed,
                                   .arg = worker};
    filters_draw(m, &m->customers[i], &config);
    sim_must(client_create(&config, &worker->client));
    view_feed_init(&worker->feed, worker->lane, c->reads ? takes_none : takes_view, worker->client);
    view_feed_init(&opened->feed, worker->lane, takes_view, worker->client);
    if (c->reads)
        m->observing.feed = &opened->feed;
    worker->next = node->workers;
    node->workers = worker;
}

void machine_open_customers(struct machine *m)
{
    for (unsigned i = 0; i < m->world->schedule->customers; i++)
        if (reads(m, i))
            observing_begin(m);
        else
            customer_open(m, i);
}

void machine_reader_opens(struct machine *m)
{
    struct customer *c = &m->customers[READER];
    if (c->worker || c->reopen.slot || !observing_view(m))
        return; /* it opens when its time comes, or when there is a view */
    customer_open(m, READER);
    m->world->app->wake(m);
}

static void customer_reopen(struct sim_event *event)
{
    struct customer *c = container_of(event, struct customer, reopen);
    struct machine *m = c->machine;
    if (sim_host_paused_until(m->host) > sim_now(m->world->sim)) {
        sim_must(sim_schedule(m->world->sim, event, sim_host_paused_until(m->host)));
    } else if (machine_joined(m)) {
        m->world->counts[PLAY_reopened]++;
        if (c->reads) {
            machine_reader_opens(m);
        } else {
            customer_open(m, (unsigned)(c - m->customers));
            m->world->app->wake(m);
        }
    }
}

static void drain(struct lane *lane)
{
    if (!lane_enter(lane))
        abort();
    lane_leave(lane);
}

static void end_lane(struct machine *m, struct lane *lane)
{
    if (!lane_enter(lane))
        abort();
    van_abandon(m->van, lane);
    lane_leave(lane);
    lane_destroy(lane);
}

static void customer_end(struct machine *m, struct customer *c)
{
    paramo_worker *worker = c->worker;
    held_ends(m->world, c);
    client_close(worker->client);
    drain(m->made->control); /* the client may have asked for a view until now */
    if (!lane_enter(m->made->control))
        abort();
    clocks_close(c);
    lane_leave(m->made->control);
    drain(worker->lane);
    if (m->dying)
        m->world->app->task_dies(m);
    m->world->counts[PLAY_refused_moved] += (uint32_t)worker->client->counts->moved;
    m->world->counts[PLAY_filters_again] += (uint32_t)worker->client->counts->filters_again;
    filters_count(m->world, worker->client);
    client_free(worker->client);
    c->held = (struct held){0}; /* it is lost with its worker */
    memset(c->held_at_end, 0, sizeof c->held_at_end);
    end_lane(m, worker->lane);
    view_feed_fini(&worker->feed);
    view_feed_fini(&opened_of(worker)->feed);
    if (c->reads)
        m->observing.feed = NULL;
    free(opened_of(worker));
    c->worker = NULL;
    if (c->open || c->calls)
        judge_broken(m->world, "%s: %u requests of customer %td had no end when it was closed", m->name,
                     c->open + c->calls, c - m->customers);
}

static bool customer_close(struct machine *m, unsigned customer)
{
    struct customer *c = &m->customers[customer];
    if (!c->worker || !machine_joined(m) || m->script.step == SCRIPT_LEAVE ||
        (m->client_task && m->client_task_customer == customer))
        return false;
    paramo_worker **at = &m->made->workers;
    while (*at != c->worker)
        at = &(*at)->next;
    *at = c->worker->next;
    c->closing = true;
    customer_end(m, c);
    c->closing = false;
    cover_watch(m);
    return true;
}

bool machine_close_customer(struct machine *m, unsigned customer, uint64_t ns)
{
    struct customer *c = &m->customers[customer];
    if (!customer_close(m, customer))
        return false;
    sim_must(sim_schedule(m->world->sim, &c->reopen, sim_now(m->world->sim) + ns));
    return true;
}

bool machine_reader_closes(struct machine *m)
{
    return !m->customers[READER].worker || customer_close(m, READER);
}

/* ---- servers that give away what they have ---- */

static void drain_answered(struct member_call *call, paramo_err status)
{
    (void)call, (void)status; /* it may be done although the caller does not know */
}

bool machine_drain(struct machine *m, uint64_t ns)
{
    struct lane *control = m->made->control;
    if (m->drains || !machine_joined(m) || m->declared_dead)
        return false;
    if (!lane_enter(control))
        abort();
    m->drain = (struct member_call){.done = drain_answered, .arg = m};
    m->drained_ns = ns;
    m->drains = !member_drain(machine_member(m), &m->drain, lane_now(control) + DRAIN_SECONDS * ENV_SEC);
    lane_leave(control);
    m->world->migrations += m->drains;
    return m->drains;
}

/* ---- dying --------------------------------------------------------------------------------------------- */

static void release_late_answers(struct machine *m)
{
    while (m->late) {
        struct late_answer *late = m->late;
        m->late = late->next;
        sim_cancel(m->world->sim, &late->event);
        sim_must(paramo_answer(late->request, m->sums[0], late->info->pull ? late->info->n : 0, NULL));
        free(late);
    }
}

static void apps_end(struct machine *m, struct node_shard *s)
{
    if (!lane_enter(m->made->apps))
        abort();
    dispatch_close(&s->dispatch);
    shard_close(s->shard);
    s->shard = NULL;
    lane_leave(m->made->apps);
    end_lane(m, m->made->apps);
    view_feed_fini(&s->feed);
    tasks_free(m->made);
}

static void member_slot_end(struct machine *m, struct member_slot *member_slot)
{
    for (unsigned i = 0; i < member_slot->shards_count; i++) {
        struct node_shard *s = &member_slot->shards[i];
        if (!lane_enter(s->lane))
            abort();
        shard_close(s->shard);
        s->shard = NULL; /* as in a product's node: a task that was posted before finds none */
        lane_leave(s->lane);
    }
    release_late_answers(m);
    blocking_jobs_destroy(m->made->blocking_jobs);
    for (unsigned i = 0; i < member_slot->shards_count; i++) {
        end_lane(m, member_slot->shards[i].lane);
        view_feed_fini(&member_slot->shards[i].feed);
    }
    if (m->made->apps)
        apps_end(m, &member_slot->app_endpoint);
    drain(m->made->control); /* tasks that shards have posted there */
    free(member_slot->shards);
    free(member_slot);
}

static void restart_due(struct sim_event *event)
{
    struct machine *m = container_of(event, struct machine, restart);
    if (m->world->scheduler_lost && m->role != PARAMO_ROLE_SCHEDULER)
        m->gone = true; /* no scheduler is left to give it a place */
    else
        machine_start(m);
}

void machine_start_in(struct machine *m, uint64_t ns)
{
    m->restart.fire = restart_due;
    sim_must(sim_schedule(m->world->sim, &m->restart, sim_now(m->world->sim) + ns));
}

void machine_kill(struct machine *m, uint64_t again_ns)
{
    struct world *w = m->world;
    paramo_node *node = m->made;
    if (!m->up)
        return;
    m->dying = true;
    cover_dies(m, m->seen != MEMBER_SLOT_ENDED && m->seen != MEMBER_SLOT_FAILED && !w->over);
    ckpts_machine_dies(m);
    sim_host_pause(m->host, 0);
    van_sim_crash(m->van);
    if (m->role == PARAMO_ROLE_WORKER)
        m->world->app->stop(m);
    for (unsigned i = 0; i < SIM_CUSTOMERS; i++)
        sim_cancel(w->sim, &m->customers[i].reopen);
    m->world->app->tasks_end(m);
    while (node->workers) {
        struct customer *c = &m->customers[node->workers->customer];
        node->workers = node->workers->next;
        customer_end(m, c);
    }
    if (!lane_enter(node->control))
        abort();
    observing_end(m);
    if (node->own)
        member_slot_close_control(node->own);
    end_check(m); /* what was due while it stood still may have run just now, on its lane */
    w->end_durable = w->end_durable || (node->scheduler && judge_scheduler_end_durable(node->scheduler));
    scheduler_destroy(node->scheduler);
    store_close(node->store);
    lane_leave(node->control);
    blocking_jobs_destroy(node->files);
    if (node->own)
        member_slot_end(m, node->own);
    else
        blocking_jobs_destroy(node->blocking_jobs);
    end_lane(m, node->control);
    van_destroy(m->van);
    free(node);
    if (m->files && simfs_crashed(m->files))
        simfs_restart(m->files);
    m->made = NULL;
    m->http = NULL;
    m->fenced = m->cannot_start = false;
    m->van = NULL;
    m->up = m->dying = false;
    if (m->role == PARAMO_ROLE_WORKER && m->place >= 0)
        w->worker_changed[m->place] = w->moment;
    if (m->role == PARAMO_ROLE_SERVER)
        w->server_gone_at = ++w->moment;
    if (m->role == PARAMO_ROLE_SERVER && m->place >= 0)
        ledger_server_died(w, (unsigned)m->place);
    if (again_ns)
        machine_start_in(m, again_ns);
    else
        m->gone = true;
}

/* ---- after each event ---------------------------------------------------------------------------------- */

static void joined(struct machine *m)
{
    struct world *w = m->world;
    const struct view *view = member_view(machine_member(m));
    if (m->role == PARAMO_ROLE_WORKER)
        w->worker_changed[call_ends_place(m)] = w->moment;
    if (!w->complete) {
        w->complete = true;
        ledger_owners(w, view);
    }
    m->world->app->tasks_join(m);
    if (m->role == PARAMO_ROLE_WORKER) {
        w->restoring = false;
        m->world->app->joined(m);
    }
}

/* Does the job's scheduler count this process among the living? Its view of a death comes after it has told the
 * node. */
static bool counted(const struct machine *m)
{
    const struct scheduler *s = world_scheduler(m->world);
    const struct slot_list *slots =
        s ? &s->roster->slots[m->role == PARAMO_ROLE_SERVER ? SLOTS_SERVERS : SLOTS_WORKERS] : NULL;
    bool lives = false;
    for (uint32_t i = 0; slots && i < slots->count; i++) {
        const struct sched_node *node = slots->node[i];
        lives = lives || (node && node->info.incarnation == m->made->own->incarnation &&
                          (node->state == SNODE_JOINED || node->state == SNODE_ABSENT));
    }
    return lives;
}

/* May a scheduler before the present one have told it of its death? That one may have died, or lost the lead, before
 * the death was durable, and what it has told comes late. */
static bool had_another(const struct machine *m)
{
    return last_term(m->world) > m->terms;
}

/* May a process end with this code? */
static bool may_end(const struct machine *m, paramo_err code)
{
    const struct world *w = m->world;
    bool ends = judge_end_durable(w);
    switch (code) {
    case PARAMO_E_FENCED:
        return m->declared_dead || ends || !counted(m) || had_another(m);
    case PARAMO_E_MEMORY:
        return m->memory.failed || ends;
    case PARAMO_E_DATA_LOST: /* the end of the job shows whether that is right */
        return ends;
    case PARAMO_OK: /* it has left, or has been drained */
        return ends || m->drains || m->script.step == SCRIPT_LEAVE || m->script.step == SCRIPT_GONE;
    case PARAMO_E_SHUTDOWN:
    case PARAMO_E_NODE_LOST:
        return ends;
    case PARAMO_E_NO_SCHEDULER:
    case PARAMO_E_TIMEOUT: /* by its own clock, or by the scheduler's */
        return true;
    default: /* the checkpoint that the job was to begin with was not loaded; ckpts.c judges why */
        return ends && ckpts_restored(w) && w->restoring;
    }
}

static void ended(struct machine *m)
{
    struct world *w = m->world;
    paramo_err code = m->made->own->code;
    if (m->seen == MEMBER_SLOT_ENDED && code == PARAMO_E_NO_SCHEDULER && w->scheduler_lost)
        return; /* pushes and pulls continue without a scheduler */
    bool failed = m->seen == MEMBER_SLOT_FAILED;
    /* the checkpoint that the job was to begin with was not loaded */
    bool no_start = failed && ckpts_restored(w) && w->restoring;
    if (!no_start && !may_end(m, code))
        judge_broken(w, "%s %s %s, without a cause: %s", m->name, failed ? "could not join:" : "ended with",
                     err_name(code), m->made->own->text);
    if (m->seen == MEMBER_SLOT_ENDED && (code == PARAMO_OK || code == PARAMO_E_NODE_LOST) &&
        w->over_status == PARAMO_OK) {
        if (m->role == PARAMO_ROLE_WORKER)
            return; /* its script has left */
        bool drained = m->drains && code == PARAMO_OK && !w->over;
        w->counts[PLAY_drained] += drained;
        machine_kill(m, drained ? m->drained_ns : 0);
        return;
    }
    /* The process's supervisor restarts it, unless its job has ended. */
    bool again = !w->scheduler_lost && !w->over && code != PARAMO_E_SHUTDOWN && code != PARAMO_E_NODE_LOST;
    machine_kill(m, again ? 50 * ENV_MS : 0);
}

void machine_tick(struct machine *m)
{
    if (!m->up || !m->made->own)
        return;
    enum member_slot_state state = (enum member_slot_state)atomic_load(&m->made->own->state);
    if (state == m->seen)
        return;
    m->seen = state;
    if (state == MEMBER_SLOT_JOINED)
        joined(m);
    else
        ended(m);
}
