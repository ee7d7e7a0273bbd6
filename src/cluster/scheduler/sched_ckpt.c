/*
 * Checkpoints of the running job, one at a time. A member, an admin client or the clock asks for one.
 *
 *   save      NUMBERING (blocking job) -> ORDERED (every server) -> WRITING (blocking job: the manifest) -> end
 *   load      OPENING (blocking job) -> the tables are created -> ORDERED (every server) -> end
 *   with copies: OPENING -> HOLD -> all hold -> LOAD -> all have loaded -> GO -> end
 *   The load with which a job begins: after a failure that may pass, it begins again, after a pause.
 *   restore   OPENING (blocking job) -> ORDERED (owners of lost rows) -> end
 *
 * HOLD keeps a change from travelling between a server that has loaded and one that has not. A restore
 * (sched_recovery.c) orders only owners: a row with a follower is not lost. It starts again when more rows are
 * lost, and after a pause when a server failed; a server that has loaded its part is not asked again.
 *
 * A failure ends the checkpoint for its callers at once. The servers are then told to drop it, and the next
 * one begins when all have answered. The manifest is written last, so a failed save leaves no checkpoint.
 *
 * An incremental save is based on this scheduler's last checkpoint, in any folder: the shards track
 * changes since that one only. So each checkpoint that begins forgets the base, and each that succeeds
 * becomes the next base.
 */

#include "cluster/scheduler/sched_ckpt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt_end.h"
#include "cluster/scheduler/sched_ckpt_save.h"
#include "cluster/scheduler/sched_ckpt_servers.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_tables.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/order.h"
#include "wire/status.h"

enum { EVERY_TIMEOUT_MS = 600 * 1000, LOAD_TIMEOUT_MS = 24 * 3600 * 1000 };
enum { LOST_TIMEOUT_MS = 3600 * 1000 };
enum { BEGIN_AGAIN_MS = 500, BEGIN_TRIES = 60 };  /* arbitrary */
enum { POSTPONE_MS = 1000, POSTPONED_MOST = 30 }; /* the clock's checkpoints; arbitrary */

/* ---- load ---------------------------------------------------------------------------------------------- */

static void open_it(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    sched_ckpt_note_work(c, ckpt_open(c->fs, c->order.dir, c->order.number, &c->opened));
}

/* All tries load one checkpoint: another one would leave tables that it does not have as the first try filled them. */
static paramo_err begin_same(const struct sched_ckpt *c, const struct ckpt_manifest *m)
{
    struct ckpt_begin *b = &c->sched->ckpts->begin;
    assert(c->restore && m->id);
    if (b->number && (b->number != m->number || b->id != m->id))
        return err_set(PARAMO_E_CORRUPT,
                       "%s: checkpoint %" PRIu64 " was replaced by another one while it was loaded",
                       c->order.dir, m->number);
    b->number = m->number;
    b->id = m->id;
    return PARAMO_OK;
}

/* Once: later, members may have set values again. */
static paramo_err begin_records(struct scheduler *s, const struct ckpt_manifest *m)
{
    struct ckpt_begin *b = &s->ckpts->begin;
    assert(s->restoring && b->number == m->number);
    paramo_err err = b->records ? PARAMO_OK : s->ckpts->ops->restore_extra(s, m->extra, m->extra_bytes);
    b->records = !err;
    return err;
}

static void opened(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    assert(c->load && c->opened && !c->what);
    sched_ckpt_check(c);
    const struct ckpt_manifest *m = ckpt_manifest(c->opened, 0);
    c->order.number = m->number;
    c->order.id = m->id;
    if (c->lost) {
        paramo_err err = s->ckpts->ops->lost_opened(s, c->order.dir, m);
        if (err)
            sched_ckpt_fail(c, err);
        else
            sched_ckpt_order_all(c, ORDER_CKPT_RESTORE);
        return;
    }
    paramo_err err = c->restore ? begin_same(c, m) : PARAMO_OK;
    for (uint32_t i = 0; i < m->tables_count && !err; i++)
        err = sched_tables_make(c->sched, &m->tables[i]);
    if (!err && c->restore)
        err = begin_records(s, m);
    if (err) {
        sched_ckpt_fail(c, err);
        return;
    }
    c->hold = sched_ring_chains(c->sched)->replicas;
    sched_ckpt_order_all(c, c->hold ? ORDER_CKPT_HOLD : ORDER_CKPT_LOAD);
}

