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
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_pool.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"

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
    sched_roster_slots_of(s, node->info.role)->gone++;
    sched_roster_slots_of(s, node->info.role)->founders_gone += sched_roster_founder(node);
    sched_calls_drop(node, state == SNODE_LEFT);
    if (node->info.role == PARAMO_ROLE_SERVER)
        sched_ring_gone(node);
    sched_view_change(s);
    if (node->info.role == PARAMO_ROLE_SERVER)
        sched_migrations_retarget(s);
    sched_orders_drop(node, true);
    s->node_gone(node);
    sched_lost_check(s);
    sched_admission_go_on(s);
}

static void node_dies(struct sched_node *node, const char *why)
{
    const struct slot_list *workers = &node->sched->roster->slots[SLOTS_WORKERS];
    char label[SCHED_LABEL], units[96] = "";
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

/* This process was stopped. The node's return may wait in its sockets. */
static bool wait_once_more(struct lane_timer *timer, const struct sched_node *node)
{
    const struct scheduler_config *c = &node->sched->config;
    uint64_t late = now(node->sched) - timer->at;
    return late > c->heartbeat_ms * ENV_MS &&
           lane_timer_arm(c->lane, timer, now(node->sched) + c->rejoin_ms * ENV_MS) == PARAMO_OK;
}

static void not_back_in_time(struct lane_timer *timer)
{
    struct sched_node *node = container_of(timer, struct sched_node, timer);
    if (!wait_once_more(timer, node))
        node_dies(node, "its connection was lost");
}

static void not_here_again(struct lane_timer *timer)
{
    struct sched_node *node = container_of(timer, struct sched_node, timer);
    if (!wait_once_more(timer, node))
        node_dies(node, "it has not registered with the scheduler that was restarted");
}

static paramo_err node_restore(struct scheduler *s, const struct view_node *info)
{
    struct slot_list *slots = sched_roster_slots_of(s, info->role);
    uint32_t rank = info->role == PARAMO_ROLE_SCHEDULER ? 0 : (info->id - PARAMO_ID_SERVER(0)) / 2;
    if (info->role == PARAMO_ROLE_SCHEDULER && !slots->count)
        return PARAMO_OK;
    if (rank >= slots->count || slots->node[rank])
        return err_set(PARAMO_E_CORRUPT, "the stored view has no place for node %" PRIu32, info->id);
    if (map_get(&s->roster->incarnations, info->incarnation))
        return err_set(PARAMO_E_CORRUPT, "the stored view has node %" PRIu32 "'s incarnation twice",
                       info->id);
    struct sched_node *node = calloc(1, sizeof *node);
    if (!node)
        return err_memory(sizeof *node);
    *node = (struct sched_node){.sched = s,
                                .state = info->alive  ? SNODE_ABSENT
                                         : info->left ? SNODE_LEFT
                                                      : SNODE_DEAD,
                                .info = *info,
                                .rank = rank,
                                .wanted_rank = -1,
                                .heard_at = now(s),
                                .former = info->role == PARAMO_ROLE_SCHEDULER,
                                .timer.fire = not_here_again};
    paramo_err err = map_put(&s->roster->incarnations, info->incarnation, node);
    if (err) {
        free(node);
        return err;
    }
    slots->node[rank] = node;
    slots->gone += !info->alive;
    slots->founders_gone += !info->alive && rank < slots->founders;
    return info->alive && !node->former ? lane_timer_arm(s->config.lane, &node->timer,
                                                         now(s) + s->config.heartbeat_timeout_ms * ENV_MS)
                                        : PARAMO_OK;
}

/* Makes room for workers that joined during the job. */
static paramo_err slots_restore(struct slot_list *slots, uint32_t count)
{
    if (count <= slots->count)
        return PARAMO_OK;
    struct sched_node **places = calloc(count, sizeof(struct sched_node *));
    if (!places)
        return err_memory(count * sizeof(struct sched_node *));
    free(slots->node);
    slots->node = places;
    slots->count = count;
    return PARAMO_OK;
}

paramo_err sched_departure_expect(struct scheduler *s, const struct view *view)
{
    /* The view has an entry for each node. A scheduler never writes more places than that, so a damaged count
     * allocates nothing. */
    if ((uint64_t)view->num_workers + view->num_servers > VIEW_NODES_MAX)
        return err_set(PARAMO_E_CORRUPT,
                       "the stored view has %" PRIu32 " servers and %" PRIu32
                       " workers, but a cluster has at most %d nodes; start with an empty store",
                       view->num_servers, view->num_workers, VIEW_NODES_MAX);
    paramo_err err = slots_restore(&s->roster->slots[SLOTS_WORKERS], view->num_workers);
    if (!err)
        err = slots_restore(&s->roster->slots[SLOTS_SERVERS], view->num_servers);
    for (uint32_t i = 0; i < view->nodes_count && !err; i++)
        err = node_restore(s, &view->nodes[i]);
    for (size_t i = 0; i < SLOTS && !err; i++)
        for (uint32_t rank = 0; rank < s->roster->slots[i].count && !err; rank++)
            if (!s->roster->slots[i].node[rank])
                err = err_set(PARAMO_E_CORRUPT, "the stored view lacks nodes");
    return err;
}

void sched_departure_connection_lost(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    node->peer = NULL;
    if (node->state == SNODE_WAITING) {
        sched_roster_wait_remove(node);
        sched_admission_forget(node);
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
        if (now(s) > node->heard_at + limit) {
            sched_roster_wait_remove(node);
            sched_peer_close(node->peer, false);
            sched_admission_forget(node);
        }
    }
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        if (node->state == SNODE_JOINED && now(s) > node->heard_at + limit)
            node_dies(node, why);
    sched_admission_go_on(s); /* waiting nodes may be overdue now; a silent node may have spoken */
}
