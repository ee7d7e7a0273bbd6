/*
 * Routing: entries of streams that a view has ended go to the streams of the new next members, one by one. It must
 * never know when a turn is over: records.h does. Tests: test/worker/test_routing.c.
 */
#ifndef SERVER_REPLICATION_ROUTING_H
#define SERVER_REPLICATION_ROUTING_H

#include "server/replication/chain_impl.h"

/* Appends the first of the entries of ended streams to each stream that has some of its partitions. Without any it is
 * acknowledged, but not to a member before us where we have left the chain. Returns what it has cost (RECORDS_TURN). */
unsigned chain_route(struct chain *c);
/* Puts a message about partitions, which has no rows, after all such entries. */
MUST_USE paramo_err chain_route_behind(struct chain *c, const struct chain_message *m);

#endif