/* ---- requests ------------------------------------------------------------------------------------------ */

/* All fields but the order. */
struct how {
    bool load, restore, lost, unasked;
    bool asked; /* asked for by a member or an admin client: only folders that the operator has allowed */
};

static bool is_named(const struct scheduler *s)
{
    return s->config.checkpoint_dir[0] || s->config.checkpoint_allow[0];
}

static paramo_err check_asked(const struct scheduler *s, const char *dir)
{
    bool under = !is_named(s) || ckpt_dir_under(dir, s->config.checkpoint_dir) ||
                 ckpt_dir_under(dir, s->config.restore_dir);
    for (const char *at = s->config.checkpoint_allow; *at && !under;) {
        char root[FS_PATH_MAX], normal[FS_PATH_MAX];
        size_t len = strcspn(at, ":");
        if (len && len < sizeof root) {
            memcpy(root, at, len);
            root[len] = '\0';
            under = !ckpt_dir_normal(root, normal) && ckpt_dir_under(dir, normal);
        }
        at += len + (at[len] == ':');
    }
    if (under)
        return PARAMO_OK;
    return err_set(PARAMO_E_REFUSED,
                   "%s is not a folder for this job's checkpoints: the scheduler's --checkpoint-dir and "
                   "--checkpoint-allow name others",
                   dir);
}

static paramo_err begin(struct scheduler *s, const struct ckpt_order *order, struct how how)
{
    if (!s->config.blocking_jobs)
        return err_set(PARAMO_E_UNSUPPORTED, "this scheduler takes no checkpoints");
    if (s->state != SCHED_RUNNING)
        return err_set(PARAMO_E_AGAIN, "the job is not complete yet");
    if (s->ckpts->current || (sched_lost_since(s) && !how.lost))
        return err_set(PARAMO_E_AGAIN, "another checkpoint is being taken or loaded");
    if (s->restoring && !how.restore) /* between two tries */
        return err_set(PARAMO_E_AGAIN, "the checkpoint that the job begins with is not loaded yet");
    char dir[FS_PATH_MAX];
    paramo_err err = ckpt_dir_normal(order->dir, dir);
    if (!err && how.asked)
        err = check_asked(s, dir);
    struct sched_ckpt *c = err ? NULL : calloc(1, sizeof *c);
    if (!c)
        return err ? err : err_memory(sizeof *c);
    *c = (struct sched_ckpt){.sched = s,
                             .load = how.load,
                             .restore = how.restore,
                             .lost = how.lost,
                             .changes = !how.load && order->changes,
                             .unasked = how.unasked,
                             .anywhere = how.asked && !is_named(s),
                             .order = *order,
                             .fs = s->config.fs};
    memcpy(c->order.dir, dir, sizeof dir);
    c->deadline.fire = sched_ckpt_too_late;
    c->resend_timer.fire = sched_ckpt_resend;
    c->server_done = sched_ckpt_server_done;
    uint64_t now = lane_now(s->config.lane);
    err = lane_timer_arm(s->config.lane, &c->deadline, now + order->timeout_ms * ENV_MS);
    if (err) {
        free(c);
        return err;
    }
    c->order.id = c->order.base = c->order.base_id = 0; /* the scheduler chooses these */
    if (c->load) {
        c->order.changes = false; /* a load has no base, and nothing is based on it */
    } else {
        c->order.number = 0;
        /* A checkpoint that was asked for becomes the base of the clock's next one. */
        c->order.changes |= s->config.checkpoint_every_ms && s->config.checkpoint_full_every > 1;
        sched_ckpt_choose_base(c, &s->ckpts->base);
    }
    s->ckpts->base.number = 0;
    assert(!s->ckpts->current);
    while (!c->order.id)
        c->order.id = env_random(lane_env(s->config.lane));
    s->ckpts->current = c;
    sched_ckpt_check(c);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        node->ckpt_untold = false;
    sched_migrations_suspend(s); /* a moving partition would be in no shard's part, or in two */
    if (c->load)
        sched_ckpt_do_work(c, open_it, opened);
    else
        sched_ckpt_save(c);
    return PARAMO_OK;
}

