/*
 * State of one tcp connection: a non-blocking socket on the poller of its lane. Holds the structs and the allowed
 * moves, and notes that a connection has work for the end of the round. The work is in the other files. Never knows
 * what a frame means. Private to src/van/tcp and src/van/ucx. Tests: test/van/test_tcp.c.
 *
 *   RESOLVING --> CONNECTING --> OPEN --> DRAINED --+
 *       |             |           |     (orphans)   |
 *       +-------------+-----------+--> BROKEN ------+--> GONE
 *
 * BROKEN: the socket is closed. The user knows, or the hook will tell it, and has not called van_close yet.
 * DRAINED: an orphan has sent everything and waits for the peer's end of stream. Closing a socket with
 * unread bytes would reset it, and the peer would lose the last frames.
 * GONE: freed at the end of the round.
 */
#ifndef VAN_TCP_TCP_CONN_H
#define VAN_TCP_TCP_CONN_H

#include <sys/uio.h>

#include "base/two_ways.h"
#include "van/addr.h"
#include "van/core.h"
#include "van/outq.h"
#include "van/resolve.h"

enum {
    TCP_STAGE_BYTES = 64 << 10,  /* small frames are copied together up to this size, for one system call */
    TCP_COPY_MAX = 4 << 10,      /* a frame up to this size is copied (measured: cheaper than an iovec) */
    TCP_JOIN_MAX = 16 << 10,     /* the same beside others: a call and a wake-up of the peer cost more */
    TCP_GATHER_BYTES = 16 << 10, /* requests gather up to this size while an answer is awaited */
    /* a burst leaves with this many frames or bytes: the peer begins before the rest, and one stage holds them */
    TCP_BURST_FRAMES = 64,
    TCP_BURST_BYTES = TCP_STAGE_BYTES - TCP_COPY_MAX,
    TCP_CUT_MIN = 33,      /* the fewest frames of a burst that may be cut */
    TCP_CUT_TIMED = 16,    /* a round is timed if at least this many answers come together */
    TCP_CUT_WINDOW = 2048, /* requests that are timed together */
    TCP_BURST_MISS = 3,    /* misses that a missed burst counts for; a complete one takes 1 away */
    TCP_BURST_MISSES = 10, /* most misses; after a miss the next 2^misses bursts are not waited for */
    TCP_RBUF_BYTES = 64 << 10,
    /* a frame up to this size stays in rbuf until it is whole; longer ones go to their place */
    TCP_WHOLE_MAX = 8 << 10,
    TCP_TRAIL_BYTES = 4 << 10, /* the bytes after a large frame that are read together with its end */
    TCP_SINK_AT = 8 << 10,     /* rbuf from here on takes the dropped segments of a large frame */
    TCP_PLACE_MIN = 4 << 10,   /* a whole frame up to this size is delivered without asking place() */
    TCP_ROUND_BYTES = 2 << 20, /* per direction and round, so that other connections get their turn */
    TCP_LENT_BYTES = 8 << 20,  /* sent within a round, before its end; lent bytes beyond that are copied */
    TCP_OWN_MAX = 4 << 10      /* of a van's own frame */
};
struct tcp_conn;
struct ucx_way;
/* The time that a lane's thread stays parked while callers come and go (env/real/real_lane.c): gathering must
 * not wake it. */
#define TCP_GATHER_NS (500 * ENV_US)
/* More time between two rounds is not counted for a burst: it has other causes. */
#define TCP_CUT_LATE (300 * ENV_US)

enum tcp_state { TCP_RESOLVING, TCP_CONNECTING, TCP_OPEN, TCP_DRAINED, TCP_BROKEN, TCP_GONE };

/* A large frame that is being received. */
struct tcp_incoming {
    bool active;
    bool dropped;
    struct van_header header;
    void *dst[VAN_SEGS]; /* NULL: dropped */
    struct van_hold *hold;
    const uint8_t *lasting; /* where the next bytes must be, if pooled segments are read in place */
    unsigned borrowed;      /* the segments that are read in place, as bits */
    unsigned seg;
    uint64_t at; /* offset in the padded segment */
};

/* Whether long bursts are cut in two (base/two_ways.h): the second way. The peer then works on one half while this side
 * makes the other. Where both must share a core, that costs system calls and wake-ups, and gains nothing. The cost is
 * the time for each answered request. */
struct tcp_cut {
    struct two_ways ways;
    uint64_t since;    /* the last round that was timed; 0: none */
    uint64_t took;     /* ns in this window */
    unsigned answered; /* requests in this window */
};

/* Requests that are expected (van_expect). The first ones wait for the others, so that all leave with one system
 * call. A burst is missed if its requests do not all come within TCP_GATHER_NS. */
