/*
 * The objects behind paramo/admin.h: a snapshot of a job (admin_cluster.c), a ring (admin_ring.c). admin.c
 * has the handle and its calls, admin_checkpoint.c folders of checkpoints. They never know paramo_node: an
 * admin client is no member. Tests: test/node/test_admin.c.
 */
#ifndef NODE_ADMIN_IMPL_H
#define NODE_ADMIN_IMPL_H

#include "cluster/view/view.h"
#include "paramo/admin.h"
#include "wire/status.h"

/* Of a node of the view, by its index. */
struct snapshot_node {
    const struct status_node *status; /* NULL: the scheduler sent none */
    uint32_t owns, copies, filling;
};

/* Immutable. */
struct paramo_cluster {
    struct view *view;     /* a reference */
    struct status *status; /* NULL: was not asked for */
    struct snapshot_node *node;
    uint32_t partitions_lacking, copies_missing, copies_absent, servers_missing;
};

struct paramo_ring {
    struct ring_chains chains;
};

/* Takes view and status (NULL: none), also on an error. MEMORY. */
MUST_USE paramo_err cluster_create(struct view *view, struct status *status, paramo_cluster **cluster);

#endif
