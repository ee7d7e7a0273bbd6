/*
 * Placement: which shard owns each partition, and the chain of its replicas. A pure function of the shards
 * (weight, process, failure domain) and of the placement before. This module never knows views, nodes or
 * tables.
 *
 * - Balance: each shard's share of ownership and of every level of the chains is within one partition of
 *   its due share by weight. A domain holds a partition at most once; the others take what it cannot hold.
 * - Domains: owner and replicas of a partition are in distinct domains. With too few domains the last
 *   replicas are only in distinct processes; with too few processes they are missing. The result says how
 *   many.
 * - Few moves: ownership moves as little as the shares allow, and copies at most 1.2 times that in all. More
 *   moves where a domain must hold nearly every partition, since one changed chain then changes others.
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
    uint32_t weight;    /* at most RING_WEIGHT_MAX; 0: holds nothing */
    uint32_t server;    /* the shards of one process have the same number */
    const char *domain; /* shards of one domain fail together: its host by default */
};

struct ring_chains {
    struct ring level[RING_LEVELS]; /* 0: owners; j: the j-th replica, RING_NONE where there is none */
    unsigned replicas;              /* as requested */
    unsigned apart;                 /* number of replicas, from the first on, in distinct domains ... */
    unsigned present;               /* ... and in distinct processes; the others are missing */
};

/* Shard i is the same shard in shards, before and after. before may have fewer shards, or more (those are
 * gone). before NULL: the first placement, with owners in the order of their numbers. before and after
 * must differ. INVALID, MEMORY. */
MUST_USE paramo_err ring_place(const struct ring_shard *shards, size_t n, unsigned replicas,
                               const struct ring_chains *before, struct ring_chains *after);

/* Sets apart and present from the chains. Partitions without an owner do not count. */
void ring_measure(const struct ring_shard *shards, struct ring_chains *chains);

/* What changes from one placement to the next, in partitions, and the least that the new shares allow. A copy
 * is a partition that a shard holds as owner or replica and did not hold before: its rows must be sent. */
struct ring_transfers {
    uint32_t owners, owners_least;
    uint32_t copies, copies_least;
};
MUST_USE paramo_err ring_compare(const struct ring_chains *before, const struct ring_chains *after,
                                 struct ring_transfers *transfers);
/* A warning of one line if replicas are missing, or not in distinct domains. False: neither is so. */
bool ring_warning(const struct ring_chains *chains, char *text, size_t capacity);

#endif
