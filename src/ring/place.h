/*
 * Placement: which shard owns each partition, and the chain of its replicas. A pure function of the shards
 * (weight, process, failure domain) and of the placement before. Never knows views, nodes or tables.
 *
 * - Balance: each shard's share of ownership and of every level of the chains is within one partition of
 *   its due by weight. A domain holds a partition at most once; what it cannot hold falls to the others.
 * - Domains: owner and replicas of a partition are in distinct domains. With too few domains the last
 *   replicas are only in distinct processes; with too few processes they are missing. The result says how
 *   many.
 * - Little moves: ownership as little as the shares allow, copies at most 1.2 times that in all. More moves
 *   where a domain must hold nearly every partition, so that one changed chain forces others to change.
 * - Long runs: partitions of a shard, and of a pair of successors, come in long runs.
 *
 * Chains are nested: the first j replicas are a placement for j replicas, as good as one made for j. So
 * tables with different numbers of replicas share one ring. A dead or leaving shard has weight 0. Where
 * balance allows, the new owner of a dead shard's partition is a shard that holds a copy. Tests:
 * test/ring/test_ring.c, test_place.c.
 */
#ifndef RING_PLACE_H
#define RING_PLACE_H

#include <stdbool.h>

#include "ring/ring.h"

enum { RING_REPLICAS_MAX = 3, RING_LEVELS = 1 + RING_REPLICAS_MAX, RING_WEIGHT_MAX = 1000000 };

struct ring_shard {
    uint32_t weight;    /* to RING_WEIGHT_MAX; 0: holds nothing */
    uint32_t server;    /* shards of one process have one number */
    const char *domain; /* what fails together: its host, unless the user says otherwise */
};

struct ring_chains {
    struct ring level[RING_LEVELS]; /* 0: owners; j: the j-th replica, RING_NONE where there is none */
    unsigned replicas;              /* asked for */
    unsigned apart;                 /* the first so many replicas are in distinct domains ... */
    unsigned present;               /* ... and the first so many in distinct processes; others are missing */
};

/* Shard i is the same in shards, before and after; before may know fewer or more (more are gone), or be NULL:
 * the first placement, with owners in order of their numbers. Not in place: before != after. INVALID, MEMORY.
 */
MUST_USE paramo_err ring_place(const struct ring_shard *shards, size_t n, unsigned replicas,
                               const struct ring_chains *before, struct ring_chains *after);

/* Sets apart and present to what the chains are, whoever made them: partitions without an owner do not count.
 */
void ring_measure(const struct ring_shard *shards, struct ring_chains *chains);

/* What changes from one placement to the next, in partitions, and the least that the new shares allow. A copy
 * is a partition that a shard holds and did not hold before, as owner or replica: its rows must travel. */
struct ring_transfers {
    uint32_t owners, owners_least;
    uint32_t copies, copies_least;
};
MUST_USE paramo_err ring_compare(const struct ring_chains *before, const struct ring_chains *after,
                                 struct ring_transfers *transfers);
/* One line if replicas are missing or not in distinct domains; false: all is as asked for. */
bool ring_warning(const struct ring_chains *chains, char *text, size_t capacity);

#endif
