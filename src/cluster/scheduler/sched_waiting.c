#include "cluster/scheduler/sched_waiting.h"

#include <assert.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_roster.h"

enum { CLOSE_SECONDS = 10 }; /* as long as a connection may take to register */

/* The nodes that wait, in order of arrival. */
static void waiting_check(const struct sched_roster *roster)
{
    assert(!roster->waiting_first == !roster->waiting_last);
    assert(!roster->waiting_first || (!roster->waiting_first->prev && !roster->waiting_last->next));
}

void sched_waiting_push(struct scheduler *s, struct sched_node *node)
{
    assert(node->state == SNODE_WAITING && node->peer);
    waiting_check(s->roster);
    node->arrival = s->roster->arrivals++;
    node->next = NULL;
    node->prev = s->roster->waiting_last;
    *(s->roster->waiting_last ? &s->roster->waiting_last->next : &s->roster->waiting_first) = node;
    s->roster->waiting_last = node;
    waiting_check(s->roster);
}

void sched_waiting_remove(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    lane_timer_cancel(s->config.lane, &node->timer);
    assert(node->prev ? node->prev->next == node : s->roster->waiting_first == node);
    assert(node->next ? node->next->prev == node : s->roster->waiting_last == node);
    *(node->prev ? &node->prev->next : &s->roster->waiting_first) = node->next;
    *(node->next ? &node->next->prev : &s->roster->waiting_last) = node->prev;
    waiting_check(s->roster);
}

void sched_waiting_forget(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    assert(map_get(&s->roster->incarnations, node->info.incarnation) == node);
    assert(!node->peer || node->peer->node == node);
    lane_timer_cancel(s->config.lane, &node->timer);
    sched_calls_drop(node, false);
    sched_orders_drop(node, false);
    map_remove(&s->roster->incarnations, node->info.incarnation);
    if (node->peer)
        node->peer->node = NULL;
    free(node->lanes);
    free(node->status.reports);
    free(node->left);
    free(node);
}

void sched_waiting_reply_error(struct sched_peer *peer, paramo_err status)
{
    struct writer w = {0};
    call_text_encode(err_text(), &w);
    paramo_err err = sched_peer_reply(peer, CALL_REGISTER, 0, status, &w);
    if (err)
        log_debug("scheduler: an answer to REGISTER was not sent: %s", err_text());
    writer_fini(&w);
}

void sched_waiting_refuse(struct sched_node *node, paramo_err status)
{
    struct scheduler *s = node->sched;
    struct sched_peer *peer = node->peer;
    assert(node->state == SNODE_WAITING && peer->node == node);
    waiting_check(s->roster);
    char label[SCHED_LABEL];
    log_info("scheduler: %s gets no place: %s", sched_roster_label(node, label), err_text());
    sched_waiting_reply_error(peer, status);
    sched_waiting_remove(node);
    sched_waiting_forget(node);
    if (lane_timer_arm(s->config.lane, &peer->timer, lane_now(s->config.lane) + CLOSE_SECONDS * ENV_SEC))
        sched_peer_close(peer, true);
}

void sched_waiting_refuse_all(struct scheduler *s, paramo_err status, const char *text)
{
    while (s->roster->waiting_first)
        sched_waiting_refuse(s->roster->waiting_first, err_set(status, "%s", text));
}
