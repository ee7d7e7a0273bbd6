/*
 * State of one connection's way over UCX. Holds the struct, no behaviour. Private to src/van/ucx. Tests:
 * test/van/test_ucx*.c.
 *
 *   connector: NEW -> OFFERED --> STARTING -> READY_SENT -> LAST_SENT -> UP
 *   acceptor:  NEW -> STARTING -> ACCEPTED -> READY_CAME -> LAST_SENT -> UP
 *
 * STARTING: the worker is being made beside the lanes.
 * OFF: the connection stays on the socket. Reached from each state before LAST_SENT.
 */
#ifndef VAN_UCX_UCX_WAY_STATE_H
#define VAN_UCX_UCX_WAY_STATE_H

#include "env/blocking_job.h"
#include "van/area.h"
#include "van/ucx/ucx.h"

enum way_state {
    WAY_NEW,
    WAY_OFFERED,
    WAY_STARTING,
    WAY_ACCEPTED,
    WAY_READY_SENT,
    WAY_READY_CAME,
    WAY_LAST_SENT,
    WAY_UP,
    WAY_OFF
};
enum { UCX_AM_ID = 1 };

struct ucx_lane;

struct ucx_way {
    struct tcp_conn *conn; /* NULL: ended */
    struct ucx_van *van;
    enum way_state state;
    bool connector;
    bool stays;
    bool probed;            /* PROBE has come */
    bool proved;            /* our PROBE or ECHO is sent */
    bool offered;           /* the peer's OFFER came before van_conn_stays: */
    struct ucx_setup offer; /* without an address */
    struct lane_timer late;
    struct area ours, theirs; /* shared memory: for sending, for receiving */

    /* valid since a worker was begun (ucx_worker.c) */
    enum ucx_kind kind;
    struct lane *home; /* the connection's lane; NULL: no worker was begun */
    struct blocking_job job;
    bool making, ended;     /* guarded by the van's lock: the job is not over; the connection has ended */
    struct lane_task begun; /* runs on the lane, after the job */
    bool posted;            /* begun is due, and has not run yet */
    paramo_err made;
    char made_text[ERR_TEXT_MAX];
    ucp_am_recv_callback_t came;
    void (*ready)(struct ucx_way *way, paramo_err err);
    struct ucx_setup accept;                 /* of the connector: ACCEPT, until the worker is made ... */
    uint8_t accept_address[UCX_ADDRESS_MAX]; /* ... and the address in it */

    /* valid with a worker */
    const struct ucx_context *context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    bool wired; /* UCX has sent what connects the endpoint */
    struct ucx_lane *lane;
    struct ucx_way *next; /* of the lane, or of the ways that are kept */
    struct lane_source source;
    struct lane_task end;
    bool armed;   /* each event makes source ready */
    bool pending; /* UCX has not sent the message yet */
    bool moved;   /* a send was completed in this round */
    unsigned busy;
    size_t message_len;

    /* our area: positions only grow; offset = position % AREA_BYTES */
    uint64_t head, tail; /* written up to, read by the peer up to */
    size_t run_left;     /* bytes left of a frame that must stay in one piece */
    bool full;           /* nothing is written until ROOM comes */
    uint64_t area_word;
    /* theirs */
    uint64_t at, released, told; /* received up to; no longer needed; reported with ROOM */
    uint64_t room_word;
    bool room_pending;
};

#endif
