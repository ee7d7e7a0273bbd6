/* Migrations of partitions as orders to the shards (cluster/scheduler/migrations.h): after a death, and when
 * a server joins or will leave. */
#include "cluster/scheduler/sched_migrations.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "base/log.h"
#include "cluster/scheduler/migrations.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/migration_order.h"
#include "wire/order.h"

/* Pause between a failed migration and the next. */
#define MIGRATIONS_PAUSE ENV_SEC
/* Pause before an END that could not be sent is sent again: requests may wait for it. */
#define ENDS_PAUSE (10 * ENV_MS)

/* An unanswered order. */
struct migration_note {
    struct migration_note *next, **at;
    struct scheduler *sched;
    struct migration migration;
    uint32_t what;
};

static void note_free(struct migration_note *note)
{
    assert(*note->at == note);
    assert(!note->next || note->next->at == &note->next);
    *note->at = note->next;
    if (note->next)
        note->next->at = note->at;
    free(note);
}

static paramo_err send_order(struct scheduler *s, const struct migration *migration, uint32_t what,
                             bool committed);

/* Nothing begins while a checkpoint is taken or loaded, and no timer lets it. */
static void part_check(const struct sched_migrations *m)
{
    assert(!m->suspended || (m->machine.held && !m->timer.slot));
    assert(m->ends_count <= MIGRATIONS_MAX);
    assert(!m->converged || !m->short_of_servers);
    assert(!m->notes || m->notes->at == &m->notes);
}

/* Nothing migrates while a checkpoint is taken or loaded, or while lost rows are restored. */
static bool is_blocked(const struct scheduler *s)
{
    return s->migrations->suspended || sched_lost_since(s);
}

/* Others begin after a pause: the cause of the failure may last. */
static void hold(struct scheduler *s)
{
    struct lane *lane = s->config.lane;
    part_check(s->migrations);
    migrations_hold(&s->migrations->machine);
    if (s->migrations->suspended)
        return; /* its end resumes migrations */
    if (lane_timer_arm(lane, &s->migrations->timer, lane_now(lane) + MIGRATIONS_PAUSE))
        log_error("scheduler: cannot set the timer of the next migration: %s; trying again", err_text());
}

static void answered(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct migration_note *note = arg;
    struct scheduler *s = note->sched;
    struct migration migration = note->migration;
    uint32_t what = note->what;
    char label[SCHED_LABEL];
    (void)result;
    part_check(s->migrations);
    assert(migration.id && migration.from != migration.to);
    note_free(note);
    if (what == ORDER_MIGRATION_END || !migrations_find(&s->migrations->machine, migration.id))
        return;
    if (status) {
        log_warn("scheduler: partitions %u to %u are not migrated: %s: %s", migration.first,
                 migration.first + migration.partitions - 1, sched_roster_label(node, label), err_text());
        hold(s);
        migrations_failed(&s->migrations->machine, migration.id);
    } else if (what == ORDER_MIGRATION_SOURCE) {
        migrations_agreed(&s->migrations->machine, migration.id, migration.from);
        migrations_agreed(&s->migrations->machine, migration.id, migration.to);
        if (send_order(s, &migration, ORDER_MIGRATION_TARGET, false)) {
            hold(s);
            migrations_failed(&s->migrations->machine, migration.id);
        }
    } else if (what == ORDER_MIGRATION_TARGET) {
        migrations_full(&s->migrations->machine, migration.id);
    } else {
        migrations_paused(&s->migrations->machine, migration.id);
    }
}

static struct migration_shard place_of(const struct scheduler *s, uint16_t shard)
{
    assert(shard < sched_ring_shards_count(s));
    return (struct migration_shard){.node = sched_ring_shard(s, shard)->node,
                                    .index = sched_ring_shard(s, shard)->index};
}

