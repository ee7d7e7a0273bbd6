/*
 * One membership of this process: its member, and for a server its acceptor and its shards. It never knows
 * what requests or orders mean. On the control lane unless noted. Tests: test/node/test_node.c,
 * test/node/test_joins.c.
 */
#ifndef NODE_MEMBER_SLOT_H
#define NODE_MEMBER_SLOT_H

#include "node/node.h"

MUST_USE paramo_err member_slot_open(struct member_slot *member_slot, const char *scheduler_address,
                                     const char *listen_address);
void member_slot_close_control(struct member_slot *member_slot);

MUST_USE paramo_err node_shard_make(paramo_node *node, struct node_shard *s, struct lane *lane,
                                    uint64_t incarnation, unsigned index);
/* Hands an accepted data connection to the shard (NULL: rejects it). */
void node_shard_accept(struct node_shard *to, struct van_conn *conn, const struct hello *hello);

#endif
