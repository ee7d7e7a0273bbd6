/*
 * The inside of a way: ucx_way.c sets it up and ends it, ucx_lane.c has a lane ask UCX for what came,
 * ucx_move.c moves bytes. Included by those only.
 *
 *   connector: NEW -> OFFERED -> READY_SAID ----> UP
 *   acceptor:  NEW -> ACCEPTED -> SWITCH_SAID --> UP      OFF: stays on the socket
 */
#ifndef VAN_UCX_UCX_WAY_H
#define VAN_UCX_UCX_WAY_H

#include "van/area.h"
#include "van/ucx/ucx.h"

enum way_state { WAY_NEW, WAY_OFFERED, WAY_ACCEPTED, WAY_READY_SENT, WAY_SWITCH_SENT, WAY_UP, WAY_OFF };
enum { UCX_AM_ID = 1 };

struct ucx_lane;

struct ucx_way {
    struct tcp_conn *conn; /* NULL: ended */
    struct ucx_van *van;
    enum way_state state;
    bool connector;
    bool stays;
    bool probed;            /* the peer's PROBE came before we said SWITCH */
    bool offered;           /* the peer's OFFER came before we were settled: */
    struct ucx_setup offer; /* without an address */
    struct lane_timer late;
    struct area ours, theirs; /* shared memory: what is sent, what comes */

    /* from here on with a worker */
    enum ucx_kind kind;
    const struct ucx_context *context;
    ucp_worker_h worker;
    ucp_ep_h ep;
    struct ucx_lane *lane;
    struct ucx_way *next;
    struct lane_source source;
    struct lane_task end;
    bool armed;   /* whatever comes makes source ready */
    bool pending; /* UCX has not taken the message yet */
    bool moved;   /* a send was completed in this round */
    unsigned busy;
    size_t message_len;

    /* our area: positions count on for ever; offset = position % AREA_BYTES */
    uint64_t head, tail; /* written up to, read by the peer up to */
    size_t run_left;     /* of a frame that must go on where it began */
    bool full;           /* nothing is written until ROOM comes */
    uint64_t area_word;
    /* theirs */
    uint64_t at, released, told; /* come up to, not needed any more, and told so */
    uint64_t room_word;
    bool room_pending;
};

/* ucx_lane.c */
MUST_USE paramo_err ucx_lane_join(struct ucx_way *way, struct lane *lane);
void ucx_lane_part(struct ucx_way *way);

/* ucx_move.c */
void ucx_signal(struct ucx_way *way, enum ucx_message message);
size_t ucx_write(struct tcp_conn *conn, const struct iovec *iov, int n);
ucs_status_t ucx_message_came(void *arg, const void *header, size_t header_len, void *data, size_t len,
                              const ucp_am_recv_param_t *param);

/* ucx_way.c */
void ucx_probe_came(struct ucx_way *way);
void ucx_way_up(struct ucx_way *way);

#endif
