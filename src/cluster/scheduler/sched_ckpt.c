/*
 * Checkpoints of the running job, one at a time. A member, an admin client or the clock asks for one.
 *
 *   save      NUMBERING (blocking job) -> ORDERED (every server) -> WRITING (blocking job: the manifest) -> end
 *   load      OPENING (blocking job) -> the tables are created -> ORDERED (every server) -> end
 *   with copies: OPENING -> HOLD -> all hold -> LOAD -> all have loaded -> GO -> end
 *   restore   OPENING (blocking job) -> ORDERED (owners of lost rows) -> end
 *
 * HOLD keeps a change from travelling between a server that has loaded and one that has not. A restore
 * (sched_recovery.c) orders only owners: a row with a follower is not lost. It starts again when more rows are
 * lost, and after a pause when a server failed; a server that has loaded its part is not asked again.
 *
 * A failure ends the checkpoint for its callers at once. The servers are then told to drop it, and the next
 * one begins when all have answered. The manifest is written last, so a failed save leaves no checkpoint.
 *
 * An incremental save is based on this scheduler's last checkpoint, in whatever folder: the shards track
 * changes since that one only. So each checkpoint that begins forgets the base, and each that succeeds
 * becomes the next base.
 */
#include "cluster/scheduler/sched_ckpt.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/log.h"
#include "cluster/checkpoint/ckpt.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_tables.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/session/control_message.h"
#include "wire/ckpt_order.h"
#include "wire/order.h"
#include "wire/status.h"

enum { EVERY_TIMEOUT_MS = 600 * 1000, LOAD_TIMEOUT_MS = 24 * 3600 * 1000 };
enum { LOST_TIMEOUT_MS = 3600 * 1000 };
enum { UNTOLD_AGAIN_MS = 10 }; /* arbitrary */

struct sched_ckpt {
    struct scheduler *sched; /* NULL: the scheduler is gone */
    bool load, restore;      /* restore: the job begins with this load */
    bool lost;               /* loads lost rows only */
    bool changes, unasked;   /* incremental only; taken by the clock */
    bool anywhere;           /* save: its folder is none that the operator has allowed */
    bool hold;               /* requests wait at all servers until the load is over */
    bool finished;           /* its callers have been answered */
    uint32_t what;           /* the order that is out */
    struct ckpt_order order;
    struct ckpt_manifest manifest;                 /* save */
    uint64_t written[(VIEW_SHARDS_MAX + 63) / 64]; /* save: which shards' files are in it */
    struct ckpt_base base;                         /* the base that it may use */
    struct ckpt *opened;                           /* load */
    struct sched_save_copy copy;                   /* save: of values and pools, made in turns */
    struct lane_timer copy_turn;
    bool copying;
    uint32_t orders_out;      /* orders that are not answered */
    uint32_t untold;          /* servers that could not be given the last order (GO, DROP) yet */
    struct lane_timer retell; /* when it is given to them again */
    uint64_t partitions_changed;
    struct lane_timer deadline;
    paramo_err err;
    char text[ERR_TEXT_MAX];
    /* owned by the blocking job while that is posted */
    struct blocking_job blocking_job;
    bool posted;
    void (*then)(struct sched_ckpt *c);
    struct fs *fs;
    paramo_err work_err;
    char work_text[ERR_TEXT_MAX];
    char full[ERR_TEXT_MAX]; /* why it is not incremental; "": it is, or need not be */
    size_t keep, removed;
    bool all_mine; /* checkpoints of earlier jobs count, too */
};

/* A checkpoint is taken, or loaded for one of three: a caller, the job's begin, or rows that were lost. */
static void ckpt_check(const struct sched_ckpt *c)
{
    assert(c->sched->ckpts->current == c && c->order.id);
    assert(c->load || (!c->restore && !c->lost && !c->hold && !c->opened));
    assert(!c->load || (!c->unasked && !c->changes && !c->base.number));
    assert(!c->restore || !c->lost);
}