static void call_timed_out(struct sched_call *call)
{
    sched_call_fail(call, err_set(PARAMO_E_TIMEOUT, "the checkpoint has not ended in time"));
}

void sched_ckpt_call(struct sched_call *call, struct reader *body)
{
    struct scheduler *s = call->node->sched;
    struct ckpt_order m;
    paramo_err err = ckpt_order_decode(body, &m);
    if (!err)
        err = begin(s, &m, (struct how){.load = call->kind == CALL_CKPT_LOAD, .asked = true});
    if (err)
        sched_call_fail(call, err);
    else
        (void)sched_call_defer(call, &s->ckpts->calls, m.timeout_ms + 1000, call_timed_out);
}

paramo_err sched_ckpt_admin_query(struct sched_peer *peer, const struct wire_call *head, struct reader *body)
{
    struct scheduler *s = peer->sched;
    struct ckpt_order m;
    paramo_err err = ckpt_order_decode(body, &m);
    if (err == PARAMO_E_PROTOCOL)
        return err;
    if (peer->ckpt_call)
        return PARAMO_OK; /* a second copy */
    if (!err)
        err = lane_timer_arm(s->config.lane, &peer->timer,
                             lane_now(s->config.lane) + (m.timeout_ms + 10000) * ENV_MS);
    if (!err)
        err = begin(s, &m, (struct how){.load = head->what == CALL_CKPT_LOAD, .asked = true});
    if (err) {
        struct writer w = {0};
        call_text_encode(err_text(), &w);
        sched_peer_answer(peer, head->what, head->number, err, &w);
        return PARAMO_OK;
    }
    assert(s->ckpts->current && !peer->node);
    peer->ckpt_call = head->what;
    peer->ckpt_number = head->number;
    return PARAMO_OK;
}

static paramo_err own_order(const char *dir, uint32_t timeout_ms, struct ckpt_order *m)
{
    *m = (struct ckpt_order){.timeout_ms = timeout_ms};
    if (strlen(dir) >= sizeof m->dir)
        return err_set(PARAMO_E_INVALID, "the path of a checkpoint's folder is longer than %zu bytes",
                       sizeof m->dir - 1);
    memcpy(m->dir, dir, strlen(dir) + 1);
    return PARAMO_OK;
}

/* A checkpoint ends the migrations that have begun, and they begin again. A migration that takes longer than the time
 * between two checkpoints would never complete. So a checkpoint by the timer waits for migrations, for some time. */
static bool postpone(struct scheduler *s)
{
    struct sched_ckpts *k = s->ckpts;
    struct lane *lane = s->config.lane;
    assert(k->postponed <= POSTPONED_MOST && !k->timer.slot);
    if (k->postponed == POSTPONED_MOST || k->current || !sched_migrations_in_progress(s) ||
        lane_timer_arm(lane, &k->timer, lane_now(lane) + POSTPONE_MS * ENV_MS)) {
        k->postponed = 0;
        return false;
    }
    k->postponed++;
    return true;
}

