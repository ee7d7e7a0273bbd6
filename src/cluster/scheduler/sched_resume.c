#include "cluster/scheduler/sched_resume.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_departure.h"
#include "cluster/scheduler/sched_lost.h"
#include "cluster/scheduler/sched_migrations.h"
#include "cluster/scheduler/sched_ring.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"

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
                                .heard_at = lane_now(s->config.lane),
                                .former = info->role == PARAMO_ROLE_SCHEDULER};
    paramo_err err = map_put(&s->roster->incarnations, info->incarnation, node);
    if (err) {
        free(node);
        return err;
    }
    slots->node[rank] = node;
    slots->gone += !info->alive;
    slots->founders_gone += !info->alive && rank < slots->founders;
    slots_check(slots);
    return info->alive && !node->former ? sched_departure_await(node) : PARAMO_OK;
}

/* Makes room for workers that joined during the job. */
static paramo_err slots_restore(struct slot_list *slots, uint32_t count)
{
    slots_check(slots);
    assert(!slots->gone);
    if (count <= slots->count)
        return PARAMO_OK;
    struct sched_node **places = calloc(count, sizeof(struct sched_node *));
    if (!places)
        return err_memory(count * sizeof(struct sched_node *));
    free(slots->node);
    slots->node = places;
    slots->count = count;
    slots_check(slots);
    return PARAMO_OK;
}

paramo_err sched_resume_nodes(struct scheduler *s, const struct view *view)
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

static paramo_err view_adopt(struct scheduler *s, const struct view *view, uint32_t servers_before,
                             uint32_t founders)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS),
                           *workers = sched_roster_slots(s, SLOTS_WORKERS);
    if (servers_before != servers->founders || founders != workers->founders || view->num_workers < founders)
        return err_set(PARAMO_E_INVALID,
                       "the stored state is of a job with %" PRIu32 " servers and %" PRIu32
                       " workers, not %" PRIu32 " and %" PRIu32 "; give those numbers, or an empty store",
                       servers_before, founders, servers->founders, workers->founders);
    if (view->number >> 32 > (uint64_t)s->term + SCHED_TERMS_AHEAD)
        return err_set(PARAMO_E_CORRUPT, "its view %" PRIx64 " does not fit its term %" PRIu32, view->number,
                       s->term);
    assert(s->state == SCHED_GATHERING && !sched_view_body(s));
    s->job = view->job;
    paramo_err err = sched_view_take(s, view);
    if (!err)
        err = sched_ring_restore(s, view);
    if (!err) {
        sched_lost_restore(s, view);
        err = sched_migrations_init(s);
    }
    for (uint32_t i = 0; i < sched_view_tables_count(s) && !err; i++)
        sched_migrations_table(s, sched_view_table(s, i)->options.replicas);
    return err ? err : sched_resume_nodes(s, view);
}

paramo_err sched_resume_view(struct scheduler *s, struct reader *record)
{
    struct view *view;
    uint32_t servers = read_u32(record), founders = read_u32(record);
    paramo_err err = view_decode(record, &view);
    if (err)
        return err;
    err = view_adopt(s, view, servers, founders);
    view_unref(view);
    return err;
}
