/*
 * What a new view changes in chains, in this order: the next members and the changes kept for each; ownership, with
 * records; changes that must be sent again; rows that leave the shard. It must never know why the view changed.
 * Tests: test/worker/test_succession.c, the simulator.
 */
#ifndef SERVER_REPLICATION_SUCCESSION_H
#define SERVER_REPLICATION_SUCCESSION_H

#include "server/replication/chain_impl.h"

/* The view has changed. */
void chain_succeed(struct chain *c);
/* This shard no longer owns or copies these partitions: removes their rows and records. */
void chain_drop(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);
/* Removes the rows of tables that a member at our level of these partitions does not have. */
void chain_shed(struct chain *c, const uint64_t partitions[CHAIN_WORDS]);

#endif
