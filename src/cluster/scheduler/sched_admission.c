#include "cluster/scheduler/sched_admission.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_announce.h"
#include "cluster/scheduler/sched_ckpt.h"
#include "cluster/scheduler/sched_end.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_orders.h"
#include "cluster/scheduler/sched_peers.h"
#include "cluster/scheduler/sched_recovery.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "cluster/scheduler/sched_waiting.h"
#include "cluster/session/address.h"
#include "wire/register_call.h"

enum { WAITING_SPARE = 16 };

static uint64_t now(const struct scheduler *s)
{
    return lane_now(s->config.lane);
}

static paramo_err incomplete(const struct scheduler *s)
{
    uint32_t came = s->roster->came[SLOTS_SERVERS] + s->roster->came[SLOTS_WORKERS], here = 0;
    for (const struct sched_node *node = s->roster->waiting_first; node; node = node->next)
        here += node->chosen && node->info.role != PARAMO_ROLE_SCHEDULER;
    paramo_err err = err_set(PARAMO_E_TIMEOUT,
                             "the cluster is not complete: %" PRIu32 " of %" PRIu32 " servers and %" PRIu32
                             " of %" PRIu32 " workers have registered",
                             s->roster->came[SLOTS_SERVERS], s->roster->slots[SLOTS_SERVERS].count,
                             s->roster->came[SLOTS_WORKERS], s->roster->slots[SLOTS_WORKERS].count);
    char text[ERR_TEXT_MAX];
    err_text_copy(text);
    return here < came ? err_set(err, "%s (%" PRIu32 " of these have left again)", text, came - here) : err;
}

static void waited_long_enough(struct lane_timer *timer)
{
    struct sched_node *node = container_of(timer, struct sched_node, timer);
    struct scheduler *s = node->sched;
    if (s->state == SCHED_GATHERING)
        sched_waiting_refuse(node, incomplete(s));
    else
        sched_waiting_refuse(node, err_set(PARAMO_E_TIMEOUT,
                                           "no place for a %s became free in time: the job has all its nodes",
                                           sched_roster_role_name(node->info.role)));
}

/* ---- places -------------------------------------------------------------------------------------------- */

static void reply_registered(struct sched_node *node)
{
    assert(node->info.id && node->peer);
    struct register_result result = {.node = node->info.id,
                                     .recovered = node->info.recovered,
                                     .returns = node->sched->config.store != NULL};
    struct writer w = {0};
    register_result_encode(&result, &w);
    paramo_err err = sched_peer_reply(node->peer, CALL_REGISTER, 0, PARAMO_OK, &w);
    if (err)
        log_debug("scheduler: an answer to REGISTER is sent later: %s",
                  err_text()); /* it will be asked for again */
    writer_fini(&w);
}

static void assign_place(struct sched_node *node, struct slot_list *slots, uint32_t rank)
{
    static const uint32_t first_id[SLOTS] = {PARAMO_ID_SCHEDULER, PARAMO_ID_SERVER(0), PARAMO_ID_WORKER(0)};
    slots_check(slots);
    assert(rank < slots->count && !node->info.id);
    assert(!slots->node[rank] || slots->node[rank] == node);
    sched_waiting_remove(node);
    sched_roster_move(node, SNODE_JOINED);
    node->rank = rank;
    node->info.id = first_id[slots - node->sched->roster->slots] + 2 * rank;
    node->info.alive = true;
    slots->node[rank] = node;
    char label[SCHED_LABEL];
    log_info("scheduler: %s has joined%s", sched_roster_label(node, label),
             node->info.recovered            ? " in a dead node's place"
             : node->rank >= slots->founders ? " the running job as an additional node"
                                             : "");
}

/* Orders by name (nodes without one last), then host, port and arrival. */
static int by_name_host_arrival(const void *left, const void *right)
{
    const struct sched_node *a = *(struct sched_node *const *)left, *b = *(struct sched_node *const *)right;
    if (!a->info.name[0] != !b->info.name[0])
        return a->info.name[0] ? -1 : 1;
    int order = strcmp(a->info.name, b->info.name);
    if (!order)
        order = strcmp(a->info.host, b->info.host);
    if (!order)
        order = (a->info.port > b->info.port) - (a->info.port < b->info.port);
    return order ? order : (a->arrival > b->arrival) - (a->arrival < b->arrival);
}

