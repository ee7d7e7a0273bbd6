/*
 * Makes a node from its configuration (paramo_create), with lanes, van and member slots, and frees it. It never knows
 * a cluster. Tests: test/node/test_node.c.
 */
#ifndef NODE_CREATE_H
#define NODE_CREATE_H

#include "node/node.h"

/* Frees a node whose parts are closed, or one that paramo_create could not complete. */
void node_free(paramo_node *node);

#endif
