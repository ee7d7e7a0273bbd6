/*
 * State of one connection's way over UCX. Holds the struct, no behaviour. Private to src/van/ucx. Tests:
 * test/van/test_ucx*.c.
 *
 *   connector: NEW -> OFFERED -> READY_SENT --> LAST_SENT -> UP
 *   acceptor:  NEW -> ACCEPTED -> READY_CAME -> LAST_SENT -> UP
 *
 * OFF: stays on the socket; from each state before LAST_SENT.
 */
#ifndef VAN_UCX_UCX_WAY_STATE_H
#define VAN_UCX_UCX_WAY_STATE_H

#include "van/area.h"
#include "van/ucx/ucx.h"

enum way_state {
    WAY_NEW,
    WAY_OFFERED,
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

    /* from here on with a worker */
    enum ucx_kind kind;
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

    /* our area: positions count on for ever; offset = position % AREA_BYTES */
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
