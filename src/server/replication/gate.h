/*
 * The gate: may this shard serve? It may while each next member has answered a beat in time, has room, and has what a
 * promotion had to send again. It must never know what an entry is. Tests: test/worker/test_chain_sim.c,
 * test/worker/test_succession.c.
 */
#ifndef SERVER_REPLICATION_GATE_H
#define SERVER_REPLICATION_GATE_H

#include "server/replication/chain_impl.h"

/* The chain cannot continue (no memory, or FULL: too many records differ); err and this thread's message say
 * why. This shard stops serving, and config.failed is called once. */
void chain_fail(struct chain *c, paramo_err err);
/* True: the shard may serve. False: slice_resume_all runs when it may again. */
bool chain_open(struct shard *s);
/* Handles what waited, if the shard may serve again. */
void chain_reopen(struct shard *s);
/* Has the other end answered a CHAIN_BEAT that was sent less than CHAIN_LEASE_MS ago? */
bool chain_leased(const struct chain_stream *st);
/* False: the chain never stops the shard from serving. */
static inline bool chain_guarded(const struct chain *c)
{
    return c && (c->streams || c->wait_until || c->failed || records_pending(c));
}

#endif
