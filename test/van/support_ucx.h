/*
 * What the tests of the ucx van share: waiting until a connection's bytes go by UCX in both directions, and the
 * socket of a peer by hand.
 */
#ifndef TEST_VAN_SUPPORT_UCX_H
#define TEST_VAN_SUPPORT_UCX_H

#include "van/conformance.h"
#include "van/ucx/ucx_setup.h"

/* Waits until client 0 and server 0 both send by the way; fails the test if they do not in time. */
void ucx_wait_up(struct conf *c);
/* On the lane of the peer: does it send by the way? */
bool ucx_is_up(struct peer *peer);
/* True if this build and this machine have UCX; else says that the tests are not run. */
bool ucx_is_here(void);

/* ---- a peer by hand: its socket, whose reads have a deadline ---- */

int hand_connect(const char *address);
/* Client 0 connects to a listener by hand; returns the connection. */
int hand_connected(struct conf *c);
/* The same, and its offer, which allows shared memory. */
int hand_offered(struct conf *c, struct ucx_setup *offer);
/* Sends an own frame. */
void hand_own(int fd, const uint8_t *body, size_t len);
void hand_say(int fd, const struct ucx_setup *what);
/* The next frame, which is the van's own. bytes hold the address that it refers to. */
struct ucx_setup hand_hear(int fd, uint8_t bytes[SETUP_BYTES_MAX + VAN_ALIGN]);

#endif
