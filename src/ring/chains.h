/*
 * Changes of chains that need no plan: members that are gone; and whom a change concerns. Pure functions,
 * which never fail. Who is to hold what then is place.h's business. Tests: test/ring/test_chains.c.
 */
#ifndef RING_CHAINS_H
#define RING_CHAINS_H

#include "ring/partition_set.h"
#include "ring/place.h"

/* A member at a level has the rows of all tables with so many replicas or more. So it may come to a lower
 * level only if that holds nothing more. before[l]: how many of the numbers below l are some table's; levels
 * of one `before` hold the same. Zeroed: all hold all. */
struct ring_ends {
    uint8_t before[RING_LEVELS];
};

/* Some table has `replicas` of them; nothing if that is the most that there are, or more. */
void ring_ends_add(struct ring_ends *ends, unsigned replicas, unsigned most);

/* Adds partition 0 and each partition whose chain is not that of the partition before it: where runs of equal
 * chains begin. What depends on the chain alone is then found once for a run (partition_set_runs). */
void ring_begins(const struct ring_chains *chains, uint64_t begins[PARTITION_WORDS]);

struct ring_candidate {
    uint16_t shard;
    uint8_t level; /* it has what a member at this level has to have */
};
/* Puts up to RING_LEVELS members into a chain of `replicas` + 1 levels: the first is the owner, whatever it
 * lacks; the others come in their order, those who hold more first, as near to the owner as what they hold
 * allows: a level that nobody can fill stays empty (RING_NONE), who finds no place is left out. */
void ring_fill_chain(const struct ring_ends *ends, unsigned replicas, const struct ring_candidate *candidates,
                     unsigned n, uint16_t chain[RING_LEVELS]);

/* Drops the shards that are gone (n of them are looked up) from every chain; the first that is left is the
 * owner. A partition of which nobody is left stays with its owner, alone: it has what there was. So does one
 * of which nobody is left who has all tables of one replica or more. Returns how many such partitions there
 * are. lowest, RING_PARTITIONS or NULL: the level of the first that was left: what tables with fewer replicas
 * had is gone; RING_LEVELS: nobody was. lose: the first that is left is the owner in any case, whatever is
 * gone with those before. apart and present are measured by ring_measure, not here. */
uint32_t ring_promote(struct ring_chains *chains, const struct ring_ends *ends, const bool *gone, size_t n,
                      bool lose, uint8_t *lowest);

/* Before ring_promote. told: the chains of the last view that members may have heard of. Drops the shards
 * that are gone from it, and gives a partition of which nobody is left back to those whom `told` still has:
 * they have been dropped since, but nobody has told them. */
void ring_recall(struct ring_chains *chains, struct ring_chains *told, const bool *gone, size_t n);

/* Partitions whose owner is gone, alone, get owners among those who are not, by weight (by none if none of
 * these has any), in runs. owned: room for n. False: all are gone, and nothing has changed. */
MUST_USE bool ring_adopt(struct ring_chains *chains, const struct ring_shard *shards, const bool *gone,
                         size_t n, uint32_t *owned);

/* Bits by shard, n of them: what the change from before to after concerns. */
enum ring_touched {
    RING_TOUCHED_CHAIN = 1,     /* it is, or was, a member of a chain that is another now */
    RING_TOUCHED_PARTITIONS = 2 /* it owns, or owned, a partition that has another owner now */
};
void ring_touched(const struct ring_chains *before, const struct ring_chains *after, uint8_t *touched,
                  size_t n);

#endif
