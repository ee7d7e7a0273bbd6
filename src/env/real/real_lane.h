/* Lanes of the real environment: a thread, an epoll set, leaders and followers. For env/real/real.c.
 * Tests: test/env/test_lane.c. */
#ifndef ENV_REAL_REAL_LANE_H
#define ENV_REAL_REAL_LANE_H

struct lane_ops;
extern const struct lane_ops real_lane_ops;

#endif