static void ckpt_free(struct sched_ckpt *c)
{
    assert(!c->posted && (!c->sched || !c->orders_out) && !c->deadline.slot);
    assert(!c->retell.slot && !c->copying);
    ckpt_manifest_fini(&c->manifest);
    ckpt_close(c->opened);
    free(c);
}

/* Answers the callers: c->err with its text, or the checkpoint's number. */
static void answer_all(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    const struct ckpt_result result = {.number = c->order.number};
    assert(c->finished && !c->deadline.slot);
    for (struct sched_call *call; (call = s->ckpts->calls.first);) {
        struct writer w = sched_call_result(call);
        if (c->err) {
            sched_call_fail(call, err_set(c->err, "%s", c->text));
            continue;
        }
        ckpt_result_encode(&result, &w);
        sched_call_answer(call, &w);
    }
    for (struct sched_peer *peer = sched_peers_first(s); peer; peer = peer->next) {
        struct writer w = {0};
        if (!peer->ckpt_call)
            continue;
        if (c->err)
            call_text_encode(c->text, &w);
        else
            ckpt_result_encode(&result, &w);
        sched_peer_answer(peer, peer->ckpt_call, peer->ckpt_number, c->err, &w);
        peer->ckpt_call = 0;
    }
    assert(!s->ckpts->calls.first);
}

static void finish(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    ckpt_check(c);
    assert(s->ckpts->current == c);
    if (c->finished)
        return;
    c->finished = true;
    lane_timer_cancel(s->config.lane, &c->deadline);
    if (c->lost && s->state == SCHED_RUNNING) {
        s->ckpts->ops->lost_ended(s, c->order.dir, c->order.number,
                                  c->err ? err_set(c->err, "%s", c->text) : PARAMO_OK);
        return;
    }
    if (c->err && s->state != SCHED_RUNNING)
        log_info("scheduler: the job ended before a checkpoint was finished");
    else if (c->err)
        log_warn("scheduler: the checkpoint in %s was not %s: %s", c->order.dir, c->load ? "loaded" : "taken",
                 c->text);
    else if (c->order.base)
        log_info("scheduler: checkpoint %" PRIu64 " in %s was taken, based on %" PRIu64, c->order.number,
                 c->order.dir, c->order.base);
    else
        log_info("scheduler: checkpoint %" PRIu64 " in %s was %s", c->order.number, c->order.dir,
                 c->load ? "loaded" : "taken");
    if (!c->err && !c->load) {
        s->ckpts->last.number = c->order.number;
        s->ckpts->last.at = c->manifest.made_at;
        snprintf(s->ckpts->last.dir, sizeof s->ckpts->last.dir, "%s", c->order.dir);
    }
    answer_all(c);
    if (c->err && c->restore) {
        sched_end_begin(s, c->err, c->text);
    } else if (c->restore) {
        s->restoring = false;
        sched_save_record_changed(s, RECORD_RESTORING, 0);
        sched_view_change(s);
        size_t cursor = 0; /* workers begin by a durable view that says so: the load is not repeated */
        for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
            if (node->info.role == PARAMO_ROLE_WORKER)
                node->since = sched_view_number(s);
    }
}

static void copy_stop(struct sched_ckpt *c)
{
    lane_timer_cancel(c->sched->config.lane, &c->copy_turn);
    if (!c->copying)
        return;
    c->copying = false;
    writer_fini(&c->copy.run.w);
    sched_save_copy_end(c->sched);
}

/* Frees the checkpoint when no order and no blocking job of it is left. */
static void end_perhaps(struct sched_ckpt *c)
{
    ckpt_check(c);
    if (c->err)
        copy_stop(c);
    if (c->copying || c->posted || c->orders_out || (c->load && c->untold))
        return;
    finish(c);
    struct scheduler *s = c->sched;
    assert(s->ckpts->current == c && c->finished);
    /* a save: all servers have ended it, although some were not told to drop it */
    lane_timer_cancel(s->config.lane, &c->retell);
    s->ckpts->current = NULL;
    ckpt_free(c);
    sched_migrations_resume(s);
    s->ckpts->ops->idle(s);
}

