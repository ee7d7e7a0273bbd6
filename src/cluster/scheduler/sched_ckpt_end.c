#include "cluster/scheduler/sched_ckpt_end.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "wire/order.h"

enum { UNTOLD_AGAIN_MS = 10 }; /* arbitrary */

void sched_ckpt_check(const struct sched_ckpt *c)
{
    assert(c->sched->ckpts->current == c && c->order.id);
    assert(c->load || (!c->restore && !c->lost && !c->hold && !c->opened));
    assert(!c->load || (!c->unasked && !c->changes && !c->base.number));
    assert(!c->restore || !c->lost);
}

bool sched_ckpt_may_pass(paramo_err err)
{
    return err == PARAMO_E_NODE_LOST || err == PARAMO_E_AGAIN || err == PARAMO_E_FULL ||
           err == PARAMO_E_CANCELLED || err == PARAMO_E_CLOSED || err == PARAMO_E_MEMORY;
}

void sched_ckpt_free(struct sched_ckpt *c)
{
    assert(!c->posted && (!c->sched || !c->orders_out) && !c->deadline.slot);
    assert(!c->resend_timer.slot && !c->copying);
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

static void log_end(const struct sched_ckpt *c)
{
    const char *what = c->load ? "loaded" : "taken";
    if (c->err && c->sched->state != SCHED_RUNNING)
        log_info("scheduler: the job ended before a checkpoint was finished");
    else if (c->err && c->restore) /* it is loaded again, or the job ends with this text: both are logged */
        log_debug("scheduler: the checkpoint in %s was not loaded", c->order.dir);
    else if (c->err)
        log_warn("scheduler: the checkpoint in %s was not %s: %s", c->order.dir, what, c->text);
    else if (c->order.base)
        log_info("scheduler: checkpoint %" PRIu64 " in %s was taken, based on %" PRIu64, c->order.number,
                 c->order.dir, c->order.base);
    else
        log_info("scheduler: checkpoint %" PRIu64 " in %s was %s", c->order.number, c->order.dir, what);
}

void sched_ckpt_finish(struct sched_ckpt *c)
{
    struct scheduler *s = c->sched;
    sched_ckpt_check(c);
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
    log_end(c);
    if (!c->err && !c->load) {
        s->ckpts->last.number = c->order.number;
        s->ckpts->last.at = c->manifest.made_at;
        snprintf(s->ckpts->last.dir, sizeof s->ckpts->last.dir, "%s", c->order.dir);
    }
    answer_all(c);
    if (c->err && c->restore) {
        s->ckpts->ops->begin_failed(s, c->err, c->text);
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

void sched_ckpt_copy_stop(struct sched_ckpt *c)
{
    lane_timer_cancel(c->sched->config.lane, &c->copy_turn);
    if (!c->copying)
        return;
    c->copying = false;
    writer_fini(&c->copy.run.w);
    sched_save_copy_end(c->sched);
}

void sched_ckpt_end_perhaps(struct sched_ckpt *c)
{
    sched_ckpt_check(c);
    if (c->err)
        sched_ckpt_copy_stop(c);
    if (c->copying || c->posted || c->orders_out || (c->load && c->untold))
        return;
    struct scheduler *s = c->sched;
    assert(c->what || c->err || s->state != SCHED_RUNNING);
    if (!c->what && !c->err) /* no server was told of it */
        sched_ckpt_fail(c, err_set(PARAMO_E_SHUTDOWN, "the job is over: %s", sched_end_text(s)));
    sched_ckpt_finish(c);
    assert(s->ckpts->current == c && c->finished);
    /* a save: all servers have ended it, although some were not told to drop it */
    lane_timer_cancel(s->config.lane, &c->resend_timer);
    s->ckpts->current = NULL;
    sched_ckpt_free(c);
    if (!s->restoring) /* else the load that the job begins with is carried out again */
        sched_migrations_resume(s);
    s->ckpts->ops->idle(s);
}

/* ---- the servers are told --------------------------------------------------------------------------------- */

static void order_drop_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    (void)arg, (void)node, (void)status, (void)result;
}

static void order_go_done(void *arg, struct sched_node *node, paramo_err status, struct reader *result)
{
    struct sched_ckpt *c = arg;
    (void)node, (void)status, (void)result;
    sched_ckpt_check(c);
    assert(c->load && c->orders_out > 0);
    c->orders_out--;
    sched_ckpt_end_perhaps(c);
}

paramo_err sched_ckpt_last_order(struct sched_ckpt *c, struct sched_node *node)
{
    struct lane *lane = c->sched->config.lane;
    sched_ckpt_check(c);
    assert(c->what && (!c->err || c->finished));
    struct writer w = {0};
    ckpt_order_encode(&c->order, &w);
    bool go = c->load && !c->err;
    paramo_err err = sched_order_issue(node, go ? ORDER_CKPT_GO : ORDER_CKPT_DROP, &w,
                                       !c->load ? order_drop_done
                                       : c->err ? order_go_done
                                                : c->server_done,
                                       c->load ? c : NULL);
    c->orders_out += c->load && !err;
    node->ckpt_untold = err == PARAMO_E_MEMORY || err == PARAMO_E_FULL;
    if (!node->ckpt_untold)
        return err;
    paramo_err late = c->resend_timer.slot
                          ? PARAMO_OK
                          : lane_timer_arm(lane, &c->resend_timer, lane_now(lane) + UNTOLD_AGAIN_MS * ENV_MS);
    node->ckpt_untold = !late;
    c->untold += !late;
    return late;
}

/* Servers that are gone no longer count. */
void sched_ckpt_resend(struct lane_timer *timer)
{
    struct sched_ckpt *c = container_of(timer, struct sched_ckpt, resend_timer);
    size_t cursor = 0;
    paramo_err err;
    c->untold = 0;
    sched_ckpt_check(c);
    assert(c == c->sched->ckpts->current);
    for (struct sched_node *node; (node = sched_roster_next(c->sched, &cursor));)
        if (node->ckpt_untold && (err = sched_ckpt_last_order(c, node)) != PARAMO_OK)
            sched_ckpt_fail(c, err);
    sched_ckpt_end_perhaps(c);
}

/* Tells the servers that still work on it to stop. Servers that hold requests continue before the next
 * checkpoint begins. */
static void drop_all(struct sched_ckpt *c)
{
    const struct slot_list *servers = sched_roster_slots(c->sched, SLOTS_SERVERS);
    for (uint32_t rank = 0; rank < servers->count && (!c->load || c->hold); rank++)
        if (!servers->node[rank]->ckpt_untold && sched_ckpt_last_order(c, servers->node[rank]))
            log_debug("scheduler: the end of an abandoned checkpoint was not sent: %s", err_text());
}

void sched_ckpt_fail(struct sched_ckpt *c, paramo_err err)
{
    sched_ckpt_check(c);
    assert(err);
    if (c->err || c->finished)
        return;
    c->err = err;
    err_text_copy(c->text);
    sched_ckpt_finish(c);
    if (c->orders_out || c->hold)
        drop_all(c);
}

void sched_ckpt_too_late(struct lane_timer *timer)
{
    struct sched_ckpt *c = container_of(timer, struct sched_ckpt, deadline);
    sched_ckpt_fail(
        c, err_set(PARAMO_E_TIMEOUT, "the checkpoint took longer than %" PRIu32 " ms", c->order.timeout_ms));
    sched_ckpt_end_perhaps(c);
}

/* ---- blocking jobs ---------------------------------------------------------------------------------------- */

static void worked(struct blocking_job *blocking_job)
{
    struct sched_ckpt *c = container_of(blocking_job, struct sched_ckpt, blocking_job);
    assert(c->posted);
    c->posted = false;
    if (!c->sched) {
        sched_ckpt_free(c);
        return;
    }
    if (c->work_err)
        sched_ckpt_fail(c, err_set(c->work_err, "%s", c->work_text));
    if (!c->err && c->sched->state == SCHED_RUNNING)
        c->then(c);
    sched_ckpt_end_perhaps(c);
}

void sched_ckpt_do_work(struct sched_ckpt *c, void (*work)(struct blocking_job *blocking_job),
                        void (*then)(struct sched_ckpt *c))
{
    sched_ckpt_check(c);
    c->blocking_job = (struct blocking_job){.lane = c->sched->config.lane, .work = work, .done = worked};
    c->then = then;
    assert(!c->posted);
    c->posted = true;
    blocking_jobs_post(c->sched->config.blocking_jobs, &c->blocking_job);
}

void sched_ckpt_note_work(struct sched_ckpt *c, paramo_err err)
{
    assert(c->posted && !c->work_err); /* the blocking job's turn */
    c->work_err = err;
    if (err)
        err_text_copy(c->work_text);
}
