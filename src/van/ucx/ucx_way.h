/*
 * Sets up one connection's way over UCX and ends it (drawing in ucx.h). Never knows what a frame means.
 * Private to src/van/ucx. Tests: test/van/test_ucx_ends.c, test_ucx_strange.c.
 */
#ifndef VAN_UCX_UCX_WAY_H
#define VAN_UCX_UCX_WAY_H

#include "van/ucx/ucx_way_state.h"

extern const struct tcp_way_ops ucx_way_ops;
/* For a connection of which this side is the connector. */
MUST_USE paramo_err ucx_way_prepare(struct tcp_conn *conn);

#endif