/* Gives the chosen nodes their places. They still wait. */
static paramo_err place_role(struct scheduler *s, struct slot_list *slots)
{
    struct sched_node **order = calloc(slots->count ? slots->count : 1, sizeof(struct sched_node *));
    if (!order)
        return err_memory(slots->count * sizeof(struct sched_node *));
    slots_check(slots);
    assert(s->state == SCHED_GATHERING && !slots->gone);
    uint32_t count = 0, rank = 0;
    for (struct sched_node *node = s->roster->waiting_first; node; node = node->next) {
        if (node->info.role != slots->role || !node->chosen)
            continue;
        if (node->wanted_rank >= 0)
            slots->node[node->wanted_rank] = node;
        else
            order[count++] = node;
    }
    qsort(order, count, sizeof(struct sched_node *), by_name_host_arrival);
    for (uint32_t i = 0; i < count; i++) {
        while (slots->node[rank])
            rank++;
        assert(rank < slots->count); /* at most as many nodes are chosen as there are places */
        slots->node[rank] = order[i];
    }
    free(order);
    return PARAMO_OK;
}

/* All nodes join, or none: there may be no memory for the first ring. */
static paramo_err place_all(struct scheduler *s)
{
    paramo_err err = PARAMO_OK;
    for (size_t i = 0; i < SLOTS && !err; i++)
        err = place_role(s, &s->roster->slots[i]);
    if (!err)
        err = sched_ring_build(s);
    if (!err)
        err = sched_migrations_init(s);
    for (size_t i = 0; i < SLOTS; i++) {
        struct slot_list *slots = &s->roster->slots[i];
        for (uint32_t rank = 0; rank < slots->count; rank++)
            if (err)
                slots->node[rank] = NULL;
            else
                assign_place(slots->node[rank], slots, rank);
    }
    return err;
}

/* A node that seems one too many may be a restarted node that was faster than the news of its death. It is
 * refused only after that news has had time to arrive. */
static bool overdue(const struct sched_node *node)
{
    const struct scheduler *s = node->sched;
    return now(s) >= node->arrived_at + 2 * s->config.heartbeat_ms * ENV_MS;
}

/* A worker or server beyond the expected number joins the running job as one more. */
static bool may_be_extra(const struct sched_node *node)
{
    return node->info.role != PARAMO_ROLE_SCHEDULER && node->wanted_rank < 0;
}

/* While gathering: may this node join, beside those that were chosen before? */
static paramo_err choose(struct sched_node *node)
{
    assert(node->state == SNODE_WAITING && !node->chosen);
    const struct slot_list *slots = sched_roster_slots_of(node->sched, node->info.role);
    uint32_t same = 0;
    assert(node->wanted_rank < 0 || (uint32_t)node->wanted_rank < slots->count); /* REGISTER was checked */
    for (const struct sched_node *other = node->sched->roster->waiting_first; other; other = other->next) {
        if (!other->chosen || other->info.role != node->info.role)
            continue;
        same++;
        if (node->wanted_rank >= 0 && other->wanted_rank == node->wanted_rank)
            return err_set(PARAMO_E_INVALID, "rank %" PRId32 " is also wanted by another %s",
                           node->wanted_rank, sched_roster_role_name(slots->role));
        if (node->info.name[0] && strcmp(node->info.name, other->info.name) == 0)
            return err_set(PARAMO_E_INVALID, "another %s already has the name %s",
                           sched_roster_role_name(slots->role), node->info.name);
    }
    if (same >= slots->count)
        return err_set(PARAMO_E_FULL, "the job already has all its %" PRIu32 " %ss", slots->count,
                       sched_roster_role_name(slots->role));
    node->chosen = true;
    return PARAMO_OK;
}

