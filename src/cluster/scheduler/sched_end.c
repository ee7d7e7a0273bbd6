#include "cluster/scheduler/sched_end.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_kv.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_save.h"
#include "cluster/scheduler/sched_waiting.h"
#include "cluster/session/control_message.h"
#include "wire/end.h"

enum {
    /* How long the end waits until it is durable: a node stops within 30 s. */
    UNSAVED_MS = 25000,
    TRY_AGAIN_MS = 200,
    /* How long the scheduler waits for a store that is being emptied. etcd has answered or failed by then. */
    SILENT_MS = 8000
};

/* A job that has a reason to end no longer waits for a worker. What is told is durable. */
static void end_check(const struct sched_end *end)
{
    assert(!end->awaits_worker || !end->since);
    assert(!end->awaits_worker || end->sched->state == SCHED_RUNNING || end->sched->state == SCHED_OVER);
    assert(!end->since || end->sched->state > SCHED_RUNNING);
    assert(!end->told || !end->sched->config.store || end->sched->saves->end_saved);
}

bool sched_end_send(struct sched_node *node, paramo_err status, const char *text)
{
    if (!node->peer)
        return false;
    struct wire_head head = {.plain = {.kind = WIRE_END}};
    struct writer w = {0};
    end_encode(status, text, &w);
    paramo_err err = control_message_send_written(node->peer->conn, &head, &w);
    if (err)
        log_debug("scheduler: END is sent again later: %s", err_text()); /* a heartbeat sends it again */
    return !err;
}

/* The node finds the next leader. One that waits for a place waits there. */
static void end_for(struct sched_peer *peer)
{
    struct sched_node *node = peer->node;
    if (node && node->state == SNODE_WAITING) {
        sched_waiting_remove(node);
        sched_waiting_forget(node);
    }
    sched_peer_close(peer, false);
}

/* This scheduler leaves, and the job continues: under another one, or when one starts again over the same store. The
 * nodes look for that one. Only this process's own node ends. This thread's message says why. */
static void leave(struct scheduler *s, paramo_err status)
{
    assert(s->state == SCHED_OVER && s->config.store && status);
    char text[CALL_TEXT_MAX];
    snprintf(text, sizeof text, "%s", err_text());
    s->end->status = status;
    snprintf(s->end->text, sizeof s->end->text, "%s", text);
    struct lane *lane = s->config.lane;
    lane_timer_cancel(lane, &s->tick);
    lane_timer_cancel(lane, &s->end->timer);
    sched_peers_refuse(s);
    for (struct sched_peer *peer = sched_peers_first(s), *next; peer; peer = next) {
        next = peer->next;
        struct sched_node *node = peer->node;
        if (node && node->info.role == PARAMO_ROLE_SCHEDULER)
            (void)sched_end_send(node, status, text);
        else
            end_for(peer);
    }
    s->config.over(s->config.arg, status, s->end->text);
}

void sched_end_fenced(struct scheduler *s)
{
    if (s->state == SCHED_OVER)
        return;
    end_check(s->end);
    log_info("scheduler: %s", err_text());
    sched_move(s, SCHED_OVER);
    leave(s, PARAMO_E_FENCED);
}

static void report_over(struct scheduler *s)
{
    end_check(s->end);
    assert(s->state == SCHED_OVER && s->end->told);
    s->config.over(s->config.arg, s->end->status, s->end->text);
}

/* The store is empty, or cannot be emptied. An empty store has no job: that is a durable end, too. */
static void emptied(struct scheduler *s, paramo_err status)
{
    end_check(s->end);
    assert(s->state == SCHED_OVER);
    lane_timer_cancel(s->config.lane, &s->end->timer);
    if (status && !s->end->told) {
        char why[ERR_TEXT_MAX];
        err_text_copy(why);
        if (status != PARAMO_E_FENCED) {
            (void)err_set(
                status,
                "the end of the job (%s) could not be saved within %d ms: %s; no node was told of it, "
                "and the job continues when its scheduler is started again",
                sched_end_text(s), UNSAVED_MS, why);
            log_error("scheduler: %s", err_text());
        } else {
            log_info("scheduler: %s", why);
        }
        leave(s, status);
        return;
    }
    if (status)
        log_error("scheduler: the job is over, but its state could not be removed: %s", err_text());
    sched_end_tell(s);
    report_over(s);
}

static void over_in(struct scheduler *s, uint64_t ms);
static void end_if_all_gone(struct scheduler *s, bool waited);

static void end_due(struct lane_timer *timer)
{
    struct scheduler *s = container_of(timer, struct sched_end, timer)->sched;
    end_check(s->end);
    if (s->end->awaits_worker) {
        s->end->awaits_worker = false;
        end_if_all_gone(s, true);
        return;
    }
    if (s->state == SCHED_OVER) { /* a disk may hang forever; no node may wait for that */
        sched_save_abandon(s);
        emptied(s, err_set(PARAMO_E_TIMEOUT, "the store has not answered within %d ms", SILENT_MS));
        return;
    }
    assert(s->state == SCHED_ENDING);
    uint64_t now = lane_now(s->config.lane);
    if (!s->end->told && now < s->end->since + UNSAVED_MS * ENV_MS) {
        over_in(s, TRY_AGAIN_MS); /* the save that has the end is tried again all the time */
        return;
    }
    sched_move(s, SCHED_OVER);
    if (s->config.store) {
        over_in(s, SILENT_MS);
        sched_save_nothing(s, emptied);
    } else {
        report_over(s);
    }
}

