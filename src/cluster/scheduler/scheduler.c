#include "cluster/scheduler/scheduler.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_admission.h"
#include "cluster/scheduler/sched_announce.h"
#include "cluster/scheduler/sched_barrier.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_clock.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_dispatch.h"
#include "cluster/scheduler/sched_drain.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_records.h"
#include "cluster/scheduler/sched_recovery.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_status.h"
#include "cluster/scheduler/sched_tables.h"
#include "cluster/scheduler/sched_view.h"

enum {
    HEARTBEAT_MS = 1000,
    HEARTBEAT_TIMEOUT_MS = 10000,
    REJOIN_MS = 300,
    END_WAIT_MS = 5000,
    FRAME_BYTES = 64 << 20,
    MIGRATION_KIB_PER_S = 64 << 10
};

/* All of one scheduler. */
struct scheduler_parts {
    struct scheduler scheduler;
    struct sched_peers peers;
    struct sched_roster roster;
    struct sched_calls calls;
    struct sched_view view;
    struct sched_tables tables;
    struct sched_ring ring;
    struct sched_lost lost;
    struct sched_recovery recovery;
    struct sched_migrations migrations;
    struct sched_barriers barriers;
    struct sched_pools pools;
    struct sched_values values;
    struct sched_clocks clocks;
    struct sched_ckpts ckpts;
    struct sched_status status;
    struct sched_saves saves;
    struct sched_end end;
};

static void node_gone(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    assert(node->state == SNODE_DEAD || node->state == SNODE_LEFT);
    assert(!node->info.alive && node->info.left == (node->state == SNODE_LEFT));
    sched_status_gone(node);
    if (s->state == SCHED_ENDING && !sched_roster_any_left(s))
        sched_end_wait(s);
    if (s->state != SCHED_RUNNING)
        return;
    sched_barrier_node_gone(node);
    sched_pool_node_gone(node);
    sched_clock_node_gone(node);
    sched_end_check(s);
}

static void tick(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct scheduler, tick);
    uint64_t now = lane_now(s->config.lane), period = s->config.heartbeat_ms * ENV_MS;
    uint64_t passed = now - s->ticked_at;
    assert(now >= s->ticked_at);
    assert(!timer->slot && s->config.heartbeat_ms);
    s->ticked_at = now;
    paramo_err err = lane_timer_arm(s->config.lane, timer, now + period);
    if (err)
        log_error("scheduler: cannot set its clock timer: %s", err_text());
    if (passed > 2 * period) {
        /* This process was stopped: messages of nodes that seemed silent may wait in its sockets. */
        log_line(s->config.embedded ? LOG_INFO : LOG_WARN,
                 "scheduler: this process stood still for %" PRIu64 " ms", passed / ENV_MS);
        sched_roster_forgive(s, passed - period);
        return;
    }
    sched_departure_check_silence(s);
    sched_save_proof(s);
    sched_view_retry(s);
    sched_save_retry(s);
    sched_migrations_retry(s);
    sched_end_retry(s);
}

/* As sched_ckpt_servers.c compares them. */
static paramo_err folders_normal(struct scheduler_config *c)
{
    char *const dirs[] = {c->checkpoint_dir, c->restore_dir};
    for (size_t i = 0; i < sizeof dirs / sizeof *dirs; i++) {
        char normal[FS_PATH_MAX];
        if (!dirs[i][0])
            continue;
        paramo_err err = ckpt_dir_normal(dirs[i], normal);
        if (err)
            return err;
        memcpy(dirs[i], normal, sizeof normal);
    }
    return PARAMO_OK;
}

static uint64_t random_not_zero(struct env *env)
{
    uint64_t number;
    do {
        number = env_random(env);
    } while (!number);
    return number;
}

/* Continues where the scheduler before has stopped: its nodes have their places, though none has sent a message yet. */
static paramo_err restore(struct scheduler *s)
{
    paramo_err err = sched_records_restore(s);
    bool places =
        sched_roster_slots(s, SLOTS_WORKERS)->count && sched_roster_slots(s, SLOTS_WORKERS)->node[0];
    if (!err && sched_end_is_told(s))
        log_warn(
            "scheduler: the stored state is that of a job that is over (%s); it is removed now: start the "
            "scheduler again to run another job",
            sched_end_text(s));
    if (!err && !places && sched_end_is_told(s)) { /* it ended before it was complete */
        sched_move(s, SCHED_ENDING);
        sched_end_wait(s);
    }
    if (err || !places)
        return err;
    sched_move(s, SCHED_RUNNING);
    assert(!sched_view_announced(s)); /* members hear nothing before the first view of this term */
    sched_view_change(s);             /* a whole save needs a view, even when the job ends */
    if (sched_end_is_told(s))
        sched_move(s, SCHED_ENDING);
    log_info("scheduler: continues a job, in term %" PRIu32 ", after view %" PRIx64, s->term,
             sched_view_number(s));
    if (sched_end_is_told(s))
        sched_end_wait(s);
    else
        sched_end_check(s);
    sched_migrations_retarget(s); /* its last view shows how migrations have ended */
    sched_recovery_check(
        s); /* the scheduler before may have died between its last view and the end of the job */
    return s->state == SCHED_RUNNING ? sched_ckpt_start(s) : PARAMO_OK;
}