static paramo_err send_order_to(struct scheduler *s, uint16_t shard, const struct migration *migration,
                                uint32_t what, bool committed)
{
    assert(migration->id && (shard == migration->from || shard == migration->to));
    struct migration_order order = {.id = migration->id,
                                    .first = migration->first,
                                    .partitions = migration->partitions,
                                    .from = place_of(s, migration->from),
                                    .to = place_of(s, migration->to),
                                    .level = migration->level,
                                    .had = migration->had,
                                    .kib_per_s = s->config.migration_kib_per_s,
                                    .takes_over = what == ORDER_MIGRATION_PAUSE && migration->takes_over,
                                    .handover = migration->handover,
                                    .committed = committed};
    struct migration_note *note = malloc(sizeof *note);
    struct writer w = {0};
    if (!note)
        return err_memory(sizeof *note);
    *note = (struct migration_note){.next = s->migrations->notes,
                                    .at = &s->migrations->notes,
                                    .sched = s,
                                    .migration = *migration,
                                    .what = what};
    if (note->next)
        note->next->at = &note->next;
    s->migrations->notes = note;
    part_check(s->migrations);
    migration_order_encode(&order, &w);
    paramo_err err = sched_order_issue(sched_ring_server(s, shard), what, &w, answered, note);
    if (err)
        note_free(note);
    return err;
}

static paramo_err send_order(struct scheduler *s, const struct migration *migration, uint32_t what,
                             bool committed)
{
    uint16_t shard = what == ORDER_MIGRATION_TARGET ? migration->to : migration->from;
    return send_order_to(s, shard, migration, what, committed);
}

/* Counts the copies that no server has (*missing) and those on absent servers (*absent). An absent server
 * is one that an earlier scheduler left, or whose connection is lost; it may be dead. */
static void copies_missing(const struct scheduler *s, unsigned *missing, unsigned *absent)
{
    uint64_t begins[PARTITION_WORDS] = {0};
    ring_begins(sched_ring_chains(s), begins);
    *missing = *absent = 0;
    for (partition_set_runs(a, end, begins))
        for (unsigned l = 0; l <= sched_ring_chains(s)->replicas; l++) {
            uint16_t member = sched_ring_chains(s)->level[l].owner[a];
            if (member == RING_NONE)
                *missing += end - a;
            else if (sched_ring_server(s, member)->state != SNODE_JOINED)
                *absent += end - a;
        }
}

/* No migration runs or will begin, and the view that says so is announced: the next scheduler begins with it.
 */
static bool is_idle(const struct scheduler *s)
{
    bool migrations = s->migrations->ends_count || s->migrations->unplanned;
    migrations |= s->migrations->machine.wanted &&
                  !migrations_converged(&s->migrations->machine); /* no plan: nothing has changed yet */
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        migrations |= s->migrations->machine.migration[i].state != MIGRATION_NONE;
    return s->state == SCHED_RUNNING && !migrations && !sched_lost_since(s) && !s->restoring &&
           !sched_view_is_due(s) && sched_view_announced(s) == sched_view_number(s);
}

bool sched_migrations_converged(const struct scheduler *s)
{
    unsigned missing, absent;
    copies_missing(s, &missing, &absent);
    return is_idle(s) && !missing && !absent;
}

/* Logged once each time the cluster becomes balanced. */
static void log_converged(struct scheduler *s)
{
    unsigned missing, absent;
    copies_missing(s, &missing, &absent);
    bool rest = is_idle(s) && !absent, converged = rest && !missing;
    if (converged && !s->migrations->converged)
        log_info("scheduler: rebalancing is complete: every key has all its copies");
    if (rest && !converged && !s->migrations->short_of_servers)
        log_info("scheduler: nothing is left to move; %u of %u copies are missing: more servers are needed",
                 missing, (sched_ring_chains(s)->replicas + 1) * RING_PARTITIONS);
    s->migrations->converged = converged;
    s->migrations->short_of_servers = rest && !converged;
}

static void check_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_migrations, check_timer)->sched;
    part_check(s->migrations);
    assert(!timer->slot);
    s->migrations->undrained = !s->migrations->ops->release_drained(s);
    log_converged(s);
}

