/*
 * Changes of chains that need no plan: members that are gone; and whom a change concerns. Pure functions,
 * which never fail. Who is to hold what then is place.h's business. Tests: test/ring/test_chains.c.
 */
#ifndef RING_CHAINS_H
#define RING_CHAINS_H

#include "ring/place.h"

/* Drops the shards that are gone (n of them are looked up) from every chain; the first that is left is the
 * owner. An arc of which nobody is left stays with its owner, alone: it has what there was. Returns how many
 * such arcs there are. apart and present are measured by ring_measure, not here. */
uint32_t ring_promote(struct ring_chains *chains, const bool *gone, size_t n);

/* Bits by shard, n of them: what the change from before to after concerns. */
enum ring_touched {
    RING_TOUCHED_CHAIN = 1, /* it is, or was, a member of a chain that is another now */
    RING_TOUCHED_ARCS = 2   /* it owns, or owned, an arc that has another owner now */
};
void ring_touched(const struct ring_chains *before, const struct ring_chains *after, uint8_t *touched,
                  size_t n);

#endif
