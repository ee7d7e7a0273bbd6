/*
 * The timer by which a shard removes what no sender asks for again: slices that wait for a view, deferred requests, pages
 * of scans, connections of nodes that no view has had. shard.c says what is done when it fires. This module never knows
 * how one of these is removed. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_HOUSEKEEPING_H
#define SERVER_SHARD_HOUSEKEEPING_H

#include "server/shard/shard_impl.h"

/* Starts the timer if there is something to remove later. */
void shard_keep_house(struct shard *s);

#endif