static bool gathered(struct scheduler *s)
{
    assert(s->state == SCHED_GATHERING);
    assert(!sched_view_body(s)); /* no node has heard of this job */
    uint32_t came[SLOTS] = {0};
    bool complete = true;
    for (struct sched_node *node = s->roster->waiting_first, *next; node; node = next) {
        next = node->next;
        paramo_err err = node->chosen ? PARAMO_OK : choose(node);
        if (!err)
            came[sched_roster_slots_of(s, node->info.role) - s->roster->slots]++;
        else if (overdue(node) && !(err == PARAMO_E_FULL && may_be_extra(node)))
            sched_waiting_refuse(node, err);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        complete = complete && came[i] == s->roster->slots[i].count;
        assert(came[i] <= s->roster->slots[i].count);
        s->roster->came[i] = came[i] > s->roster->came[i] ? came[i] : s->roster->came[i];
    }
    return complete;
}

static void gather(struct scheduler *s)
{
    if (!gathered(s))
        return;
    paramo_err err = place_all(s);
    if (err == PARAMO_E_MEMORY) {
        log_warn("scheduler: all nodes have registered, and wait: %s",
                 err_text()); /* the clock tries again */
        return;
    }
    if (err) {
        sched_end_begin(s, err, err_text());
        return;
    }
    sched_move(s, SCHED_RUNNING);
    sched_migrations_set_converged(s); /* only rebalancing after a change is logged */
    log_info("scheduler: complete with %" PRIu32 " servers and %" PRIu32 " workers",
             s->roster->slots[SLOTS_SERVERS].count, s->roster->slots[SLOTS_WORKERS].count);
    sched_view_change(s);
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        if (node->peer)
            reply_registered(node);
    err = sched_ckpt_begin(s);
    if (err)
        sched_end_begin(s, err, err_text());
}

static bool silent(const struct sched_node *node)
{
    return node->state == SNODE_ABSENT ||
           (node->state == SNODE_JOINED &&
            now(node->sched) > node->heard_at + 2 * node->sched->config.heartbeat_ms * ENV_MS);
}

/* How much the place resembles the one that this node had before its restart. Higher is more alike. */
static int likeness(const struct sched_node *node, const struct sched_node *holder)
{
    if (node->info.name[0] || holder->info.name[0])
        return strcmp(node->info.name, holder->info.name) == 0 ? 3 : 0;
    if (strcmp(node->info.host, holder->info.host) != 0)
        return 0;
    return node->info.port == holder->info.port ? 2 : 1;
}

/* May the place be taken? If other servers have its rows, the place is worth nothing to a server with another
 * number of shards; that server may join as one more. */
static bool is_vacant(const struct sched_node *node, const struct sched_node *holder)
{
    bool left = holder->state == SNODE_LEFT && holder->info.role == PARAMO_ROLE_SERVER;
    const struct scheduler *s = node->sched;
    if ((left || sched_ring_chains(s)->replicas || sched_restores_lost(s)) &&
        holder->info.shards != node->info.shards && may_be_extra(node))
        return false;
    return left || holder->state == SNODE_DEAD || holder->former;
}

/* How well the place suits. Of two that are as alike, a dead node's is better than that of one that has left, which had
 * passed all its rows on. */
static int fitness(const struct sched_node *node, const struct sched_node *holder)
{
    return 2 * likeness(node, holder) + (holder->state != SNODE_LEFT);
}

/* May the holder's place become free soon? It may if it is silent, or if it has this node's name or address, so that it
 * must be what this process was before its restart. */
static bool may_be_vacant_soon(const struct sched_node *node, const struct sched_node *holder)
{
    return sched_roster_is_here(holder) &&
           (silent(holder) || (likeness(node, holder) >= 2 && !overdue(node)));
}

/* Finds the dead node whose place a latecomer takes. *wait: no place that suits is free, but one that suits better may
 * become free. If the node took another one, no other node would come for that place, and without copies its rows would
 * be lost. */