struct tcp_burst {
    unsigned hints;  /* calls of van_expect since the last round */
    unsigned due;    /* requests of the burst that have not come yet; 0: no burst */
    unsigned misses; /* TCP_BURST_MISS more for each missed burst, 1 less for each complete one */
    unsigned skip;   /* bursts that are not waited for from now on */
    unsigned most;   /* frames of this burst that leave together */
    struct tcp_cut cut;
};

/* A faster way for the bytes of a connection, beside its socket (van/ucx/ucx.h). The socket sets it up
 * and shows when the peer is gone. There is one stream of frames; each direction switches between two
 * frames, after an own frame that was sent with `last`. */
struct tcp_way_ops {
    void (*conn_stays)(struct tcp_conn *conn);
    void (*used)(struct tcp_conn *conn); /* frames were sent in this round */
    /* An own frame was received on the socket. An error closes the connection. */
    paramo_err (*own)(struct tcp_conn *conn, const uint8_t *bytes, size_t len);
    /* Takes some of tcp_gather's bytes and returns how many. 0: the way is full; tcp_way_open is called
     * later, with the number of bytes taken until then. */
    size_t (*write)(struct tcp_conn *conn, const struct iovec *iov, int n);
    void (*finish)(struct tcp_conn *conn); /* tells the peer that nothing more is written */
    void (*end)(struct tcp_conn *conn);
};

enum tcp_out {
    TCP_OUT_SOCKET,
    TCP_OUT_HELD, /* the last frame for the socket is queued; the others wait for the way */
    TCP_OUT_WAY
};

struct tcp_van {
    struct van base;
    const struct tcp_way_ops *ways; /* NULL: the socket only */
};

struct tcp_conn {
    struct van_conn base;
    enum tcp_state state;
    struct lane_source source;
    struct lane_task hook; /* at the end of a round: sends, calls writable, breaks */
    bool hooked;
    struct lane_task end; /* at the end of a round: frees, or moves */
    struct lane_task arrive;
    struct lane_timer timer; /* gathering; an orphan's deadline */
    uint64_t gather_until;   /* when frames that gather, or wait for a burst, leave; 0: none do */

    /* connecting */
    struct resolve *question;
    struct addr_list addresses;
    unsigned address_next;
    bool refused; /* one of them refused: nothing listens there */

    /* sending */
    struct outq out;
    uint8_t *stage; /* bytes of frames that are being sent, before the current frame */
    size_t stage_at, stage_len;
    struct van_frame *current; /* is being sent from its segments */
    uint64_t current_at;       /* in its padded segments */
    uint8_t *rest;             /* a copy of the unsent bytes of a withdrawn frame; then current is NULL */
    uint64_t rest_at, rest_len;
    struct queue finished; /* sent; done is due */
    uint64_t lent;         /* bytes sent before this round's end */
    bool unheard;          /* a request or chain frame is out, and no frame was received since */
    bool urgent;           /* do not gather */
    bool more;             /* the last request that was queued has van_frame.more */
    struct tcp_burst burst;
    bool blocked;     /* the socket is full: EPOLLOUT shows when to continue */
    bool send_failed; /* the socket cannot send; the receiving side finds out why */

    /* receiving */
    uint8_t *rbuf;
    size_t rbuf_at, rbuf_len;
    bool expect_large;
    struct tcp_incoming in;

    /* the way beside the socket */
    struct ucx_way *way;
    enum tcp_out out_by;
    bool in_by_way;
    uint8_t *own_frame; /* an own frame that waits for the end of the current frame */
    size_t own_frame_len;
    bool own_frame_last;

    /* breaking from outside a round */
    paramo_err broken_why;
    char broken_text[ERR_TEXT_MAX];

    /* moving */
    struct lane *move_to; /* not NULL from van_move until arrived() */
    void (*arrived)(void *arg, struct van_conn *conn);
    void *arrived_arg;
};

static inline struct tcp_conn *tcp_of(struct van_conn *conn)
{
    return (struct tcp_conn *)conn;
}

static inline const struct tcp_way_ops *tcp_ways(const struct tcp_conn *conn)
{
    return ((const struct tcp_van *)conn->base.van)->ways;
}

/* True while the connection may call its user and use its socket. */
static inline bool tcp_alive(const struct tcp_conn *conn)
{
    return conn->state == TCP_OPEN && !conn->move_to;
}

void tcp_conn_move(struct tcp_conn *conn, enum tcp_state to);
/* Makes the hook run at the end of this round. */
void tcp_hook(struct tcp_conn *conn);
/* Anywhere: breaks the connection (tcp_end.h) at the end of this round. */
void tcp_break_later(struct tcp_conn *conn, paramo_err why);
/* Stops receiving the large frame. */
void tcp_incoming_end(struct tcp_conn *conn);

#endif
