/*
 * The UCX workers of one lane: the lane polls them, or waits for their event descriptors. Never knows what a
 * message means. Private to src/van/ucx. Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_LANE_H
#define VAN_UCX_UCX_LANE_H

#include "van/ucx/ucx_way_state.h"

MUST_USE paramo_err ucx_lane_join(struct ucx_way *way, struct lane *lane);
void ucx_lane_part(struct ucx_way *way);

#endif