static void order_drop_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    (void)arg, (void)node, (void)status, (void)result;
}

static void order_go_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct sched_ckpt *c = arg;
    (void)node, (void)status, (void)result;
    ckpt_check(c);
    assert(c->load && c->orders_out > 0);
    c->orders_out--;
    end_perhaps(c);
}

static void fail(struct sched_ckpt *c, paramo_err err);
static void server_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result);

/* GO ends a load, DROP a saving or a load that has failed. A server that holds requests waits for it without a
 * deadline. So it is sent until it is accepted: memory may be short, or the server may have too many unanswered
 * orders. OK: it is sent, or will be sent later. */
static paramo_err last_order(struct sched_ckpt *c, struct sched_node *node)
{
    struct lane *lane = c->sched->config.lane;
    ckpt_check(c);
    assert(c->what && (!c->err || c->finished));
    struct writer w = {0};
    ckpt_order_encode(&c->order, &w);
    bool go = c->load && !c->err;
    paramo_err err = sched_order_issue(node, go ? ORDER_CKPT_GO : ORDER_CKPT_DROP, &w,
                                       !c->load ? order_drop_done
                                       : c->err ? order_go_done
                                                : server_done,
                                       c->load ? c : NULL);
    c->orders_out += c->load && !err;
    node->ckpt_untold = err == PARAMO_E_MEMORY || err == PARAMO_E_FULL;
    if (!node->ckpt_untold)
        return err;
    paramo_err late = c->retell.slot
                          ? PARAMO_OK
                          : lane_timer_arm(lane, &c->retell, lane_now(lane) + UNTOLD_AGAIN_MS * ENV_MS);
    node->ckpt_untold = !late;
    c->untold += !late;
    return late;
}

/* Servers that are gone no longer count. */
static void retell(struct lane_timer *timer)
{
    struct sched_ckpt *c = container_of(timer, struct sched_ckpt, retell);
    size_t cursor = 0;
    paramo_err err;
    c->untold = 0;
    ckpt_check(c);
    assert(c == c->sched->ckpts->current);
    for (struct sched_node *node; (node = sched_roster_next(c->sched, &cursor));)
        if (node->ckpt_untold && (err = last_order(c, node)) != PARAMO_OK)
            fail(c, err);
    end_perhaps(c);
}

/* Tells the servers that still work on it to stop. Servers that hold requests continue before the next
 * checkpoint begins. */
static void drop_all(struct sched_ckpt *c)
{
    const struct slot_list *servers = sched_roster_slots(c->sched, SLOTS_SERVERS);
    for (uint32_t rank = 0; rank < servers->count && (!c->load || c->hold); rank++)
        if (!servers->node[rank]->ckpt_untold && last_order(c, servers->node[rank]))
            log_debug("scheduler: the end of an abandoned checkpoint was not sent: %s", err_text());
}

static void fail(struct sched_ckpt *c, paramo_err err)
{
    ckpt_check(c);
    assert(err);
    if (c->err || c->finished)
        return;
    c->err = err;
    err_text_copy(c->text);
    finish(c);
    if (c->orders_out || c->hold)
        drop_all(c);
}

static void too_late(struct lane_timer *timer)
{
    struct sched_ckpt *c = container_of(timer, struct sched_ckpt, deadline);
    fail(c, err_set(PARAMO_E_TIMEOUT, "the checkpoint took longer than %" PRIu32 " ms", c->order.timeout_ms));
    end_perhaps(c);
}

static void worked(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    assert(c->posted);
    c->posted = false;
    if (!c->sched) {
        ckpt_free(c);
        return;
    }
    if (c->work_err)
        fail(c, err_set(c->work_err, "%s", c->work_text));
    if (!c->err && c->sched->state == SCHED_RUNNING)
        c->then(c);
    end_perhaps(c);
}

