/*
 * Removes dead members from chains, which needs no plan, and finds the members that a change concerns. Pure
 * functions, which never fail. This module never decides which shard should hold which partition (ring/place.h does).
 * Tests: test/ring/test_chains.c.
 */
#ifndef RING_CHAINS_H
#define RING_CHAINS_H

#include "ring/partition_set.h"
#include "ring/place.h"

/* A member at level l has the rows of all tables with l replicas or more. So it may move to a lower level
 * only if that level holds no further tables. before[l]: how many different numbers of replicas below l
 * tables have. Levels with equal `before` hold the same tables. Zeroed: every level holds all tables. */
struct ring_ends {
    uint8_t before[RING_LEVELS];
};

/* Notes that some table has this number of replicas. No effect if that is the job's number (most) or more. */
void ring_ends_add(struct ring_ends *ends, unsigned replicas, unsigned most);

/* Adds the partitions where runs of equal chains begin: partition 0, and each whose chain differs from
 * that of the partition before. What depends on the chain alone is then computed once per run
 * (partition_set_runs). */
void ring_begins(const struct ring_chains *chains, uint64_t begins[PARTITION_WORDS]);

struct ring_candidate {
    uint16_t shard;
    uint8_t level; /* it has the tables of a member at this level */
};
/* Puts up to RING_LEVELS members into a chain of `replicas` + 1 levels. The first is the owner, even if it lacks
 * tables. The others follow, those with more tables first and otherwise in order, each as near to the owner as its
 * tables allow. A level that no member can fill stays empty (RING_NONE); a member without a place is left out. */
void ring_fill_chain(const struct ring_ends *ends, unsigned replicas, const struct ring_candidate *candidates,
                     unsigned n, uint16_t chain[RING_LEVELS]);

/* Drops the shards that are gone (gone has n flags) from every chain. The first member that is left becomes the
 * owner. A partition without a member left keeps its owner, alone, since only that shard had its rows. If the first
 * member left lacks some table with one replica or more, the partition keeps its dead owner as well, unless `lose` is
 * set: then that member becomes the owner. Returns the number of partitions that keep a dead owner. lowest
 * (RING_PARTITIONS, or NULL): the level of the first member left; the rows of tables with fewer replicas are lost.
 * RING_LEVELS: no member is left. This function does not set apart and present: ring_measure does. */
uint32_t ring_promote(struct ring_chains *chains, const struct ring_ends *ends, const bool *gone, size_t n,
                      bool lose, uint8_t *lowest);

/* Call it before ring_promote. told: the chains of the last view that members may know. Drops the shards
 * that are gone from `told`, and gives a partition without a member left back to the members in `told`: a
 * later plan dropped them, but they have not been told and still have the rows. */
void ring_recall(struct ring_chains *chains, struct ring_chains *told, const bool *gone, size_t n);

/* Gives partitions whose only member is gone to the shards that are left, by weight (equally if all
 * weights are 0), in runs. owned: room for n. False: all shards are gone, and nothing has changed. */
MUST_USE bool ring_adopt(struct ring_chains *chains, const struct ring_shard *shards, const bool *gone,
                         size_t n, uint32_t *owned);

/* For each of n shards, as bits: how the change from before to after concerns it. */
enum ring_touched {
    RING_TOUCHED_CHAIN = 1,     /* it is, or was, a member of a chain that changes */
    RING_TOUCHED_PARTITIONS = 2 /* it owns, or owned, a partition that changes its owner */
};
void ring_touched(const struct ring_chains *before, const struct ring_chains *after, uint8_t *touched,
                  size_t n);

#endif
