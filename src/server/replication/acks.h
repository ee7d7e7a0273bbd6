/*
 * Acknowledgements to the chain's previous members: which of their changes this shard and all members after it have.
 * It must never know what a change is, or how it is forwarded (forward.h). Tests: test/worker/test_chain_sim.c.
 */
#ifndef SERVER_REPLICATION_ACKS_H
#define SERVER_REPLICATION_ACKS_H

#include "server/replication/chain_impl.h"

void acks_send(struct chain_source *source);
/* Acknowledges at the end of this round of the lane. */
void acks_soon(struct chain_source *source);
/* A change may have all its acknowledgements: acknowledges the first ones that have, soon. */
void acks_advance(struct chain_source *source);

#endif