static void do_work(struct sched_ckpt *c, void (*work)(struct blocking_job *blocking_job),
                    void (*then)(struct sched_ckpt *c))
{
    ckpt_check(c);
    c->blocking_job = (struct blocking_job){.lane = c->sched->config.lane, .work = work, .done = worked};
    c->then = then;
    assert(!c->posted);
    c->posted = true;
    blocking_jobs_post(c->sched->config.blocking_jobs, &c->blocking_job);
}

static void note_work(struct sched_ckpt *c, paramo_err err)
{
    assert(c->posted && !c->work_err); /* the blocking job's turn */
    c->work_err = err;
    if (err)
        err_text_copy(c->work_text);
}

static uint64_t partitions_changed(const struct scheduler *s)
{
    uint64_t last = 0;
    for (uint32_t i = 0; i < sched_ring_shards_count(s); i++) {
        uint64_t at = sched_ring_shard(s, i)->partitions_changed;
        last = at > last ? at : last;
    }
    return last;
}

/* ---- the servers --------------------------------------------------------------------------------------- */

/* Called after all shards have taken their snapshots, so every table that any of them saved is in the list.
 */
static paramo_err add_tables(struct sched_ckpt *c)
{
    const struct scheduler *s = c->sched;
    struct ckpt_manifest *m = &c->manifest;
    m->tables = malloc((sched_view_tables_count(s) + 1) * sizeof *m->tables);
    if (!m->tables)
        return err_memory(sched_view_tables_count(s) * sizeof *m->tables);
    m->tables_count = sched_view_tables_count(s);
    if (sched_view_tables_count(s))
        memcpy(m->tables, sched_view_table(s, 0), sched_view_tables_count(s) * sizeof *m->tables);
    return PARAMO_OK;
}

static void write_manifest(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    note_work(c, ckpt_commit(c->fs, c->order.dir, &c->manifest));
}

static bool is_unasked(const struct ckpt_manifest *m)
{
    struct reader records = reader_over(m->extra, m->extra_bytes), record;
    uint64_t id;
    while (store_record_next(&records, &id, &record))
        if (id >> 56 == RECORD_UNASKED)
            return true;
    return false;
}

/* This job may not remove checkpoints of a job that it does not continue. */
static bool is_mine(void *arg, const struct ckpt_manifest *m)
{
    const struct sched_ckpt *c = arg;
    return (c->all_mine || m->job == c->manifest.job) && is_unasked(m);
}

static void remove_old(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    note_work(c, ckpt_prune(c->fs, c->order.dir, c->keep, is_mine, c, &c->removed));
}

static void removed(struct sched_ckpt *c)
{
    if (c->work_err)
        log_warn("scheduler: not all old checkpoints in %s were removed: %s", c->order.dir, c->work_text);
    else if (c->removed)
        log_debug("scheduler: %zu old checkpoints in %s were removed", c->removed, c->order.dir);
}

static void written(struct sched_ckpt *c)
{
    assert(!c->load && !c->err && !c->orders_out);
    ckpt_check(c);
    struct scheduler *s = c->sched;
    const struct ckpt_order *m = &c->order;
    finish(c);
    if (m->changes) {
        s->ckpts->base =
            (struct ckpt_base){.number = m->number, .id = m->id, .links = m->base ? c->base.links + 1 : 1};
        memcpy(s->ckpts->base.dir, m->dir, sizeof m->dir);
    }
    c->keep = s->config.checkpoint_keep;
    c->all_mine = strcmp(s->config.restore_dir, m->dir) == 0;
    if (c->unasked && c->keep)
        do_work(c, remove_old, removed);
}

/* Each shard writes its own blocks-N; no two shards may have the same. */
static paramo_err check_name(struct sched_ckpt *c, const char *name)
{
    assert(c->what == ORDER_CKPT_SAVE || c->what == ORDER_CKPT_DROP);
    unsigned long shard = 0;
    char again[CKPT_NAME_MAX] = "";
    if (strncmp(name, "blocks-", 7) == 0 && name[7] >= '0' && name[7] <= '9')
        shard = strtoul(name + 7, NULL, 10);
    (void)snprintf(again, sizeof again, "blocks-%lu", shard);
    if (shard >= sched_ring_shards_count(c->sched) || strcmp(again, name) != 0 ||
        c->written[shard / 64] >> shard % 64 & 1)
        return err_set(PARAMO_E_PROTOCOL, "it reported a file '%s' that it was not to write", name);
    c->written[shard / 64] |= UINT64_C(1) << shard % 64;
    return PARAMO_OK;
}

