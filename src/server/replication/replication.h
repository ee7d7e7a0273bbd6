/*
 * The life of a shard's part in chains (chain_impl.h). It must never know what the parts do. Tests:
 * test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_REPLICATION_H
#define SERVER_REPLICATION_REPLICATION_H

#include "server/replication/chain_impl.h"

MUST_USE paramo_err chain_create(struct shard *s, struct chain **chain);
/* NULL is allowed. */
void chain_destroy(struct chain *c);

#endif