static void every_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_ckpts, timer)->sched;
    if (s->state == SCHED_RUNNING && postpone(s))
        return;
    struct ckpt_order m;
    paramo_err err = own_order(s->config.checkpoint_dir, EVERY_TIMEOUT_MS, &m);
    m.changes = s->config.checkpoint_full_every > 1;
    if (!err && s->state == SCHED_RUNNING && !s->ckpts->current && !s->restoring && !sched_lost_since(s))
        err = begin(s, &m, (struct how){.unasked = true});
    if (err)
        log_error("scheduler: cannot take the checkpoint that is due: %s", err_text());
    if (s->state <= SCHED_RUNNING &&
        lane_timer_arm(s->config.lane, timer,
                       lane_now(s->config.lane) + s->config.checkpoint_every_ms * ENV_MS))
        log_error("scheduler: cannot set the timer for the next checkpoint: %s", err_text());
}

paramo_err sched_ckpt_load_lost(struct scheduler *s)
{
    struct ckpt_order m;
    paramo_err err = own_order(s->config.checkpoint_dir, LOST_TIMEOUT_MS, &m);
    return err ? err : begin(s, &m, (struct how){.load = true, .lost = true});
}

void sched_ckpt_abandon(struct scheduler *s, paramo_err err)
{
    struct sched_ckpt *c = s->ckpts->current;
    assert(c && err);
    sched_ckpt_fail(c, err);
    sched_ckpt_end_perhaps(c);
}

/* ---- a job begins with one ------------------------------------------------------------------------------ */

/* Until its load ends, no worker joins, nothing migrates, and no other checkpoint is taken or loaded. So a load that
 * has failed is carried out again from the start. */
static void begin_check(const struct scheduler *s)
{
    const struct ckpt_begin *b = &s->ckpts->begin;
    assert(s->restoring && b->until && b->tries <= BEGIN_TRIES);
    assert(!b->number == !b->id && (!b->records || b->number));
}

static paramo_err begin_load(struct scheduler *s)
{
    const struct ckpt_begin *b = &s->ckpts->begin;
    struct ckpt_order m;
    uint64_t now = lane_now(s->config.lane);
    begin_check(s);
    if (now >= b->until)
        return err_set(PARAMO_E_TIMEOUT, "it took longer than %d ms", LOAD_TIMEOUT_MS);
    paramo_err err = own_order(s->config.restore_dir, (uint32_t)((b->until - now + ENV_MS - 1) / ENV_MS), &m);
    m.number = b->number;
    return err ? err : begin(s, &m, (struct how){.load = true, .restore = true});
}

static void begin_end(struct scheduler *s, paramo_err err, const char *why)
{
    char text[CALL_TEXT_MAX];
    begin_check(s);
    assert(err && !s->ckpts->begin.timer.slot);
    snprintf(text, sizeof text, "the checkpoint in %s was not loaded: %s", s->config.restore_dir, why);
    sched_end_begin(s, err, text);
}

void sched_ckpt_begin_failed(struct scheduler *s, paramo_err err, const char *text)
{
    struct ckpt_begin *b = &s->ckpts->begin;
    struct lane *lane = s->config.lane;
    if (s->state != SCHED_RUNNING)
        return; /* the job ended first */
    begin_check(s);
    assert(err && !b->timer.slot);
    uint64_t at = lane_now(lane) + BEGIN_AGAIN_MS * ENV_MS;
    b->err = err;
    snprintf(b->text, sizeof b->text, "%s", text);
    if (!sched_ckpt_may_pass(err) || b->tries == BEGIN_TRIES || at >= b->until ||
        lane_timer_arm(lane, &b->timer, at)) {
        begin_end(s, err, b->text);
        return;
    }
    b->tries++;
    log_warn("scheduler: the checkpoint in %s is loaded again: %s", s->config.restore_dir, b->text);
}