static paramo_err add_files(struct sched_ckpt *c, struct reader *result)
{
    struct ckpt_manifest *m = &c->manifest;
    struct ckpt_written *w = malloc(sizeof *w);
    paramo_err err = w ? ckpt_written_decode(result, w) : err_memory(sizeof *w);
    struct ckpt_file *files = NULL;
    if (!err && w->count > VIEW_SHARDS_MAX - m->files_count)
        err = err_set(PARAMO_E_PROTOCOL, "there are more files than shards");
    if (!err && w->count) {
        files = realloc(m->files, (m->files_count + w->count) * sizeof *files);
        if (!files)
            err = err_memory(w->count * sizeof *files);
    }
    if (files)
        m->files = files;
    for (uint32_t i = 0; !err && i < w->count; i++)
        err = check_name(c, w->file[i].name);
    for (uint32_t i = 0; !err && i < w->count; i++) {
        struct ckpt_file *file = &files[m->files_count++];
        *file =
            (struct ckpt_file){.bytes = w->file[i].bytes, .blocks = w->file[i].blocks, .sum = w->file[i].sum};
        memcpy(file->name, w->file[i].name, sizeof file->name);
    }
    free(w);
    return err;
}

static void order_all(struct sched_ckpt *c, uint32_t what);

/* Encodes the order's fields. */
static void all_done(struct sched_ckpt *c)
{
    assert(c->what && !c->orders_out && !c->err && !c->finished);
    paramo_err err = partitions_changed(c->sched) != c->partitions_changed
                         ? err_set(PARAMO_E_AGAIN, "partitions changed owners during the checkpoint")
                     : c->load ? PARAMO_OK
                               : add_tables(c);
    if (err) {
        fail(c, err);
    } else if (!c->load) {
        do_work(c, write_manifest, written);
    } else if (c->hold && c->what != ORDER_CKPT_GO) {
        order_all(c, c->what == ORDER_CKPT_HOLD ? ORDER_CKPT_LOAD : ORDER_CKPT_GO);
    }
}

static bool owns_something(const struct scheduler *s, const struct sched_node *node)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = sched_ring_chains(s)->level[0].owner[a];
        if (owner != RING_NONE && sched_ring_shard(s, owner)->node == node->info.id)
            return true;
    }
    return false;
}

/* If it had received partitions after the orders were sent, their owners would differ (all_done()). */
static bool left_with_nothing(const struct scheduler *s, const struct sched_node *node)
{
    return node->state == SNODE_LEFT && !owns_something(s, node);
}

static void server_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct sched_ckpt *c = arg;
    char label[SCHED_LABEL];
    ckpt_check(c);
    assert(c->orders_out > 0 && c->what);
    c->orders_out--;
    if (status == PARAMO_E_NODE_LOST && left_with_nothing(c->sched, node)) {
        status = PARAMO_OK; /* drained: it owned nothing */
    } else if (status) {
        status = err_prefix(status, "%s", sched_roster_label(node, label));
    } else if (!c->load && !c->err) {
        status = add_files(c, result);
    }
    if (status)
        fail(c, status);
    if (!c->orders_out && !c->err && !c->finished)
        all_done(c);
    end_perhaps(c);
}

static bool owns_lost(const struct scheduler *s, const struct sched_node *node)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (sched_lost_levels(s)[a] &&
            sched_ring_shard(s, sched_ring_chains(s)->level[0].owner[a])->node == node->info.id)
            return true;
    return false;
}