/* Without memory for the timer, an end that is not durable yet waits for the scheduler's clock (sched_end_retry). */
static void over_in(struct scheduler *s, uint64_t ms)
{
    const struct sched_end *end = s->end;
    if (lane_timer_arm(s->config.lane, &s->end->timer, lane_now(s->config.lane) + ms * ENV_MS) &&
        s->state != SCHED_OVER && (end->told || end->awaits_worker))
        end_due(&s->end->timer);
}

void sched_end_retry(struct scheduler *s)
{
    end_check(s->end);
    if (s->state == SCHED_ENDING && !s->end->timer.slot)
        over_in(s, TRY_AGAIN_MS);
    else if (sched_save_is_emptying(s) && !s->end->timer.slot)
        over_in(s, SILENT_MS);
}

void sched_end_wait(struct scheduler *s)
{
    assert(s->state == SCHED_ENDING);
    over_in(s, sched_roster_any_left(s) ? s->config.end_wait_ms : 0);
}

/* by: the call that asks for it, or NULL. It is answered when the end is durable. */
static void begin(struct scheduler *s, paramo_err status, const char *text, struct sched_call *by)
{
    end_check(s->end);
    assert(!s->end->told && !s->end->since);
    s->end->awaits_worker = false;
    sched_move(s, SCHED_ENDING);
    s->end->since = lane_now(s->config.lane);
    s->end->status = status;
    snprintf(s->end->text, sizeof s->end->text, "%s", text);
    log_info("scheduler: the job ends: %s%s%s; values still kept: %zu", err_name(status), text[0] ? ": " : "",
             text, sched_kv_count(s));
    if (s->config.store)
        sched_save_end(s);
    if (by)
        sched_call_answer(by, NULL); /* it waits for that save */
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        sched_calls_drop(node, true);
    if (s->config.store)
        sched_end_wait(s);
    else
        sched_end_tell(s);
}

void sched_end_begin(struct scheduler *s, paramo_err status, const char *text)
{
    if (s->state != SCHED_ENDING && s->state != SCHED_OVER)
        begin(s, status, text, NULL);
}

void sched_end_asked(struct sched_call *call, const char *text)
{
    assert(call->node->sched->state == SCHED_RUNNING && !call->answered);
    begin(call->node->sched, PARAMO_E_SHUTDOWN, text, call);
}

void sched_end_worker_joined(struct scheduler *s)
{
    if (!s->end->awaits_worker)
        return;
    end_check(s->end);
    assert(s->state == SCHED_RUNNING);
    s->end->awaits_worker = false;
    lane_timer_cancel(s->config.lane, &s->end->timer);
}

void sched_end_tell(struct scheduler *s)
{
    assert(s->state == SCHED_ENDING || s->state == SCHED_OVER);
    assert(s->end->told || s->end->since);
    if (s->end->told)
        return;
    s->end->told = true;
    end_check(s->end);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        (void)sched_end_send(node, s->end->status, s->end->text);
    char why[CALL_TEXT_MAX + 32];
    snprintf(why, sizeof why, "the job is over%s%s", s->end->text[0] ? ": " : "", s->end->text);
    sched_waiting_refuse_all(s, PARAMO_E_SHUTDOWN, why);
    if (s->state == SCHED_ENDING)
        sched_end_wait(s);
}

void sched_end_write(const struct scheduler *s, struct writer *w)
{
    end_encode(s->end->status, s->end->text, w);
}

paramo_err sched_end_restore(struct scheduler *s, struct reader *record)
{
    assert(!s->end->told && s->state == SCHED_GATHERING);
    paramo_err err = end_decode(record, &s->end->status, s->end->text);
    s->end->told = !err;
    return err;
}

/* waited: no worker came in a dead one's place in time. */
static void end_if_all_gone(struct scheduler *s, bool waited)
{
    const struct slot_list *workers = sched_roster_slots(s, SLOTS_WORKERS);
    assert(workers->gone <= workers->count && workers->founders_gone <= workers->founders);
    end_check(s->end);
    assert(!s->end->told);
    if (!workers->count || workers->gone < workers->count)
        return;
    char names[CALL_TEXT_MAX];
    uint32_t needed =
        sched_ring_chains(s)->replicas || sched_restores_lost(s) /* others have a server's rows */
            ? PARAMO_GROUP_WORKERS
            : PARAMO_GROUP_ALL;
    bool recovers = s->config.recovery_ms && !waited &&
                    sched_roster_gone(s, PARAMO_GROUP_WORKERS, false, names, sizeof names) > 0 &&
                    !sched_roster_gone(s, needed & ~PARAMO_GROUP_WORKERS, false, names, sizeof names);
    bool lost = sched_roster_gone(s, needed, false, names, sizeof names) > 0;
    if (recovers) {
        if (!s->end->awaits_worker)
            log_warn("scheduler: no worker is left (%s); the job waits %" PRIu32
                     " ms for a worker that replaces a dead one",
                     names, s->config.recovery_ms);
        s->end->awaits_worker = true;
        over_in(s, s->config.recovery_ms);
        return;
    }
    sched_end_begin(s, lost ? PARAMO_E_NODE_LOST : PARAMO_OK, names);
}

void sched_end_check(struct scheduler *s)
{
    end_if_all_gone(s, false);
}

void sched_end_init(struct scheduler *s)
{
    s->end->timer.fire = end_due;
}

void sched_end_fini(struct scheduler *s)
{
    lane_timer_cancel(s->config.lane, &s->end->timer);
}

void sched_end_repeat(struct sched_node *node)
{
    const struct sched_end *end = node->sched->end;
    if (end->told)
        (void)sched_end_send(node, end->status, end->text);
}

bool sched_end_is_told(const struct scheduler *s)
{
    return s->end->told;
}

const char *sched_end_text(const struct scheduler *s)
{
    if (s->end->text[0])
        return s->end->text;
    return s->end->status ? err_name(s->end->status) : "it ended in order";
}
