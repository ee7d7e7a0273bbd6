#include "cluster/scheduler/sched_departure.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_admission.h"
#include "cluster/scheduler/sched_calls.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_recovery.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/scheduler/sched_waiting.h"

static uint64_t now(const struct scheduler *s)
{
    return lane_now(s->config.lane);
}

static void node_gone(struct sched_node *node, enum sched_node_state state)
{
    struct scheduler *s = node->sched;
    lane_timer_cancel(s->config.lane, &node->timer);
    assert(node->info.id && node->info.alive);
    sched_roster_move(node, state);
    node->info.alive = false;
    node->info.left = state == SNODE_LEFT;
    struct slot_list *slots = sched_roster_slots_of(s, node->info.role);
    slots->gone++;
    slots->founders_gone += sched_roster_founder(node);
    assert(slots->node[node->rank] == node);
    slots_check(slots);
    sched_calls_drop(node, state == SNODE_LEFT);
    if (node->info.role == PARAMO_ROLE_SERVER)
        sched_recovery_server_gone(node);
    sched_view_change(s);
    if (node->info.role == PARAMO_ROLE_SERVER)
        sched_migrations_retarget(s);
    sched_orders_drop(node, true);
    s->node_gone(node);
    sched_recovery_check(s);
    sched_admission_go_on(s);
}

static void node_dies(struct sched_node *node, const char *why)
{
    const struct slot_list *workers = &node->sched->roster->slots[SLOTS_WORKERS];
    char label[SCHED_LABEL], units[96] = "";
    assert(sched_roster_is_here(node));
    assert(!node->peer || node->peer->node == node);
    size_t held = workers->gone + 1 < workers->count ? sched_pool_held(node) : 0;
    if (held)
        snprintf(units, sizeof units, "; the work it held (work units: %zu) goes to others", held);
    log_warn("scheduler: %s is dead: %s%s", sched_roster_label(node, label), why, units);
    if (node->peer) {
        struct sched_peer *peer = node->peer;
        char text[ERR_TEXT_MAX];
        snprintf(text, sizeof text, "this node was declared dead: %s", why);
        (void)sched_end_send(node, PARAMO_E_FENCED, text); /* it learns of it when it registers again, too */
        node->peer = NULL;
        peer->node = NULL;
        sched_peer_close(peer, true);
    }
    node_gone(node, SNODE_DEAD);
}

/* A node in its place, without a connection. */
static void absent_check(const struct sched_node *node)
{
    assert(node->state == SNODE_ABSENT && !node->peer);
    assert(node->info.id && node->info.alive && !node->info.left);
}

/* This process was stopped. The node's return may wait in its sockets. */
static bool wait_once_more(struct lane_timer *timer, const struct sched_node *node)
{
    const struct scheduler_config *c = &node->sched->config;
    uint64_t late = now(node->sched) - timer->at;
    assert(timer == &node->timer && !timer->slot);
    return late > c->heartbeat_ms * ENV_MS &&
           lane_timer_arm(c->lane, timer, now(node->sched) + c->rejoin_ms * ENV_MS) == PARAMO_OK;
}

static void not_back_in_time(struct lane_timer *timer)
{
    struct sched_node *node = container_of(timer, struct sched_node, timer);
    absent_check(node);
    if (!wait_once_more(timer, node))
        node_dies(node, "its connection was lost");
}

static void not_here_again(struct lane_timer *timer)
{
    struct sched_node *node = container_of(timer, struct sched_node, timer);
    absent_check(node);
    if (!wait_once_more(timer, node))
        node_dies(node, "it has not registered with the scheduler that was restarted");
}

paramo_err sched_departure_await(struct sched_node *node)
{
    absent_check(node);
    assert(!node->timer.slot);
    const struct scheduler_config *c = &node->sched->config;
    node->timer.fire = not_here_again;
    return lane_timer_arm(c->lane, &node->timer, now(node->sched) + c->heartbeat_timeout_ms * ENV_MS);
}

void sched_departure_connection_lost(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    assert(!node->peer); /* it was closed */
    assert(node->state != SNODE_ABSENT && node->state != SNODE_DEAD);
    if (node->state == SNODE_WAITING) {
        sched_waiting_remove(node);
        sched_waiting_forget(node);
        sched_admission_go_on(s);
    } else if (node->state == SNODE_JOINED) {
        sched_roster_move(node, SNODE_ABSENT);
        sched_migrations_check(s);
        node->timer.fire = not_back_in_time;
        if (lane_timer_arm(s->config.lane, &node->timer, now(s) + s->config.rejoin_ms * ENV_MS))
            node_dies(node, "its connection was lost");
    }
}

void sched_departure_left(struct sched_node *node)
{
    assert(sched_roster_is_here(node));
    assert(node->info.id && node->info.alive);
    char label[SCHED_LABEL];
    log_info("scheduler: %s has left", sched_roster_label(node, label));
    node_gone(node, SNODE_LEFT);
}

void sched_departure_check_silence(struct scheduler *s)
{
    uint64_t limit = s->config.heartbeat_timeout_ms * ENV_MS;
    char why[64];
    snprintf(why, sizeof why, "it was silent for %" PRIu32 " ms", s->config.heartbeat_timeout_ms);
    for (struct sched_node *node = s->roster->waiting_first, *next; node; node = next) {
        next = node->next;
        assert(node->state == SNODE_WAITING && node->peer->node == node);
        if (now(s) > node->heard_at + limit) {
            sched_waiting_remove(node);
            sched_peer_close(node->peer, false);
            sched_waiting_forget(node);
        }
    }
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        if (node->state == SNODE_JOINED && now(s) > node->heard_at + limit)
            node_dies(node, why);
    sched_admission_go_on(s); /* waiting nodes may be overdue now; a silent node may have spoken */
}
