/*
 * The ring: which shard holds which partition, and what remains of the chains when servers are gone.
 * Must never know: how partitions migrate (sched_migrations.h), or what happens to lost rows (sched_lost.h).
 * Tests: test/cluster/test_scheduler.c, test_sched_migrations.c, test_sched_lost.c; test/ring/ for the
 * placement.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_RING_H
#define CLUSTER_SCHEDULER_SCHED_RING_H

#include "base/err.h"
#include "cluster/view/view.h"
#include "ring/chains.h"

struct ring_shard;
struct scheduler;
struct sched_node;

struct sched_ring {
    struct view_shard *shards;
    uint32_t shards_count;
    struct ring_chains chains;
    struct ring_chains chains_before; /* when shards' numbers were last raised */
    struct ring_chains chains_told;   /* of the last view that was built, without shards gone since */
    uint8_t lowest[RING_PARTITIONS];  /* of the last death, as ring_promote has it, until it is reported */
    struct ring_shard *wanted;        /* as ring_place takes them */
    uint64_t owner_gone[RING_PARTITIONS]; /* as in struct view */
    char warned[160];                     /* the last warning about the placement: once is enough */
    /* By shard, allocated ahead, so that a death needs no memory. */
    bool *gone;
    uint8_t *touched; /* enum ring_touched */
    uint32_t *owned;
};

MUST_USE paramo_err sched_ring_build(struct scheduler *s);
/* Warns, once, where the placement is not as asked for. */
void sched_ring_warn(struct scheduler *s, const struct ring_chains *chains);
/* Makes room for more shards; sched_ring_grow then adds them as the last ones. */
MUST_USE paramo_err sched_ring_reserve(struct scheduler *s, uint16_t shards);
void sched_ring_grow(struct scheduler *s, const struct view_node *server);
/* Takes shards and chains from a saved view. */
MUST_USE paramo_err sched_ring_restore(struct scheduler *s, const struct view *view);
/* A server has died or left: shards with copies take over, in the next view. What only it had on its partitions
 * is lost (owner_gone in struct view, sched_ring_lowest). ends: of the tables that there are. True: chains may
 * have changed (sched_ring_changed). */
bool sched_ring_gone(const struct sched_node *server, const struct ring_ends *ends);
/* By partition: the first level that has a member since the last deaths; 0: the owner lives. */
uint8_t *sched_ring_lowest(const struct scheduler *s);
/* Notes which shards are gone, for the three below. */
void sched_ring_check_gone(struct scheduler *s);
/* Gives partitions without a member new owners; false: no server is left. */
bool sched_ring_adopt(struct scheduler *s);
/* Is the owner of this partition gone? */
bool sched_ring_is_orphan(const struct scheduler *s, size_t partition);
/* Is the owner of any partition gone? */
bool sched_ring_has_orphans(const struct scheduler *s);
/* The chains differ from chains_before: these shards must have the next view before they continue. */
void sched_ring_changed(struct scheduler *s);
/* Members may be told the present chains of these partitions. */
void sched_ring_told(struct scheduler *s, size_t first, size_t partitions);
/* An order tells this shard that it has none of these partitions. */
void sched_ring_untold(struct scheduler *s, uint16_t shard, size_t first, size_t partitions);
/* The server of a shard. */
struct sched_node *sched_ring_server(const struct scheduler *s, uint32_t shard);
/* The shard got partitions by this migration. */
void sched_ring_migrated(struct scheduler *s, uint16_t shard, uint64_t migration);
/* Weighs the shards by the servers that are there; returns the sum. sched_ring_plan then places by it. */
uint64_t sched_ring_weigh(struct scheduler *s);
MUST_USE paramo_err sched_ring_plan(const struct scheduler *s, struct ring_chains *target);
const struct ring_chains *sched_ring_chains(const struct scheduler *s);
/* Like sched_ring_chains(), for commits of migrations, which change the chains. */
struct ring_chains *sched_ring_chains_mutable(struct scheduler *s);
/* The shard of this index. All shards lie in one array. */
const struct view_shard *sched_ring_shard(const struct scheduler *s, uint32_t index);
uint32_t sched_ring_shards_count(const struct scheduler *s);
/* By partition, as in struct view. */
const uint64_t *sched_ring_owner_gone(const struct scheduler *s);
void sched_ring_fini(struct scheduler *s);

#endif
