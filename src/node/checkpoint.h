/*
 * Checkpoints of a running job: the calls of an application (paramo_checkpoint_*), and the orders to a server to
 * save, drop and load. It never knows files or rows. Tests: test/node/test_checkpoint.c.
 */
#ifndef NODE_CHECKPOINT_H
#define NODE_CHECKPOINT_H

#include "node/node.h"

/* An order of the scheduler, of any kind (member_config.on_order). On the control lane. */
void member_slot_order(void *member_slot, uint64_t order, uint32_t what, struct reader *fields);

/* How long a server holds requests for a load that may take timeout_ms by the scheduler's clock. The hold must outlast
 * the load: a server whose hold has ended serves, and the load fails. */
uint32_t checkpoint_hold_ms(uint32_t timeout_ms);

#endif
