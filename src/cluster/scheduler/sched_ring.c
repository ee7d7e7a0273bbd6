/* Which shard holds which partition: the first placement, and the chains that are left when servers are gone.
 */
#include "cluster/scheduler/sched_ring.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/assert_slow.h"
#include "base/log.h"
#include "cluster/scheduler/sched.h"
#include "cluster/scheduler/sched_roster.h"
#include "cluster/scheduler/sched_view.h"
#include "ring/chains.h"

/* ---- the first placement ------------------------------------------------------------------------------- */

/* What lies beside the shards is as long, and was made with them. */
static void ring_check(const struct sched_ring *ring)
{
    assert(ring->shards_count <= VIEW_SHARDS_MAX && ring->chains.replicas < RING_LEVELS);
    assert(!ring->shards == !ring->gone && !ring->shards == !ring->touched);
    assert(!ring->shards == !ring->owned && !ring->shards == !ring->wanted);
    assert(ring->shards || !ring->shards_count);
}

static paramo_err shards_allocate(struct scheduler *s, uint32_t count)
{
    assert(!s->ring->shards && !s->ring->shards_count);
    assert(count <= VIEW_SHARDS_MAX);
    s->ring->shards = calloc(count + 1, sizeof *s->ring->shards);
    s->ring->gone = calloc(count + 1, sizeof *s->ring->gone);
    s->ring->touched = calloc(count + 1, sizeof *s->ring->touched);
    s->ring->owned = calloc(count + 1, sizeof *s->ring->owned);
    s->ring->wanted = calloc(count + 1, sizeof *s->ring->wanted);
    return s->ring->shards && s->ring->gone && s->ring->touched && s->ring->owned && s->ring->wanted
               ? PARAMO_OK
               : err_memory(count * sizeof *s->ring->shards);
}

/* The shards by server rank and index, as the ring numbers them. */
static paramo_err shards_list(struct scheduler *s)
{
    const struct slot_list *servers = sched_roster_slots(s, SLOTS_SERVERS);
    uint32_t count = 0;
    sched_ring_fini(s); /* of an attempt that had no memory */
    assert(s->state == SCHED_GATHERING);
    for (uint32_t rank = 0; rank < servers->count; rank++)
        count += servers->node[rank]->info.shards;
    paramo_err err = shards_allocate(s, count);
    if (err)
        return err;
    for (uint32_t rank = 0; rank < servers->count; rank++) {
        const struct view_node *node = &servers->node[rank]->info;
        for (uint16_t i = 0; i < node->shards; i++) {
            assert(s->ring->shards_count < count);
            s->ring->wanted[s->ring->shards_count] =
                (struct ring_shard){.weight = node->weight, .server = rank, .domain = node->domain};
            s->ring->shards[s->ring->shards_count++] =
                (struct view_shard){.node = PARAMO_ID_SERVER(rank),
                                    .index = i,
                                    .partitions_changed = sched_view_number(s) + 1,
                                    .chain_changed = sched_view_number(s) + 1};
        }
    }
    return PARAMO_OK;
}

void sched_ring_warn(struct scheduler *s, const struct ring_chains *chains)
{
    char text[sizeof s->ring->warned] = "";
    if (ring_warning(chains, text, sizeof text) && strcmp(text, s->ring->warned) != 0)
        log_warn("scheduler: %s", text);
    memcpy(s->ring->warned, text, sizeof text);
}

paramo_err sched_ring_build(struct scheduler *s)
{
    paramo_err err = shards_list(s);
    if (err)
        return err;
    ring_check(s->ring);
    if (s->ring->shards_count)
        err = ring_place(s->ring->wanted, s->ring->shards_count, s->config.replicas, NULL, &s->ring->chains);
    else
        memset(s->ring->chains.level, 0xff, sizeof s->ring->chains.level); /* RING_NONE */
    if (!err)
        sched_ring_warn(s, &s->ring->chains);
    s->ring->chains_before = s->ring->chains_told = s->ring->chains;
    ring_check(s->ring);
    return err;
}

paramo_err sched_ring_restore(struct scheduler *s, const struct view *view)
{
    assert(!s->ring->shards && !s->ring->shards_count);
    if (view->chains.replicas != s->config.replicas)
        return err_set(PARAMO_E_INVALID,
                       "the stored state is of a job with %u replicas, not %" PRIu32
                       "; give that number, or an empty store",
                       view->chains.replicas, s->config.replicas);
    paramo_err err = shards_allocate(s, view->shards_count);
    if (err)
        return err;
    s->ring->shards_count = view->shards_count;
    ring_check(s->ring);
    memcpy(s->ring->shards, view->shards, view->shards_count * sizeof *s->ring->shards);
    s->ring->chains = s->ring->chains_before = s->ring->chains_told = view->chains;
    memcpy(s->ring->owner_gone, view->owner_gone, sizeof s->ring->owner_gone);
    return PARAMO_OK;
}

