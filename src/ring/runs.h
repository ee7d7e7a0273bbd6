/*
 * Finds the runs of partitions that have the same shards. A result that depends on the shards only is then computed
 * once for each run (partition_set_runs). Pure functions. This module never knows chains or what the shards are for.
 * Tests: test/ring/test_chains.c (ring_begins), test_place.c.
 */
#ifndef RING_RUNS_H
#define RING_RUNS_H

#include "ring/partition_set.h"

/* Adds partition 0, and each partition at which one of these `count` arrays changes its shard. */
void ring_runs_add(const uint16_t *const owners[], unsigned count, uint64_t begins[PARTITION_WORDS]);

#endif