/* Runs as a task of its own, since the planner may not be called from its own callbacks. */
void sched_migrations_check(struct scheduler *s)
{
    if (!s->migrations->check_timer.slot &&
        lane_timer_arm(s->config.lane, &s->migrations->check_timer, lane_now(s->config.lane)))
        log_error("scheduler: cannot set the timer that checks the migrations: %s; trying again", err_text());
}

/* ---- orders of the machine ----------------------------------------------------------------------------- */

static void order_failed(struct scheduler *s, const struct migration *migration)
{
    part_check(s->migrations);
    assert(migration->id && migration->state != MIGRATION_NONE);
    log_warn("scheduler: partitions %u to %u are not migrated: %s", migration->first,
             migration->first + migration->partitions - 1, err_text());
    s->migrations->unsent = true;
    hold(s);
}

static void begin(void *arg, const struct migration *migration)
{
    struct scheduler *s = arg;
    assert(migration->state == MIGRATION_PLANNED && !is_blocked(s));
    part_check(s->migrations);
    sched_ring_untold(s, migration->to, migration->first,
                      migration->partitions); /* its order says that the target has no row of them */
    if (send_order(s, migration, ORDER_MIGRATION_SOURCE, false))
        order_failed(s, migration);
}

static void pause(void *arg, const struct migration *migration)
{
    struct scheduler *s = arg;
    assert(migration->state == MIGRATION_FULL && !s->migrations->suspended);
    part_check(s->migrations);
    if (send_order(s, migration, ORDER_MIGRATION_PAUSE, false))
        order_failed(s, migration);
}

static void commit(void *arg, const struct migration *migration)
{
    struct scheduler *s = arg;
    assert(!migration || migration->state == MIGRATION_PAUSED);
    part_check(s->migrations);
    if (migration && !migration->handover)
        sched_ring_migrated(s, migration->to, migration->id);
    if (migration) /* its end tells both sides which shard owns them */
        sched_ring_told(s, migration->first, migration->partitions);
    sched_ring_changed(s);
    sched_view_change(s);
    sched_migrations_check(s);
}

/* True: no side is left that must be told. */
static bool end_told(struct scheduler *s, struct migration_end *e)
{
    const uint16_t side[] = {e->migration.from, e->migration.to};
    assert(e->migration.id && e->migration.from != e->migration.to);
    for (size_t i = 0; i < 2; i++)
        e->untold[i] = e->untold[i] && sched_roster_is_here(sched_ring_server(s, side[i])) &&
                       send_order_to(s, side[i], &e->migration, ORDER_MIGRATION_END, e->committed);
    return !e->untold[0] && !e->untold[1];
}

static void ends_soon(struct scheduler *s)
{
    assert(s->migrations->ends_count);
    struct lane *lane = s->config.lane;
    if (!s->migrations->ends_timer.slot &&
        lane_timer_arm(lane, &s->migrations->ends_timer, lane_now(lane) + ENDS_PAUSE))
        log_error("scheduler: cannot set the timer that ends migrations: %s; trying again", err_text());
}

/* A paused side waits for END without a deadline. So END is sent until it is accepted: memory may be short,
 * or the server may have too many unanswered orders. */
static void end(void *arg, const struct migration *migration, bool committed)
{
    struct scheduler *s = arg;
    part_check(s->migrations);
    assert(migration->id < s->migrations->machine.next_id);
    struct migration_end e = {.migration = *migration, .committed = committed, .untold = {true, true}};
    if (end_told(s, &e))
        return;
    log_warn("scheduler: the end of a migration is sent later: %s", err_text());
    migrations_hold(&s->migrations->machine);
    assert(s->migrations->ends_count < MIGRATIONS_MAX);
    s->migrations->ends[s->migrations->ends_count++] = e;
    ends_soon(s);
}

static const struct migrations_ops ops = {.begin = begin, .pause = pause, .commit = commit, .end = end};

/* ---- reports to the machine ---------------------------------------------------------------------------- */