static paramo_err more(void *array, size_t count, size_t bytes)
{
    void **at = array;
    void *longer = realloc(*at, count * bytes);
    if (!longer)
        return err_memory(count * bytes);
    *at = longer;
    return PARAMO_OK;
}

paramo_err sched_ring_reserve(struct scheduler *s, uint16_t shards)
{
    ring_check(s->ring);
    size_t count = (size_t)s->ring->shards_count + shards + 1;
    if (count > VIEW_SHARDS_MAX)
        return err_set(PARAMO_E_FULL, "the servers have %" PRIu32 " shards; no more than %d are possible",
                       s->ring->shards_count, VIEW_SHARDS_MAX);
    paramo_err err = more(&s->ring->shards, count, sizeof *s->ring->shards);
    if (!err)
        err = more(&s->ring->gone, count, sizeof *s->ring->gone);
    if (!err)
        err = more(&s->ring->touched, count, sizeof *s->ring->touched);
    if (!err)
        err = more(&s->ring->owned, count, sizeof *s->ring->owned);
    if (!err)
        err = more(&s->ring->wanted, count, sizeof *s->ring->wanted);
    return err;
}

void sched_ring_grow(struct scheduler *s, const struct view_node *server)
{
    ring_check(s->ring);
    uint64_t number = sched_view_next(s);
    for (uint16_t i = 0; i < server->shards; i++) {
        assert(s->ring->shards_count < VIEW_SHARDS_MAX);
        s->ring->gone[s->ring->shards_count] = false;
        s->ring->shards[s->ring->shards_count++] = (struct view_shard){
            .node = server->id, .index = i, .partitions_changed = number, .chain_changed = number};
    }
}

void sched_ring_fini(struct scheduler *s)
{
    free(s->ring->shards);
    free(s->ring->gone);
    free(s->ring->touched);
    free(s->ring->owned);
    free(s->ring->wanted);
    s->ring->shards = NULL;
    s->ring->gone = NULL;
    s->ring->touched = NULL;
    s->ring->owned = NULL;
    s->ring->wanted = NULL;
    s->ring->shards_count = 0;
}

/* ---- changes ------------------------------------------------------------------------------------------- */

void sched_ring_changed(struct scheduler *s)
{
    uint64_t number = sched_view_next(s);
    ring_check(s->ring);
    assert(number > sched_view_announced(s)); /* members see the change with its number */
    ring_touched(&s->ring->chains_before, &s->ring->chains, s->ring->touched, s->ring->shards_count);
    for (uint32_t i = 0; i < s->ring->shards_count; i++) {
        if (s->ring->touched[i] & RING_TOUCHED_CHAIN)
            s->ring->shards[i].chain_changed = number;
        if (s->ring->touched[i] & RING_TOUCHED_PARTITIONS)
            s->ring->shards[i].partitions_changed = number;
    }
    s->ring->chains_before = s->ring->chains;
}

void sched_ring_told(struct scheduler *s, size_t first, size_t partitions)
{
    ring_check(s->ring);
    assert(first + partitions <= RING_PARTITIONS);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        memcpy(s->ring->chains_told.level[l].owner + first, s->ring->chains.level[l].owner + first,
               partitions * sizeof *s->ring->chains.level[l].owner);
}

void sched_ring_untold(struct scheduler *s, uint16_t shard, size_t first, size_t partitions)
{
    ring_check(s->ring);
    assert(shard < s->ring->shards_count && first + partitions <= RING_PARTITIONS);
    for (unsigned l = 0; l < RING_LEVELS; l++)
        for (size_t a = first; a < first + partitions; a++)
            if (s->ring->chains_told.level[l].owner[a] == shard)
                s->ring->chains_told.level[l].owner[a] = RING_NONE;
}

struct sched_node *sched_ring_server(const struct scheduler *s, uint32_t shard)
{
    assert(shard < s->ring->shards_count);
    return sched_roster_find(s, s->ring->shards[shard].node);
}

static bool shard_gone(const struct scheduler *s, uint32_t shard)
{
    const struct sched_node *node = sched_ring_server(s, shard);
    return node->state == SNODE_DEAD || node->state == SNODE_LEFT;
}

void sched_ring_check_gone(struct scheduler *s)
{
    ring_check(s->ring);
    for (uint32_t i = 0; i < s->ring->shards_count; i++)
        s->ring->gone[i] = shard_gone(s, i);
}

/* Partitions whose owner was gone since `before` and that got another one, by what servers have died. The new
 * owner may be one that no view has dropped yet (ring_recall): it has all rows, and nothing is lost. */
static void owners_changed(struct scheduler *s, const struct ring *before)
{
    const struct ring *now = &s->ring->chains.level[0];
    ring_check(s->ring);
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (now->owner[a] != before->owner[a] && s->ring->lowest[a])
            s->ring->owner_gone[a] = sched_view_next(s);
}

