/*
 * The turns of deferred requests (deferred.h): one step of the first one, which is handled again when its result is
 * there. This module never knows how a page is found: scanning.h does that. Tests: test/server/test_shard.c.
 */
#ifndef SERVER_SHARD_DEFERRED_TURN_H
#define SERVER_SHARD_DEFERRED_TURN_H

#include "server/shard/shard_impl.h"

/* The function of the timer s->deferred->timer. */
void deferred_turn(struct lane_timer *timer);

#endif
