/*
 * The scheduler's orders to migrate partitions: each goes to its shard's lane, and the answer comes back. It
 * never knows the protocol of a migration. Tests: test/worker/test_migration_sim.c, test/e2e/.
 */
#ifndef NODE_MIGRATE_H
#define NODE_MIGRATE_H

#include "node/node.h"

/* On the control lane. */
void member_slot_migration_order(struct member_slot *member_slot, uint64_t order, uint32_t what,
                                 struct reader *fields);

#endif