static paramo_err find_place(struct sched_node *node, uint32_t *rank, bool *wait)
{
    assert(node->state == SNODE_WAITING && node->sched->state == SCHED_RUNNING);
    struct slot_list *slots = sched_roster_slots_of(node->sched, node->info.role);
    int best = -1, soon = -1;
    *wait = !overdue(node);
    for (uint32_t i = 0; i < slots->count; i++) {
        const struct sched_node *holder = slots->node[i];
        if (node->wanted_rank >= 0 && node->wanted_rank != (int32_t)i)
            continue;
        int fit = fitness(node, holder);
        *wait = *wait || silent(holder);
        if (is_vacant(node, holder) && fit > best) {
            best = fit;
            *rank = i;
        }
        if (may_be_vacant_soon(node, holder) && fit > soon)
            soon = fit;
    }
    assert(soon < 0 || *wait);
    bool found = best >= 0 && best >= soon;
    if (found || *wait)
        return found ? PARAMO_OK
                     : err_set(PARAMO_E_AGAIN, "no %s's place is free yet",
                               sched_roster_role_name(slots->role));
    char label[SCHED_LABEL];
    if (node->wanted_rank >= 0)
        return err_set(PARAMO_E_INVALID, "rank %" PRId32 " is held by %s", node->wanted_rank,
                       sched_roster_label(slots->node[node->wanted_rank], label));
    return err_set(PARAMO_E_FULL, "the job already has all its %" PRIu32 " %ss", slots->count,
                   sched_roster_role_name(slots->role));
}

/* One more worker or server than before, with the next rank. */
static paramo_err join_extra(struct sched_node *node, struct slot_list *slots)
{
    struct scheduler *s = node->sched;
    if (s->roster->slots[SLOTS_SERVERS].count + slots->count + 1 >= VIEW_NODES_MAX)
        return err_set(PARAMO_E_FULL, "a cluster has at most %d nodes", VIEW_NODES_MAX);
    struct sched_node **places = realloc(slots->node, (slots->count + 1) * sizeof(struct sched_node *));
    if (!places)
        return err_memory((slots->count + 1) * sizeof(struct sched_node *));
    places[slots->count] = NULL;
    slots->node = places;
    bool server = node->info.role == PARAMO_ROLE_SERVER;
    paramo_err err = server ? sched_ring_reserve(s, node->info.shards) : PARAMO_OK;
    if (!err && server)
        err = sched_migrations_reserve(s, node->info.shards);
    if (err)
        return err;
    assign_place(node, slots, slots->count++);
    assert(node->rank == slots->count - 1 && node->rank >= slots->founders);
    if (server)
        sched_ring_grow(s, &node->info);
    sched_view_change(s); /* first: orders name this view */
    if (server) {
        sched_migrations_retarget(s);
        sched_recovery_check(s); /* partitions without an owner may wait for a server */
    }
    node->since = sched_view_number(s);
    reply_registered(node);
    return PARAMO_OK;
}

/* A latecomer takes a dead node's place, waits for one, is one more worker, or is refused. */
static void place_timed_out(struct sched_node *node)
{
    struct scheduler *s = node->sched;
    struct slot_list *slots = sched_roster_slots_of(s, node->info.role);
    uint32_t rank = 0;
    bool wait;
    paramo_err err = find_place(node, &rank, &wait);
    if (err == PARAMO_E_FULL && !wait && may_be_extra(node)) {
        err = join_extra(node, slots);
        if (!err)
            return;
    }
    if (err) {
        if (!wait && err != PARAMO_E_MEMORY) /* the clock tries again */
            sched_waiting_refuse(node, err);
        return;
    }
    struct sched_node *dead = slots->node[rank];
    assert(dead->rank == rank && dead->info.role == node->info.role);
    if (dead->info.shards != node->info.shards) {
        sched_waiting_refuse(node, err_set(PARAMO_E_INVALID,
                                           "the dead server that this one replaces had %u shards, not %u",
                                           dead->info.shards, node->info.shards));
        return;
    }
    if (node->info.weight != dead->info.weight && dead->info.weight) { /* 0: it was being drained */
        char label[SCHED_LABEL];
        log_warn("scheduler: %s keeps weight %" PRIu32
                 ", by which its keys were assigned; the new weight %" PRIu32 " is ignored",
                 sched_roster_label(dead, label), dead->info.weight, node->info.weight);
        node->info.weight = dead->info.weight;
    }
    bool gone = dead->state == SNODE_DEAD || dead->state == SNODE_LEFT;
    assert(gone || dead->former);
    assert(!gone || (slots->gone > 0 && (rank >= slots->founders || slots->founders_gone > 0)));
    slots->gone -= gone;
    slots->founders_gone -= gone && rank < slots->founders;
    if (dead->state == SNODE_DEAD)
        s->roster->replaced[s->roster->replaced_count++ % SCHED_REPLACED] = dead->info.incarnation;
    slots->node[rank] = NULL;
    sched_waiting_forget(dead);
    node->info.recovered = true;
    if (node->info.role == PARAMO_ROLE_WORKER)
        sched_end_worker_joined(s);
    assign_place(node, slots, rank);
    slots_check(slots);
    sched_view_change(s);
    if (node->info.role == PARAMO_ROLE_SERVER) {
        sched_migrations_retarget(s);
        sched_recovery_check(s);
    }
    node->since = sched_view_number(s); /* a view that is being saved has the dead node in this place */
    reply_registered(node);
}

