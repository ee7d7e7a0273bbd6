/*
 * The chain's tick: each CHAIN_TICK_MS streams send beats, connect, and send again, while the chain may stop the
 * shard from serving. It must never know what a stream sends. Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_CHAIN_TICK_H
#define SERVER_REPLICATION_CHAIN_TICK_H

#include "server/replication/chain_impl.h"

void chain_tick_init(struct chain *c);
/* Ticks now, and then each CHAIN_TICK_MS, unless it ticks already or nothing needs it. */
void chain_tick_start(struct chain *c);
/* The shard closes: ends the tick and all streams, without answers. */
void chain_streams_close(struct chain *c);

#endif