/* The server has left or died, and other servers own its partitions. */
static bool does_not_count(const struct scheduler *s, const struct sched_node *node)
{
    return (node->state == SNODE_DEAD || node->state == SNODE_LEFT) && !owns_something(s, node);
}

static void order_all(struct sched_ckpt *c, uint32_t what)
{
    struct scheduler *s = c->sched;
    assert(!c->orders_out && !c->posted && what);
    ckpt_check(c);
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    if (!c->what)
        c->partitions_changed = partitions_changed(s);
    c->what = what;
    for (uint32_t rank = 0; rank < servers->count && !c->err; rank++) {
        struct sched_node *node = servers->node[rank];
        struct writer w = {0};
        paramo_err err;
        if (c->lost ? !owns_lost(s, node) : does_not_count(s, node))
            continue;
        if (what == ORDER_CKPT_GO) {
            err = last_order(c, node);
        } else {
            ckpt_order_encode(&c->order, &w);
            err = sched_order_issue(node, what, &w, server_done, c);
            c->orders_out += !err;
        }
        if (err)
            fail(c, err);
    }
}

/* ---- save ---------------------------------------------------------------------------------------------- */

/* The base may have been removed, or another job may have written one under its number. */
static paramo_err base_check(const struct sched_ckpt *c)
{
    struct ckpt *base;
    paramo_err err = ckpt_open(c->fs, c->order.dir, c->base.number, &base);
    if (err)
        return err;
    if (ckpt_manifest(base, 0)->id != c->base.id)
        err = err_set(PARAMO_E_CORRUPT, "%s: checkpoint %" PRIu64 " there is not the last one that was taken",
                      c->order.dir, c->base.number);
    ckpt_close(base);
    return err;
}

static void find_number(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    assert(c->posted && !c->load && !c->order.number);
    assert(!c->base.number || c->base.links); /* one of a series */
    if (c->base.number && base_check(c)) {
        c->base.number = 0;
        err_text_copy(c->full);
    }
    paramo_err err = c->anywhere ? ckpt_dir_plain(c->fs, c->order.dir) : PARAMO_OK;
    note_work(c, err ? err : ckpt_claim(c->fs, c->order.dir, &c->order.number));
}

/* Is this save to be incremental, based on the last checkpoint? */
static void choose_base(struct sched_ckpt *c, const struct ckpt_base *last)
{
    uint32_t most = c->sched->config.checkpoint_full_every;
    assert(!c->load && !c->base.number && !c->full[0]);
    assert(!last->number || last->links > 0);
    if (!c->changes)
        return;
    if (!last->number)
        (void)snprintf(c->full, sizeof c->full, "no changes are known yet");
    else if (strcmp(last->dir, c->order.dir) != 0)
        (void)snprintf(c->full, sizeof c->full, "the last one went to %.200s", last->dir);
    else if (last->links >= most)
        (void)snprintf(c->full, sizeof c->full,
                       "the last one ended a series of %" PRIu32 " (of at most %" PRIu32 ")", last->links,
                       most);
    else
        c->base = *last;
}

/* It was saved before any shard takes its snapshot: the pushes of a work unit that is done by now are in that snapshot. */
static void copied(struct sched_ckpt *c)
{
    struct writer extra = c->copy.run.w;
    size_t mark;
    assert(c->copying && !c->copy_turn.slot);
    c->copying = false;
    sched_save_copy_end(c->sched);
    if (c->unasked) {
        sched_save_record_begin(&extra, RECORD_UNASKED, 0, &mark);
        write_u8(&extra, 1);
        store_record_end(&extra, mark);
    }
    c->manifest.extra = extra.data;
    c->manifest.extra_bytes = extra.len;
    if (extra.failed)
        fail(c, err_memory(extra.len));
    else
        order_all(c, ORDER_CKPT_SAVE);
}

static void copy_go_on(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    struct lane *lane = s->config.lane;
    bool all = sched_save_copy_turn(s, false);
    if (!all && lane_timer_arm(lane, &c->copy_turn, lane_now(lane) + s->saves->pause) == PARAMO_OK)
        return;
    while (!all) /* no memory for the timer */
        all = sched_save_copy_turn(s, true);
    copied(c);
}