/* Partitions that stay with this server, which is gone. */
static void owner_stays(const struct sched_node *server)
{
    struct scheduler *s = server->sched;
    assert(!server->info.alive && server->info.role == PARAMO_ROLE_SERVER);
    ring_check(s->ring);
    for (size_t a = 0; a < RING_PARTITIONS; a++) {
        uint16_t owner = s->ring->chains.level[0].owner[a];
        if (owner < s->ring->shards_count && s->ring->shards[owner].node == server->info.id)
            s->ring->owner_gone[a] = sched_view_next(s);
    }
}

bool sched_ring_gone(const struct sched_node *server, const struct ring_ends *ends)
{
    struct scheduler *s = server->sched;
    ring_check(s->ring);
    assert(server->state == SNODE_DEAD || server->state == SNODE_LEFT);
    for (uint32_t i = 0; i < s->ring->shards_count; i++)
        if (s->ring->shards[i].node == server->info.id)
            s->ring->shards[i].chain_changed = sched_view_next(s);
    bool others = s->state != SCHED_GATHERING && (s->ring->chains.replicas || sched_restores_lost(s));
    if (others) {
        struct ring before = s->ring->chains.level[0];
        sched_ring_check_gone(s);
        /* Several servers may die at the same time. The plan after the first death is in no view yet, and a
         * copy that was superfluous then may be the last one now. */
        ring_recall(&s->ring->chains, &s->ring->chains_told, s->ring->gone, s->ring->shards_count);
        (void)ring_promote(&s->ring->chains, ends, s->ring->gone, s->ring->shards_count,
                           sched_restores_lost(s), s->ring->lowest);
        owners_changed(s, &before);
    }
    owner_stays(server); /* without copies until another takes its place */
    return others;
}

uint8_t *sched_ring_lowest(const struct scheduler *s)
{
    return s->ring->lowest;
}

void sched_ring_migrated(struct scheduler *s, uint16_t shard, uint64_t migration)
{
    ring_check(s->ring);
    assert(shard < s->ring->shards_count && migration > s->ring->shards[shard].last_migration);
    s->ring->shards[shard].last_migration = migration;
}

/* ---- for other parts ----------------------------------------------------------------------------------- */

bool sched_ring_has_orphans(const struct scheduler *s)
{
    for (size_t a = 0; a < RING_PARTITIONS; a++)
        if (sched_ring_is_orphan(s, a))
            return true;
    return false;
}

bool sched_ring_adopt(struct scheduler *s)
{
    ring_check(s->ring);
    struct ring before = s->ring->chains.level[0];
    bool any =
        ring_adopt(&s->ring->chains, s->ring->wanted, s->ring->gone, s->ring->shards_count, s->ring->owned);
    owners_changed(s, &before);
    assert_slow(!any || !sched_ring_has_orphans(s));
    return any;
}

bool sched_ring_is_orphan(const struct scheduler *s, size_t partition)
{
    uint16_t owner = s->ring->chains.level[0].owner[partition];
    assert(partition < RING_PARTITIONS && (owner == RING_NONE || owner < s->ring->shards_count));
    return owner != RING_NONE && s->ring->gone[owner];
}

uint64_t sched_ring_weigh(struct scheduler *s)
{
    uint64_t weight = 0;
    ring_check(s->ring);
    for (uint32_t i = 0; i < s->ring->shards_count; i++) {
        const struct sched_node *node = sched_ring_server(s, i);
        /* Without copies a dead server's partitions wait for the one that takes its place. */
        bool counts = sched_roster_is_here(node) ||
                      (!s->ring->chains.replicas && !sched_restores_lost(s) && node->state == SNODE_DEAD);
        s->ring->wanted[i] = (struct ring_shard){
            .weight = counts ? node->info.weight : 0, .server = node->rank, .domain = node->info.domain};
        weight += s->ring->wanted[i].weight;
    }
    return weight;
}

paramo_err sched_ring_plan(const struct scheduler *s, struct ring_chains *target)
{
    ring_check(s->ring);
    return ring_place(s->ring->wanted, s->ring->shards_count, s->config.replicas, &s->ring->chains, target);
}

const struct ring_chains *sched_ring_chains(const struct scheduler *s)
{
    return &s->ring->chains;
}

struct ring_chains *sched_ring_chains_mutable(struct scheduler *s)
{
    return &s->ring->chains;
}

const struct view_shard *sched_ring_shard(const struct scheduler *s, uint32_t index)
{
    assert(!index || index < s->ring->shards_count);
    return &s->ring->shards[index];
}

uint32_t sched_ring_shards_count(const struct scheduler *s)
{
    return s->ring->shards_count;
}

const uint64_t *sched_ring_owner_gone(const struct scheduler *s)
{
    return s->ring->owner_gone;
}
