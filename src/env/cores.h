/* How many processors this process may use, by affinity and the CPU quota of its cgroup. This module
 * never knows lanes. Tests: test/env/test_lane.c. */
#ifndef ENV_CORES_H
#define ENV_CORES_H

/* At least 1; a quota of 1.5 processors counts as 1. Read once per process. */
unsigned cores_usable(void);

#endif