static void copy_due(struct lane_timer *timer)
{
    struct sched_ckpt *c = container_of(timer, struct sched_ckpt, copy_turn);
    if (!c->err && c->sched->state == SCHED_RUNNING)
        copy_go_on(c);
    else
        copy_stop(c);
    end_perhaps(c);
}

static void numbered(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    assert(!c->load && c->order.number && !c->order.base);
    ckpt_check(c);
    struct ckpt_manifest *m = &c->manifest;
    if (c->base.number && c->base.number < c->order.number) {
        c->order.base = c->base.number;
        c->order.base_id = c->base.id;
    }
    if (c->full[0])
        log_info("scheduler: checkpoint %" PRIu64 " in %s is a full one: %s", c->order.number, c->order.dir,
                 c->full);
    *m = (struct ckpt_manifest){.number = c->order.number,
                                .id = c->order.id,
                                .base = c->order.base,
                                .base_id = c->order.base_id,
                                .job = s->job,
                                .view = sched_view_number(s),
                                .made_at = s->config.unix_time ? s->config.unix_time() : 0};
    sched_save_copy_begin(s, &c->copy);
    c->copying = true;
    c->copy_turn.fire = copy_due;
    copy_go_on(c);
}

/* ---- load ---------------------------------------------------------------------------------------------- */

static void open_it(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    note_work(c, ckpt_open(c->fs, c->order.dir, c->order.number, &c->opened));
}

static void opened(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    assert(c->load && c->opened && !c->what);
    ckpt_check(c);
    const struct ckpt_manifest *m = ckpt_manifest(c->opened, 0);
    c->order.number = m->number;
    c->order.id = m->id;
    if (c->lost) {
        paramo_err err = s->ckpts->ops->lost_opened(s, c->order.dir, m);
        if (err)
            fail(c, err);
        else
            order_all(c, ORDER_CKPT_RESTORE);
        return;
    }
    for (uint32_t i = 0; i < m->tables_count && !c->err; i++) {
        paramo_err err = sched_tables_make(c->sched, &m->tables[i]);
        if (err)
            fail(c, err);
    }
    if (!c->err && c->restore) {
        paramo_err err = s->ckpts->ops->restore_extra(s, m->extra, m->extra_bytes);
        if (err)
            fail(c, err);
    }
    if (c->err)
        return;
    c->hold = sched_ring_chains(c->sched)->replicas;
    order_all(c, c->hold ? ORDER_CKPT_HOLD : ORDER_CKPT_LOAD);
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
    c->deadline.fire = too_late;
    c->retell.fire = retell;
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
        choose_base(c, &s->ckpts->base);
    }
    s->ckpts->base.number = 0;
    assert(!s->ckpts->current);
    while (!c->order.id)
        c->order.id = env_random(lane_env(s->config.lane));
    s->ckpts->current = c;
    ckpt_check(c);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        node->ckpt_untold = false;
    sched_migrations_suspend(s); /* a moving partition would be in no shard's part, or in two */
    do_work(c, c->load ? open_it : find_number, c->load ? opened : numbered);
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

static void every_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_ckpts, timer)->sched;
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
    fail(c, err);
    end_perhaps(c);
}

paramo_err sched_ckpt_start(struct scheduler *s)
{
    struct ckpt_order m;
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
    err = own_order(s->config.restore_dir, LOAD_TIMEOUT_MS, &m);
    return err ? err : begin(s, &m, (struct how){.load = true, .restore = true});
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
    m->ckpt.now = !c || c->finished ? STATUS_NO_CKPT : c->load ? STATUS_LOADING : STATUS_SAVING;
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
    if (!c)
        return;
    lane_timer_cancel(s->config.lane, &c->deadline);
    lane_timer_cancel(s->config.lane, &c->retell);
    copy_stop(c);
    c->sched = NULL;
    s->ckpts->current = NULL;
    if (!c->posted)
        ckpt_free(c);
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
