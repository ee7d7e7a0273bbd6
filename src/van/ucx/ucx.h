/*
 * The ucx van: a tcp van whose connections may switch to UCX active messages once the peer is authenticated
 * (van_conn_stays). The socket sets the way up, stays open beside it, and shows at once when the peer is
 * gone. UCX carries the bytes. Each connection has its own UCX worker, which its lane drives through the
 * lane's hook. So a peer that dies or hangs blocks no other connection's queue, and ending the connection
 * frees everything.
 *
 *   connector                     acceptor                    own frames on the socket, unless said otherwise
 *       | OFFER host, kinds, area --->|
 *       |<- ACCEPT kind, area, proof, |  or DECLINE why: both stay on the socket
 *       |   address                   |
 *       | READY proof, address ------>|  or RETRACT; the acceptor may still answer DECLINE
 *       | PROBE (by UCX) ------------>|
 *       |<------------ ECHO (by UCX)  |  messages by UCX pass in both directions
 *       | LAST ---------------------->|  the connector's last frame on the socket
 *       |<-------------- GO (by UCX)  |  from here the connector sends by UCX
 *       |<---------------------- LAST |  the acceptor's last frame on the socket
 *       | GO (by UCX) --------------->|  from here the acceptor sends by UCX
 *
 * UCX takes milliseconds to make a worker and an endpoint. Until LAST all frames travel on the socket, so no frame
 * waits for that. If a step before LAST fails or takes too long, the connection stays on the socket: the connector
 * sends RETRACT, and only the connector begins to switch. After LAST a side's frames wait for one message each way.
 * The side that reads LAST sends GO at once, beside all frames. So the bytes by UCX never overtake those on the
 * socket, and a long frame of the other side holds up nothing.
 *
 * A connection that is closed with unsent frames reads messages by UCX, but no more frames. If it has sent LAST, it
 * needs no more than GO. Otherwise it stays on the socket: it sends no PROBE, ECHO or LAST.
 *
 * The connector sends OFFER when the connection has carried enough for UCX to pay off, or at once if UCX is required.
 *
 * UCX trusts the addresses that it is given. So over shared memory each side first proves that it has the
 * same host and user: it sends the random bytes of the other's area (van/area.h), which no other user could
 * read.
 *
 * Messages are cut to the transport's buffers and always sent eagerly: bytes are copied out of a frame when
 * the transport has room for them. Rendezvous would save a copy, but lets the peer read a frame's memory at
 * any time, and van_withdraw must be able to take that memory back at once. Large data goes through the area
 * instead: the sender copies it into the area once and announces it with a message; the receiver reads it
 * there (a frame that fits is delivered there) or copies it to its place. ROOM gives the space back and
 * wakes the writer (docs/PERFORMANCE.md).
 *
 * Lowest first: ucx_setup.c has the messages that set a way up, ucx_lib.c loads the library, ucx.c has the
 * van's decisions, ucx_lane.c polls UCX, ucx_worker.c makes and destroys UCX's workers, ucx_switch.c moves bytes,
 * ucx_way.c sets up and ends one connection's way, ucx_van.c is the van.
 * Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_H
#define VAN_UCX_UCX_H

#include <pthread.h>
#include <ucp/api/ucp.h>

#include "van/tcp/tcp_conn.h"
#include "van/ucx/ucx_lib.h"

/* Of one van: connections that use UCX; of each kind, ways that are kept (ucx_worker.c). Arbitrary. */
enum { UCX_WAYS_MAX = 64, UCX_KEPT_MAX = 64 };

struct ucx_van {
    struct tcp_van tcp;
    struct van_config config;
    uint64_t host;                    /* equal in processes that can reach each other's memory */
    const ucp_generic_dt_ops_t *pack; /* of the contexts */
    pthread_mutex_t lock;
    struct blocking_jobs *jobs; /* makes and destroys workers; set under the lock at the first use */
    struct ucx_context *context[UCX_KINDS]; /* made by a job, at the first use; NULL: not made */
    atomic_bool failed[UCX_KINDS];          /* no longer offered */
    atomic_uint ways;
    atomic_uint kept[UCX_KINDS]; /* ways whose UCX worker could not be destroyed */
};

/* Initialises all but van->tcp. pack reads the bytes that a way sends next. SYSTEM. */
MUST_USE paramo_err ucx_van_init(struct ucx_van *van, const struct van_config *config,
                                 const ucp_generic_dt_ops_t *pack);
/* A context stays if one of its UCX workers is kept. */
void ucx_van_fini(struct ucx_van *van);
/* May this kind be used? If not, *why is the reason. */
bool ucx_allows(struct ucx_van *van, enum ucx_kind kind, const char **why);
/* In a job of the van. */
MUST_USE paramo_err ucx_context_of(struct ucx_van *van, enum ucx_kind kind,
                                   const struct ucx_context **context);

#endif