/* True: all ENDs are sent. */
static bool ends_told(struct scheduler *s)
{
    unsigned left = 0;
    part_check(s->migrations);
    for (unsigned i = 0; i < s->migrations->ends_count; i++)
        if (!end_told(s, &s->migrations->ends[i]))
            s->migrations->ends[left++] = s->migrations->ends[i];
    assert(left <= s->migrations->ends_count);
    s->migrations->ends_count = left;
    if (left)
        ends_soon(s);
    return !left;
}

static void go_on(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_migrations, timer)->sched;
    part_check(s->migrations);
    assert(!s->migrations->suspended); /* the timer was cancelled */
    if (s->state != SCHED_RUNNING || is_blocked(s) || !ends_told(s))
        return;                  /* the clock looks again */
    if (s->migrations->unsent) { /* migrations whose order could not be sent do not continue by themselves */
        s->migrations->unsent = false;
        for (size_t i = 0; i < MIGRATIONS_MAX; i++)
            if (s->migrations->machine.migration[i].state == MIGRATION_PLANNED ||
                s->migrations->machine.migration[i].state == MIGRATION_FULL)
                migrations_failed(&s->migrations->machine, s->migrations->machine.migration[i].id);
    }
    if (!s->migrations->ends_count)
        migrations_resume(&s->migrations->machine);
}

static void ends_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_migrations, ends_timer)->sched;
    part_check(s->migrations);
    if (s->state == SCHED_RUNNING && ends_told(s) && !is_blocked(s) && !s->migrations->timer.slot)
        go_on(&s->migrations->timer);
}

void sched_migrations_wait_for_lost(struct scheduler *s)
{
    part_check(s->migrations);
    if (sched_lost_since(s))
        migrations_hold(&s->migrations->machine);
}

/* Makes the plan: which shard holds what, by weight, among the servers that are here. */
void sched_migrations_retarget(struct scheduler *s)
{
    if (s->state != SCHED_RUNNING)
        return;
    part_check(s->migrations);
    assert(!s->migrations->machine.shard || s->migrations->machine.shard == s->migrations->shards);
    sched_migrations_wait_for_lost(s);
    uint64_t weight = sched_ring_weigh(s);
    for (uint32_t i = 0; i < sched_ring_shards_count(s); i++) {
        const struct sched_node *node = sched_ring_server(s, i);
        s->migrations->shards[i] =
            (struct migrations_shard){.server = node->rank, .gone = !sched_roster_is_here(node)};
    }
    migrations_set_shards(&s->migrations->machine, s->migrations->shards, sched_ring_shards_count(s));
    if (!weight)
        return;
    struct ring_chains *target = malloc(sizeof *target);
    paramo_err err = target ? sched_ring_plan(s, target) : err_memory(sizeof *target);
    s->migrations->unplanned = err == PARAMO_E_MEMORY;
    if (err) {
        log_error("scheduler: cannot plan the migrations: %s", err_text()); /* the clock tries again */
    } else {
        sched_ring_warn(s, target);
        migrations_set_target(&s->migrations->machine, target);
        s->migrations->converged = false;
        if (!is_blocked(s) && !s->migrations->timer.slot)
            go_on(&s->migrations->timer); /* those that are held without a timer, too */
        sched_migrations_check(s);
    }
    free(target);
}

void sched_migrations_retry(struct scheduler *s)
{
    struct sched_migrations *m = s->migrations;
    if (s->state != SCHED_RUNNING)
        return;
    if (m->unplanned)
        sched_migrations_retarget(s);
    if (m->ends_count && !m->ends_timer.slot)
        ends_due(&m->ends_timer);
    if (m->machine.held && !m->ends_count && !m->timer.slot && !is_blocked(s))
        go_on(&m->timer);
    if (!m->converged || m->undrained)
        sched_migrations_check(s);
}

static void abort_all(struct scheduler *s)
{
    migrations_hold(&s->migrations->machine);
    lane_timer_cancel(s->config.lane, &s->migrations->timer);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        if (s->migrations->machine.migration[i].state != MIGRATION_NONE)
            migrations_failed(&s->migrations->machine, s->migrations->machine.migration[i].id);
    part_check(s->migrations);
    assert_slow(!sched_migrations_in_progress(s));
}