/* Called whenever a place may have become free, or can no longer become free. */
void sched_admission_go_on(struct scheduler *s)
{
    if (s->state == SCHED_GATHERING) {
        gather(s);
        return;
    }
    for (struct sched_node *node = s->roster->waiting_first, *next; node && s->state == SCHED_RUNNING;
         node = next) {
        next = node->next;
        place_timed_out(node);
    }
}

/* ---- registration -------------------------------------------------------------------------------------- */

/* Refuses what no later event can make acceptable. */
static paramo_err check_new(struct scheduler *s, const struct register_call *m, uint64_t incarnation)
{
    const struct slot_list *slots = sched_roster_slots_of(s, m->role);
    char label[SCHED_LABEL];
    if (sched_end_is_told(s)) /* before that it waits: the job may continue under another scheduler */
        return err_set(PARAMO_E_SHUTDOWN, "the job is over: %s", sched_end_text(s));
    if (m->node)
        return err_set(PARAMO_E_FENCED, "%s was declared dead and another node has its place",
                       view_id_label(m->node, label));
    for (size_t i = 0; i < SCHED_REPLACED; i++) /* the node may never have learned that it had a place */
        if (s->roster->replaced[i] == incarnation)
            return err_set(PARAMO_E_FENCED, "this node was declared dead and another node has its place");
    if (m->rank >= 0 && (uint32_t)m->rank >= slots->count)
        return err_set(PARAMO_E_INVALID, "there is no rank %" PRId32 ": the job has %" PRIu32 " %ss", m->rank,
                       slots->count, sched_roster_role_name(m->role));
    uint32_t same = 0, shards = m->shards;
    for (const struct sched_node *other = s->roster->waiting_first; other; other = other->next) {
        shards += other->info.shards;
        same += other->info.role == m->role;
    }
    if (slots->count == 0 || same >= 2 * slots->count + WAITING_SPARE)
        return err_set(PARAMO_E_FULL, "the job already has all its %" PRIu32 " %ss", slots->count,
                       sched_roster_role_name(m->role));
    if (s->state == SCHED_GATHERING && shards > VIEW_SHARDS_MAX)
        return err_set(PARAMO_E_TOO_LARGE, "the servers have more than %d shards", VIEW_SHARDS_MAX);
    return PARAMO_OK;
}

/* The host of the connection's other end, if the node names none. */
static void host_of_peer(const struct sched_peer *peer, char host[VIEW_HOST_MAX])
{
    uint16_t port;
    if (address_split(peer->conn->peer, host, VIEW_HOST_MAX, &port))
        snprintf(host, VIEW_HOST_MAX, "%s", peer->conn->peer);
}

static paramo_err node_new(struct scheduler *s, struct sched_peer *peer, const struct register_call *m,
                           struct sched_node **out)
{
    struct sched_node *node = calloc(1, sizeof *node);
    if (!node)
        return err_memory(sizeof *node);
    node->sched = s;
    node->wanted_rank = m->rank;
    node->heard_at = node->arrived_at = now(s);
    node->timer.fire = waited_long_enough;
    node->info = (struct view_node){.role = m->role,
                                    .incarnation = peer->incarnation,
                                    .port = m->port,
                                    .shards = m->shards,
                                    .weight = m->weight};
    memcpy(node->info.name, m->name, sizeof m->name);
    memcpy(node->info.host, m->host, sizeof m->host);
    if (!m->host[0])
        host_of_peer(peer, node->info.host);
    if (m->role == PARAMO_ROLE_SERVER)
        memcpy(node->info.domain, m->domain[0] ? m->domain : node->info.host, sizeof node->info.domain);
    paramo_err err = lane_timer_arm(s->config.lane, &node->timer, now(s) + m->timeout_ms * ENV_MS);
    if (!err)
        err = map_put(&s->roster->incarnations, peer->incarnation, node);
    if (err) {
        lane_timer_cancel(s->config.lane, &node->timer);
        free(node);
        return err;
    }
    *out = node;
    return PARAMO_OK;
}

