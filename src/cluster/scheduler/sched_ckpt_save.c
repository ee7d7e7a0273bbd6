#include "cluster/scheduler/sched_ckpt_save.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_ckpt_end.h"
#include "cluster/scheduler/sched_ckpt_servers.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/order.h"

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
    sched_ckpt_note_work(c, err ? err : ckpt_claim(c->fs, c->order.dir, &c->order.number));
}

void sched_ckpt_choose_base(struct sched_ckpt *c, const struct ckpt_base *last)
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

/* It was saved before any shard takes its snapshot: the pushes of a work unit that is done by now are in that
 * snapshot. */
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
        sched_ckpt_fail(c, err_memory(extra.len));
    else
        sched_ckpt_order_all(c, ORDER_CKPT_SAVE);
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
        sched_ckpt_copy_stop(c);
    sched_ckpt_end_perhaps(c);
}

static void numbered(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    assert(!c->load && c->order.number && !c->order.base);
    sched_ckpt_check(c);
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

void sched_ckpt_save(struct sched_ckpt *c)
{
    assert(!c->load && !c->what);
    sched_ckpt_do_work(c, find_number, numbered);
}