static void begin_again(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_ckpts, begin.timer)->sched;
    struct ckpt_begin *b = &s->ckpts->begin;
    struct lane *lane = s->config.lane;
    if (s->state != SCHED_RUNNING)
        return;
    begin_check(s);
    sched_ring_check_gone(s);
    if (sched_ring_has_orphans(s)) { /* no copy has taken over */
        begin_end(s, b->err, b->text);
        return;
    }
    uint64_t now = lane_now(lane);
    if (s->ckpts->current && now < b->until) { /* servers have not dropped the last try yet */
        if (lane_timer_arm(lane, timer, now + BEGIN_AGAIN_MS * ENV_MS))
            begin_end(s, b->err, b->text);
        return;
    }
    paramo_err err = begin_load(s);
    if (err)
        sched_ckpt_begin_failed(s, err, err_text());
}

paramo_err sched_ckpt_start(struct scheduler *s)
{
    paramo_err err = PARAMO_OK;
    assert(!s->ckpts->current && !s->ckpts->timer.slot);
    assert(s->state == SCHED_RUNNING);
    if (s->config.checkpoint_every_ms) {
        s->ckpts->timer.fire = every_due;
        err = lane_timer_arm(s->config.lane, &s->ckpts->timer,
                             lane_now(s->config.lane) + s->config.checkpoint_every_ms * ENV_MS);
    }
    if (!err && s->restoring && !s->config.restore_dir[0])
        return err_set(PARAMO_E_INVALID, "the stored job was to begin with a checkpoint and has not loaded "
                                         "it; start the scheduler with --restore");
    if (err || !s->restoring)
        return err;
    s->ckpts->begin.timer.fire = begin_again;
    s->ckpts->begin.until = lane_now(s->config.lane) + LOAD_TIMEOUT_MS * ENV_MS;
    err = begin_load(s);
    if (!sched_ckpt_may_pass(err))
        return err;
    sched_ckpt_begin_failed(s, err, err_text());
    return PARAMO_OK;
}

uint64_t sched_ckpt_returns(const struct scheduler *s)
{
    const struct sched_ckpt *c = s->ckpts->current;
    return c && c->lost && c->orders_out ? c->order.number : 0; /* also if another order could not be sent */
}

uint64_t sched_ckpt_begins_with(const struct scheduler *s)
{
    const struct sched_ckpt *c = s->ckpts->current;
    return c && c->restore && !c->err && c->orders_out ? c->order.number : 0;
}

void sched_ckpt_status(const struct scheduler *s, struct status *m)
{
    const struct sched_ckpt *c = s->ckpts->current;
    bool none = !c || c->finished, again = s->ckpts->begin.timer.slot;
    m->ckpt.now = none && !again ? STATUS_NO_CKPT : none || c->load ? STATUS_LOADING : STATUS_SAVING;
    m->ckpt.last = s->ckpts->last.number;
    m->ckpt.at = s->ckpts->last.at;
    snprintf(m->ckpt.dir, sizeof m->ckpt.dir, "%s", s->ckpts->last.dir);
}

void sched_ckpt_init(struct scheduler *s, const struct sched_ckpt_ops *ops)
{
    s->ckpts->ops = ops;
}

void sched_ckpt_fini(struct scheduler *s)
{
    struct sched_ckpt *c = s->ckpts->current;
    lane_timer_cancel(s->config.lane, &s->ckpts->timer);
    lane_timer_cancel(s->config.lane, &s->ckpts->begin.timer);
    if (!c)
        return;
    lane_timer_cancel(s->config.lane, &c->deadline);
    lane_timer_cancel(s->config.lane, &c->resend_timer);
    sched_ckpt_copy_stop(c);
    c->sched = NULL;
    s->ckpts->current = NULL;
    if (!c->posted)
        sched_ckpt_free(c);
}

bool sched_ckpt_busy(const struct scheduler *s)
{
    return s->ckpts->current;
}

paramo_err sched_ckpt_begin(struct scheduler *s)
{
    assert(s->state == SCHED_RUNNING && !s->restoring);
    s->restoring = s->config.restore_dir[0] != '\0';
    if (s->restoring)
        sched_save_record_changed(s, RECORD_RESTORING, 0);
    return sched_ckpt_start(s);
}
