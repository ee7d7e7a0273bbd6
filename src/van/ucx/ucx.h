/*
 * The ucx van: a tcp van whose connections may change over to UCX active messages once the peer has proved
 * who it is (van_conn_stays). The socket sets the way up, stays open beside it, and tells at once when the
 * peer is gone; UCX carries the bytes. Each connection has a UCX worker of its own, driven by its lane
 * through the lane's hook, so that a peer that dies or stops takes nobody else's queue with it, and ending
 * the connection frees all.
 *
 *   connector                     acceptor                    own frames on the socket, unless said otherwise
 *       | OFFER host, kinds, area --->|
 *       |<- ACCEPT kind, area, proof, |  or DECLINE why: both stay on the socket
 *       |   address                   |
 *       | READY proof, address ------>|  the connector's last frame on the socket (or RETRACT)
 *       |<-------------------- SWITCH |  the acceptor's last frame on the socket
 *       | PROBE (by UCX) ------------>|  from here the acceptor sends by UCX
 *       |<-------------- GO (by UCX)  |  from here the connector does
 *
 * UCX trusts the addresses it is given. Over shared memory each side therefore first proves that it is this
 * host and user: it says what stands in the other's area (van/area.h), which nobody else could read.
 *
 * Messages are cut to the transport's buffers and always sent eagerly: bytes are copied out of a frame when
 * the transport has room for them. Rendezvous would save a copy, but lets the peer read a frame's memory at
 * any time, and van_withdraw must be able to take that back at once. What is large goes through the area
 * instead: copied into it once, announced by a message, and read where it lies (a frame that fits is
 * delivered there) or copied from there to where the receiver wants it; ROOM gives the space back and wakes
 * the writer (docs/PERFORMANCE.md).
 *
 * ucx_lib.c loads the library, ucx.c is the van and what it decides, ucx_way.c sets one connection's way up
 * and ends it, ucx_setup.c is what is said for that, ucx_lane.c asks UCX for what came, ucx_switch.c moves
 * bytes. Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_H
#define VAN_UCX_UCX_H

#include <ucp/api/ucp.h>

#include "van/tcp/tcp_conn.h"
#include "van/ucx/ucx_lib.h"

enum { UCX_WAYS_MAX = 64 };

struct ucx_van {
    struct tcp_van tcp;
    struct van_ucx_config config;
    uint64_t host; /* the same in processes that can reach each other's memory */
    pthread_mutex_t lock;
    struct ucx_context context[UCX_KINDS]; /* made under the lock at the first use */
    atomic_bool failed[UCX_KINDS];         /* not offered any more */
    atomic_uint ways;
};

/* May this kind be used? Else the reason. */
bool ucx_allows(struct ucx_van *van, enum ucx_kind kind, const char **why);
MUST_USE paramo_err ucx_context_of(struct ucx_van *van, enum ucx_kind kind,
                                   const struct ucx_context **context);

#endif