static const struct sched_ckpt_ops ckpt_ops = {.restore_extra = sched_records_restore_extra,
                                               .lost_opened = sched_recovery_opened,
                                               .begin_failed = sched_ckpt_begin_failed,
                                               .lost_ended = sched_recovery_ended,
                                               .idle = sched_recovery_idle};

static void parts_join(struct scheduler_parts *all)
{
    struct scheduler *s = &all->scheduler;
    s->peers = &all->peers;
    s->roster = &all->roster;
    s->calls = &all->calls;
    s->view = &all->view;
    s->tables = &all->tables;
    s->ring = &all->ring;
    s->lost = &all->lost;
    s->recovery = &all->recovery;
    s->migrations = &all->migrations;
    s->barriers = &all->barriers;
    s->pools = &all->pools;
    s->values = &all->values;
    s->clocks = &all->clocks;
    s->ckpts = &all->ckpts;
    s->status = &all->status;
    s->saves = &all->saves;
    s->end = &all->end;
    s->view->sched = s->recovery->sched = s->migrations->sched = s->ckpts->sched = s->status->sched =
        s->saves->sched = s->end->sched = s;
    s->node_gone = node_gone;
}

paramo_err scheduler_create(const struct scheduler_config *config, struct scheduler **out)
{
    struct scheduler_parts *all = calloc(1, sizeof *all);
    if (!all)
        return err_memory(sizeof *all);
    struct scheduler *s = &all->scheduler;
    parts_join(all);
    struct scheduler_config *c = &s->config;
    *c = *config;
    c->heartbeat_ms = c->heartbeat_ms ? c->heartbeat_ms : HEARTBEAT_MS;
    c->heartbeat_timeout_ms = c->heartbeat_timeout_ms ? c->heartbeat_timeout_ms : HEARTBEAT_TIMEOUT_MS;
    c->rejoin_ms = c->rejoin_ms ? c->rejoin_ms : REJOIN_MS;
    c->end_wait_ms = c->end_wait_ms ? c->end_wait_ms : END_WAIT_MS;
    c->migration_kib_per_s = c->migration_kib_per_s ? c->migration_kib_per_s : MIGRATION_KIB_PER_S;
    c->frame_bytes = c->frame_bytes ? c->frame_bytes : FRAME_BYTES;
    s->job = random_not_zero(lane_env(c->lane));
    s->incarnation = random_not_zero(lane_env(c->lane));
    s->term = c->store ? c->found->term : 1;
    sched_calls_init(s);
    sched_pool_init(s);
    sched_announce_init(s);
    sched_drain_init(s);
    sched_recovery_init(s);
    sched_ckpt_init(s, &ckpt_ops);
    sched_save_init(s, &sched_records_ops);
    s->tick.fire = tick;
    sched_end_init(s);
    s->ticked_at = lane_now(c->lane);
    paramo_err err = sched_roster_init(s);
    if (!err)
        err = folders_normal(c);
    if (!err && c->store)
        err = restore(s);
    if (!err)
        err = sched_peers_open(s, &sched_dispatch_user);
    c->address = c->token = NULL; /* the acceptor has them */
    if (!err)
        err = lane_timer_arm(c->lane, &s->tick, s->ticked_at + c->heartbeat_ms * ENV_MS);
    if (err) {
        c->store = NULL; /* the caller's */
        scheduler_destroy(s);
        return err;
    }
    c->found = NULL;
    sched_roster_set_self(s, sched_peers_address(s));
    assert(s->job && s->incarnation && s->term && s->tick.slot);
    *out = s;
    return PARAMO_OK;
}

uint64_t scheduler_incarnation(const struct scheduler *s)
{
    return s->incarnation;
}

const char *scheduler_address(const struct scheduler *s)
{
    return sched_peers_address(s);
}

void scheduler_end(struct scheduler *s, paramo_err status, const char *text)
{
    sched_end_begin(s, status, text);
}

void scheduler_destroy(struct scheduler *s)
{
    if (!s)
        return;
    lane_timer_cancel(s->config.lane, &s->tick);
    sched_end_fini(s);
    sched_save_fini(s); /* first: from here on nothing is saved */
    sched_ckpt_fini(s);
    sched_recovery_fini(s);
    sched_status_fini(s);
    sched_peers_fini(s);
    sched_view_fini(s);
    sched_ring_fini(s);
    sched_migrations_fini(s);
    sched_admission_fini(s);
    sched_calls_fini(s);
    sched_barrier_fini(s);
    sched_pool_fini(s);
    sched_kv_fini(s);
    sched_clock_fini(s);
    sched_peers_refuse(s);
    free(container_of(s, struct scheduler_parts, scheduler));
}
