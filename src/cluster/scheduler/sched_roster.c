#include "cluster/scheduler/sched_roster.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sm.h"
#include "cluster/scheduler/sched.h"
#include "cluster/session/address.h"

const char *sched_roster_role_name(uint32_t role)
{
    return role == PARAMO_ROLE_SERVER ? "server" : role == PARAMO_ROLE_WORKER ? "worker" : "scheduler";
}

struct slot_list *sched_roster_slots_of(struct scheduler *s, uint32_t role)
{
    return &s->roster->slots[role == PARAMO_ROLE_SERVER   ? SLOTS_SERVERS
                             : role == PARAMO_ROLE_WORKER ? SLOTS_WORKERS
                                                          : SLOTS_SCHEDULER];
}

const char *sched_roster_label(const struct sched_node *node, char label[SCHED_LABEL])
{
    if (node->info.id)
        return view_node_label(&node->info, label);
    snprintf(label, SCHED_LABEL, "a %s (%s)", sched_roster_role_name(node->info.role),
             node->info.name[0] ? node->info.name : node->info.host);
    return label;
}

struct sched_node *sched_roster_next(const struct scheduler *s, size_t *cursor)
{
    size_t at = *cursor;
    for (size_t i = 0; i < SLOTS; at -= s->roster->slots[i++].count)
        if (at < s->roster->slots[i].count) {
            ++*cursor;
            return s->roster->slots[i].node[at]; /* NULL while gathering: no node has its place yet */
        }
    return NULL;
}

struct sched_node *sched_roster_find(const struct scheduler *s, uint32_t id)
{
    const struct slot_list *slots = id < PARAMO_ID_SERVER(0) ? &s->roster->slots[SLOTS_SCHEDULER]
                                    : id % 2                 ? &s->roster->slots[SLOTS_WORKERS]
                                                             : &s->roster->slots[SLOTS_SERVERS];
    uint32_t rank = id < PARAMO_ID_SERVER(0) ? 0 : (id - PARAMO_ID_SERVER(0)) / 2;
    struct sched_node *node = rank < slots->count ? slots->node[rank] : NULL;
    assert(!node || !node->info.id || id < PARAMO_ID_SERVER(0) || node->info.id == id);
    return node;
}

bool sched_roster_founder(const struct sched_node *node)
{
    assert(node->info.id); /* without a place it has no rank */
    const struct slot_list *slots = sched_roster_slots_of(node->sched, node->info.role);
    assert(node->rank < slots->count);
    return node->rank < slots->founders;
}

size_t sched_roster_gone(const struct scheduler *s, uint32_t group, bool left, char *text, size_t capacity)
{
    assert(capacity > 0);
    size_t count = 0, len = 0, cursor = 0;
    char label[SCHED_LABEL];
    text[0] = '\0';
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));) {
        if (!(node->info.role & group) || (node->state != SNODE_DEAD && !(left && node->state == SNODE_LEFT)))
            continue;
        count++;
        const char *how = node->state == SNODE_DEAD ? "died" : "left";
        int wrote = snprintf(text + len, capacity - len, "%s%s %s", len ? ", " : "",
                             sched_roster_label(node, label), how);
        if (wrote > 0 && (size_t)wrote < capacity - len)
            len += (size_t)wrote;
        else
            text[len] = '\0';
    }
    assert(len < capacity);
    return count;
}

static const struct sm machine = {
    "node",
    {[SNODE_WAITING] = {"waiting", SM_TO(SNODE_JOINED)},
     [SNODE_JOINED] = {"joined", SM_TO(SNODE_ABSENT) | SM_TO(SNODE_DEAD) | SM_TO(SNODE_LEFT)},
     [SNODE_ABSENT] = {"absent", SM_TO(SNODE_JOINED) | SM_TO(SNODE_DEAD) | SM_TO(SNODE_LEFT)},
     [SNODE_DEAD] = {"dead", 0},
     [SNODE_LEFT] = {"left", 0}}};

void sched_roster_move(struct sched_node *node, enum sched_node_state to)
{
    sm_check(&machine, node->state, to);
    assert(map_get(&node->sched->roster->incarnations, node->info.incarnation) == node);
    assert(to != SNODE_ABSENT || !node->peer); /* its connection is lost */
    node->state = to;
}

void sched_roster_forgive(struct scheduler *s, uint64_t grace)
{
    size_t cursor = 0;
    for (struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        node->heard_at += grace;
    for (struct sched_node *node = s->roster->waiting_first; node; node = node->next) {
        node->heard_at += grace;
        node->arrived_at += grace; /* the news of the death that gives it a place may wait in a socket, too */
    }
}

paramo_err sched_roster_init(struct scheduler *s)
{
    assert(!s->roster->waiting_first && !s->roster->incarnations.count);
    assert(s->state == SCHED_GATHERING);
    const struct scheduler_config *c = &s->config;
    s->roster->slots[SLOTS_SCHEDULER] =
        (struct slot_list){.role = PARAMO_ROLE_SCHEDULER, .count = c->own_member ? 1 : 0};
    s->roster->slots[SLOTS_SERVERS] = (struct slot_list){.role = PARAMO_ROLE_SERVER, .count = c->num_servers};
    s->roster->slots[SLOTS_WORKERS] = (struct slot_list){.role = PARAMO_ROLE_WORKER, .count = c->num_workers};
    if (c->num_servers >= VIEW_NODES_MAX || c->num_workers >= VIEW_NODES_MAX - c->num_servers)
        return err_set(PARAMO_E_TOO_LARGE, "a cluster has at most %d nodes", VIEW_NODES_MAX);
    for (size_t i = 0; i < SLOTS; i++) {
        s->roster->slots[i].founders = s->roster->slots[i].count;
        s->roster->slots[i].node = calloc(s->roster->slots[i].count + 1, sizeof(struct sched_node *));
        if (!s->roster->slots[i].node)
            return err_memory(s->roster->slots[i].count * sizeof(struct sched_node *));
    }
    return PARAMO_OK;
}

bool sched_roster_any_left(const struct scheduler *s)
{
    size_t cursor = 0;
    for (const struct sched_node *node; (node = sched_roster_next(s, &cursor));)
        if (node->info.role != PARAMO_ROLE_SCHEDULER && sched_roster_is_here(node))
            return true;
    return false;
}

void sched_roster_set_self(struct scheduler *s, const char *address)
{
    assert(s->incarnation);
    assert(!s->roster->self.incarnation && s->job);
    struct view_node *self = &s->roster->self;
    *self = (struct view_node){.id = PARAMO_ID_SCHEDULER,
                               .role = PARAMO_ROLE_SCHEDULER,
                               .incarnation = s->incarnation,
                               .alive = true};
    if (address_split(address, self->host, sizeof self->host, &self->port))
        self->host[0] = '\0'; /* a van without ports has no address that a view needs */
}

const struct view_node *sched_roster_scheduler(const struct scheduler *s)
{
    const struct slot_list *slots = &s->roster->slots[SLOTS_SCHEDULER];
    return slots->count ? &slots->node[0]->info : &s->roster->self;
}

const struct slot_list *sched_roster_slots(const struct scheduler *s, size_t role)
{
    return &s->roster->slots[role];
}

struct sched_node *sched_roster_find_incarnation(const struct scheduler *s, uint64_t incarnation)
{
    return map_get(&s->roster->incarnations, incarnation);
}

bool sched_roster_is_here(const struct sched_node *node)
{
    return node->state == SNODE_JOINED || node->state == SNODE_ABSENT;
}