void sched_migrations_suspend(struct scheduler *s)
{
    s->migrations->suspended = true;
    abort_all(s);
    part_check(s->migrations);
}

void sched_migrations_resume(struct scheduler *s)
{
    part_check(s->migrations);
    s->migrations->suspended = false;
    if (s->state == SCHED_RUNNING && !sched_lost_since(s))
        go_on(&s->migrations->timer);
}

bool sched_migrations_in_progress(const struct scheduler *s)
{
    bool any = false;
    part_check(s->migrations);
    for (size_t i = 0; i < MIGRATIONS_MAX; i++)
        any = any || s->migrations->machine.migration[i].state != MIGRATION_NONE;
    return any;
}

void sched_migrations_restart(struct scheduler *s, uint64_t term)
{
    if (s->migrations->machine.next_id >> 32 >= term)
        return;
    abort_all(s);
    assert(!s->migrations->timer.slot && s->migrations->machine.held);
    s->migrations->machine.next_id = (term << 32) + 1;
    assert(s->migrations->machine.next_id >> 32 == term);
    if (!is_blocked(s))
        sched_migrations_resume(s); /* else what blocks them does so at its end */
}

void sched_migrations_set_ops(struct scheduler *s, const struct sched_migrations_ops *to)
{
    assert(to->release_drained);
    s->migrations->ops = to;
    s->migrations->check_timer.fire = check_due;
}

paramo_err sched_migrations_init(struct scheduler *s)
{
    assert(!s->migrations->shards && !s->migrations->ends_count);
    assert(!s->migrations->notes);
    s->migrations->timer.fire = go_on;
    s->migrations->ends_timer.fire = ends_due;
    migrations_init(&s->migrations->machine, sched_ring_chains_mutable(s), &ops, s);
    if (s->config.migration_partitions)
        s->migrations->machine.most = s->config.migration_partitions;
    s->migrations->machine.next_id =
        (sched_view_number(s) >> 32 << 32) + 1; /* above all numbers of an earlier scheduler of this job */
    s->migrations->shards = calloc(sched_ring_shards_count(s) + 1, sizeof *s->migrations->shards);
    return s->migrations->shards ? PARAMO_OK
                                 : err_memory(sched_ring_shards_count(s) * sizeof *s->migrations->shards);
}

paramo_err sched_migrations_reserve(struct scheduler *s, uint16_t shards)
{
    assert(!s->migrations->machine.shard || s->migrations->machine.shard == s->migrations->shards);
    part_check(s->migrations);
    size_t count = (size_t)sched_ring_shards_count(s) + shards + 1;
    struct migrations_shard *longer = realloc(s->migrations->shards, count * sizeof *longer);
    if (!longer)
        return err_memory(count * sizeof *longer);
    if (s->migrations->machine.shard)
        s->migrations->machine.shard = longer; /* the planner owns it */
    s->migrations->shards = longer;
    return PARAMO_OK;
}

void sched_migrations_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->migrations->check_timer);
    lane_timer_cancel(s->config.lane, &s->migrations->timer);
    lane_timer_cancel(s->config.lane, &s->migrations->ends_timer);
    while (s->migrations->notes)
        note_free(s->migrations->notes);
    free(s->migrations->shards);
}

void sched_migrations_table(struct scheduler *s, unsigned replicas)
{
    migrations_table(&s->migrations->machine, replicas);
}

const struct ring_ends *sched_migrations_ends(const struct scheduler *s)
{
    return &s->migrations->machine.ends;
}

bool sched_migrations_need(const struct scheduler *s, uint16_t shard)
{
    return migrations_needs(&s->migrations->machine, shard);
}

void sched_migrations_set_converged(struct scheduler *s)
{
    assert(!s->migrations->short_of_servers && !s->migrations->ends_count);
    part_check(s->migrations);
    s->migrations->converged = true;
}

void sched_migrations_announced(struct scheduler *s)
{
    if (!s->migrations->converged)
        sched_migrations_check(s);
}

const struct migration *sched_migrations_all(const struct scheduler *s)
{
    return s->migrations->machine.migration;
}
