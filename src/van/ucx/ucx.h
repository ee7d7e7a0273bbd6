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
 * and ends it, ucx_setup.c is what is said for that, ucx_lane.c asks UCX for what came, ucx_move.c moves
 * bytes. Tests: test/van/test_ucx*.c.
 */
#ifndef VAN_UCX_UCX_H
#define VAN_UCX_UCX_H

#include <ucp/api/ucp.h>

#include "van/tcp/tcp.h"
#include "van/ucx/shmdir.h"
#include "van/ucx/ucx_setup.h"

/* What is used of UCX; loaded at the first use of the van, so that a program that does not use it pays
 * nothing. */
struct ucx_api {
    __typeof__(&ucp_config_read) config_read;
    __typeof__(&ucp_config_modify) config_modify;
    __typeof__(&ucp_config_release) config_release;
    __typeof__(&ucp_init_version) init_version;
    __typeof__(&ucp_cleanup) cleanup;
    __typeof__(&ucp_worker_create) worker_create;
    __typeof__(&ucp_worker_destroy) worker_destroy;
    __typeof__(&ucp_worker_get_address) worker_get_address;
    __typeof__(&ucp_worker_release_address) worker_release_address;
    __typeof__(&ucp_worker_get_efd) worker_get_efd;
    __typeof__(&ucp_worker_arm) worker_arm;
    __typeof__(&ucp_worker_progress) worker_progress;
    __typeof__(&ucp_worker_set_am_recv_handler) worker_set_am_recv_handler;
    __typeof__(&ucp_dt_create_generic) dt_create_generic;
    __typeof__(&ucp_dt_destroy) dt_destroy;
    __typeof__(&ucp_ep_create) ep_create;
    __typeof__(&ucp_am_send_nbx) am_send;
    __typeof__(&ucp_request_free) request_free;
    __typeof__(&ucs_status_string) status_string;
};

/* Any thread. UNSUPPORTED if the library is not there. */
MUST_USE paramo_err ucx_load(const struct ucx_api **api);

/* One way of a process to its peers: shared memory, or what reaches other hosts. */
struct ucx_context {
    const struct ucx_api *api;
    ucp_context_h handle;
    ucp_datatype_t datatype; /* a way, as the bytes that are to leave next */
    size_t message_bytes;    /* what fits into one message of the transport */
    struct shmdir dir;       /* of its files; empty: UCX makes none, or the user says where */
};
/* context is zeroed, and is as it was after an error. */
MUST_USE paramo_err ucx_context_create(enum ucx_kind kind, struct ucx_context *context);
/* One that was never made is left alone. */
void ucx_context_destroy(struct ucx_context *context);

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

/* ucx.c: may this kind be used? Else the reason. */
bool ucx_allows(struct ucx_van *van, enum ucx_kind kind, const char **why);
MUST_USE paramo_err ucx_context_of(struct ucx_van *van, enum ucx_kind kind,
                                   const struct ucx_context **context);

extern const ucp_generic_dt_ops_t ucx_pack_ops; /* ucx_move.c */
/* ucx_way.c */
extern const struct tcp_way_ops ucx_way_ops;
/* For a connection that this side began. */
MUST_USE paramo_err ucx_way_prepare(struct tcp_conn *conn);

#endif
