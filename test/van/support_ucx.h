/*
 * What the tests of the ucx van share: waiting until a connection's bytes go by UCX in both directions.
 */
#ifndef TEST_VAN_SUPPORT_UCX_H
#define TEST_VAN_SUPPORT_UCX_H

#include "van/conformance.h"

/* Waits until client 0 and server 0 both send by the way; fails the test if they do not in time. */
void ucx_wait_up(struct conf *c);
/* On the lane of the peer: does it send by the way? */
bool ucx_is_up(struct peer *peer);
/* True if this build and this machine have UCX; else says that the tests are not run. */
bool ucx_is_here(void);

#endif