static void attach(struct sched_node *node, struct sched_peer *peer)
{
    struct sched_peer *before = node->peer;
    assert(peer->sched == node->sched && (!peer->node || peer->node == node));
    node->peer = peer;
    peer->node = node;
    node->heard_at = now(node->sched);
    node->view_due = false;
    lane_timer_cancel(node->sched->config.lane, &peer->timer);
    if (before && before != peer) {
        before->node = NULL;
        sched_peer_close(before, false);
    }
    assert(node->peer == peer && peer->node == node);
}

static void welcome_back(struct sched_node *node, struct sched_peer *peer, uint64_t seen)
{
    struct scheduler *s = node->sched;
    char label[SCHED_LABEL];
    if (node->state == SNODE_DEAD) {
        sched_waiting_reply_error(
            peer, err_set(PARAMO_E_FENCED, "%s was declared dead", sched_roster_label(node, label)));
        return;
    }
    if (node->state == SNODE_LEFT) {
        sched_waiting_reply_error(
            peer, err_set(PARAMO_E_CLOSED, "%s has left already", sched_roster_label(node, label)));
        return;
    }
    paramo_err err = node->info.id ? sched_announce_above(s, seen) : PARAMO_OK;
    if (err) {
        log_warn("scheduler: %s is refused: %s", sched_roster_label(node, label), err_text());
        sched_waiting_reply_error(peer, err);
        return;
    }
    assert(node->state != SNODE_ABSENT || !node->peer);
    attach(node, peer);
    if (node->state == SNODE_WAITING)
        return;
    if (node->state == SNODE_ABSENT) {
        lane_timer_cancel(s->config.lane, &node->timer);
        sched_roster_move(node, SNODE_JOINED);
        log_info("scheduler: %s is back", sched_roster_label(node, label));
        sched_migrations_check(s);
    }
    reply_registered(node);
    sched_orders_unsend(node);
    if (s->state == SCHED_RUNNING) {
        sched_announce_to(node);
        sched_orders_send(node, 0);
    } else {
        sched_end_repeat(node);
    }
    sched_admission_go_on(s); /* a latecomer that hoped for this place */
}

void sched_admission_register(struct scheduler *s, struct sched_peer *peer, uint64_t seen,
                              struct reader *body)
{
    struct register_call m;
    struct sched_node *node = map_get(&s->roster->incarnations, peer->incarnation);
    paramo_err err = register_call_decode(body, &m);
    if (!err && node) {
        welcome_back(node, peer, seen);
        return;
    }
    if (!err)
        err = check_new(s, &m, peer->incarnation);
    if (!err)
        err = node_new(s, peer, &m, &node);
    if (err == PARAMO_E_MEMORY) {
        log_warn("scheduler: a %s at %s must ask again: %s", sched_roster_role_name(m.role), peer->conn->peer,
                 err_text());
        return;
    }
    if (err) {
        log_info("scheduler: a %s at %s gets no place: %s", sched_roster_role_name(m.role), peer->conn->peer,
                 err_text());
        sched_waiting_reply_error(peer, err);
        return;
    }
    attach(node, peer);
    sched_waiting_push(s, node);
    sched_admission_go_on(s);
}

void sched_admission_fini(struct scheduler *s)
{
    while (s->roster->waiting_first) {
        struct sched_node *node = s->roster->waiting_first;
        sched_waiting_remove(node);
        sched_waiting_forget(node);
    }
    for (size_t i = 0; i < SLOTS; i++) {
        for (uint32_t rank = 0; s->roster->slots[i].node && rank < s->roster->slots[i].count; rank++)
            if (s->roster->slots[i].node[rank])
                sched_waiting_forget(s->roster->slots[i].node[rank]);
        free(s->roster->slots[i].node);
    }
    assert(!s->roster->incarnations.count);
    map_fini(&s->roster->incarnations);
}
