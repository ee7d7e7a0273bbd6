/*
 * What a new view changes in chains, in this order: next members, and what is kept for each; ownership, with
 * records; what must be sent again; rows that leave. It must never know why the view changed. Tests:
 * test/worker/test_succession.c, the simulator.
 */
#ifndef SERVER_REPLICATION_SUCCESSION_H
#define SERVER_REPLICATION_SUCCESSION_H

#include "server/replication/chain_impl.h"

/* The view has changed. */
void chain_succeed(struct chain *c);
/* These partitions are not ours, nor copied here, any more: their rows and records go. */
void chain_drop(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);
/* The rows of tables that our level of these partitions has not. */
void chain_shed(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);

#endif
