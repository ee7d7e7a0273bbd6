/*
 * Ends waits: paramo_interrupt and paramo_drain wake every thread that waits in a node. It never knows what
 * they wait for. Tests: test/node/test_ends.c.
 */
#ifndef NODE_INTERRUPT_H
#define NODE_INTERRUPT_H

#include "node/node.h"

/* On the control lane: paramo_interrupt wakes it from now on. */
MUST_USE paramo_err node_watch_interrupts(paramo_node *node);

#endif
