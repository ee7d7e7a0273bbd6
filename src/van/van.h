/*
 * A van moves frames between two lanes. This is the contract of a transport; inproc, tcp, ucx and sim
 * implement it, and one conformance suite checks them all (test/van/conformance.h).
 *
 * A frame is a fixed header and up to VAN_SEGS segments of bytes. The van owns the header's magic, version,
 * segment lengths and checksum. VAN_HEAD bytes of it belong to the caller (wire/) and are opaque here. A
 * connection delivers whole frames in the order sent (among equal classes and priorities), or it breaks:
 * nothing is lost silently. A van never knows what a frame means, which node the peer is, or how to retry.
 *
 * Every function here is called on the connection's lane unless noted. Every callback comes on that lane,
 * and never from inside a call into the van unless noted, so that callers need not be re-entrant: place,
 * frame, writable and closed come from the lane's rounds. Tests: test/van/test_van.c and the conformance
 * suite.
 */
#ifndef VAN_VAN_H
#define VAN_VAN_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/queue.h"
#include "env/lane.h"

#define VAN_MAGIC   UINT32_C(0x314d5250) /* "PRM1" */
#define VAN_VERSION 1u
enum {
    VAN_HEAD = 80, /* the caller's part of the header */
    VAN_SEGS = 4,
    /* magic 4, version 1, nseg 1, class 1, zero 1, checksum 8, seg_len 4 x 8, head 80 */
    VAN_HEADER_BYTES = 128,
    VAN_ALIGN = 8 /* on the wire each segment is followed by zero bytes up to a multiple of this */
};

/* The bytes of a segment on the wire. */
static inline uint64_t van_padded(uint64_t len)
{
    return (len + VAN_ALIGN - 1) & ~(uint64_t)(VAN_ALIGN - 1);
}

struct van;
struct van_conn;
struct van_listener;

struct van_seg {
    void *data;
    uint64_t len;
};

/* Each class has its own bound of queued bytes, so that a flood of requests cannot delay an answer. */
enum van_class { VAN_CONTROL = 0, VAN_ANSWER = 1, VAN_CHAIN = 2, VAN_REQUEST = 3, VAN_CLASSES = 4 };

/* One outgoing frame. From van_send (if it returns OK) until done, the van owns the frame and its
 * segments. done is called exactly once, from a round of the lane or from van_close / van_withdraw: with
 * OK when the segments' bytes have been read (by the kernel or by the peer), otherwise with the cause. done
 * may free the frame. The caller still owns a frame that van_send refused, and done is not called. */
struct van_frame {
    struct qnode node; /* private to the van */
    uint8_t head[VAN_HEAD];
    struct van_seg seg[VAN_SEGS];
    uint8_t nseg;
    uint8_t class;
    bool more; /* a request: another one follows within microseconds, which this one may wait for. A hint */
    /* Among the waiting frames of a class, the highest priority is sent first, and equal priorities in order. A
     * waiting frame ages: one step of priority is worth 1,024 frames. */
    int32_t priority;
    /* NULL, or an object that a receiver in this process may read in frame() (van_note). It is valid as long as the
     * segments. Vans between processes do not send it. */
    const void *note;
    void (*done)(struct van_frame *frame, paramo_err status);
    uint64_t van_private[4];
};

/* Where an incoming segment goes. */
#define VAN_POOL ((void *)0)            /* memory of the van: valid in frame(), or longer with van_keep */
#define VAN_SINK ((void *)(uintptr_t)1) /* dropped; data is NULL in frame() */

/* A reference to received bytes that outlives frame(). */
struct van_hold;
/* Memory for received bytes (van/pool.h). */
struct pool;

struct van_user {
    /* Called after the header and before the segments. Sets each dst[i]: VAN_POOL, VAN_SINK, or an
     * address with room for len[i] bytes that stays valid until frame(), van_displace or closed. An error
     * closes the connection with that code. May be NULL: all VAN_POOL. The van may skip it for a small
     * frame that has come whole, so frame() must check seg[i].data for where the bytes are. */
    paramo_err (*place)(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD], const uint64_t *len,
                        unsigned nseg, void *dst[]);
    /* A whole frame. An error closes the connection with that code. Segments in the van's memory begin at
     * multiples of VAN_ALIGN (those of inproc are aligned like the sender's). */
    paramo_err (*frame)(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                        const struct van_seg *seg, unsigned nseg);
    /* A send was refused with AGAIN, and there is room now. May be NULL. */
    void (*writable)(void *user, struct van_conn *conn);
    /* The connection is gone (the peer died, the protocol was broken, the connect failed ...). Called
     * once, after the done of frames that were not sent. why: CONNECTION_REFUSED if nothing
     * listens at the address, CONNECT for other failures to connect, ADDRESS, PROTOCOL, DISCONNECTED ... text
     * names the peer. Not called after van_close. The user calls van_close in it or later. */
    void (*closed)(void *user, struct van_conn *conn, paramo_err why, const char *text);
};

struct van_ops {
    const char *name;
    bool in_process; /* frames pass in memory: filters of bytes would only cost time */
    paramo_err (*connect)(struct van *van, struct lane *lane, const char *address,
                          const struct van_user *user_ops, void *user, struct van_conn **conn);
    paramo_err (*listen)(struct van *van, struct lane *lane, const char *address,
                         void (*accept)(void *arg, struct van_conn *conn), void *arg,
                         struct van_listener **listener);
    void (*listener_close)(struct van_listener *listener);
    paramo_err (*send)(struct van_conn *conn, struct van_frame *frame);
    paramo_err (*send_lent)(struct van_conn *conn, struct van_frame *frame, void *spare); /* may be NULL */
    void (*withdraw)(struct van_conn *conn, struct van_frame *frame);
    void (*displace)(struct van_conn *conn, const void *begin, size_t len); /* may be NULL */
    void (*close)(struct van_conn *conn, bool flush);
    void (*flush)(struct van_conn *conn);      /* may be NULL */
    void (*expect)(struct van_conn *conn);     /* may be NULL */
    void (*conn_stays)(struct van_conn *conn); /* may be NULL */
    void (*move)(struct van_conn *conn, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
                 void *arg);
    void (*abandon)(struct van_conn *conn); /* ends the flushing of a closed connection and calls done */
    void (*destroy)(struct van *van);
};

/* Implementations embed these as their first member. */
struct van {
    const struct van_ops *ops;
    struct env *env;
    struct pool *pool;
    atomic_uint drop_percent;
    uint64_t capabilities; /* wire/capability.h: what this process offers; set before the first connection */
    pthread_mutex_t orphan_lock; /* guards the list of closed connections that still flush */
    struct van_conn *orphans;
};
struct van_listener {
    struct van *van;
    char address[72];
};
struct van_limits {
    uint64_t frame_bytes; /* an incoming frame with longer segments closes the connection with TOO_LARGE */
    uint64_t queue_bytes[VAN_CLASSES]; /* send refuses with AGAIN when a class has this many bytes (one frame
                                          always fits) */
};
struct van_counters {
    uint64_t frames_sent, frames_received, bytes_sent, bytes_received;
};
struct van_conn {
    struct van *van;
    struct lane *lane;
    const struct van_user *user_ops;
    void *user;
    struct van_limits limits;
    struct van_counters counters;
    uint64_t capabilities; /* wire/capability.h: what both ends can; the handshake sets it */
    char peer[72];         /* for messages: "10.0.0.5:8000", "inproc:3" */
    /* private to src/van: the frame inside frame(), for van_keep and van_note; the links of the list of orphans */
    const void *rx_note;
    struct van_hold *rx_hold;
    unsigned rx_borrowed;
    struct van_conn *orphan_next, *orphan_prev;
    bool orphan;
    /* private to van_flush_wait: the latest end; bytes_sent when its timer was armed */
    uint64_t flush_until, flush_sent;
};

/* The vans between processes, by the name that a node's setting gives them: van_<name>_create makes one.
 *   tcp: sockets.
 *   ucx: tcp, and UCX where it is allowed (van/ucx/ucx.h): between processes of one host and user, or to any
 *        peer if the fabric is trusted. UNSUPPORTED without UCX. */
#define VANS(X)                                                                                              \
    X(tcp)                                                                                                   \
    X(ucx)

/* Settings of a van. The tcp van has none. */
struct van_config {
    bool required;       /* ucx: a connection that cannot use UCX is closed */
    bool trusted_fabric; /* ucx: UCX may send to other hosts; it does not check or encrypt bytes */
    bool no_shm;         /* ucx: never use shared memory */
    bool at_once;        /* ucx: offer UCX when a connection stays, not only when it has carried much */
};
#define VAN_DECLARE(name)                                                                                    \
    MUST_USE paramo_err van_##name##_create(struct env *env, const struct van_config *config,                \
                                            struct van **van);
VANS(VAN_DECLARE)
#undef VAN_DECLARE

/* Is there a van of this name in VANS? van_create makes it: INVALID if there is none. */
bool van_exists(const char *name);
MUST_USE paramo_err van_create(struct env *env, const char *name, const struct van_config *config,
                               struct van **van);

/* The van between nodes of one process. Each such van has its own space of addresses. van_sim_create is in
 * sim/van/simvan.h. */
MUST_USE paramo_err van_inproc_create(struct env *env, struct van **van);

/* Begins to connect and returns at once. Frames may be queued before the connection is established. A
 * failure comes as closed(). Addresses: tcp "host:port", "[v6]:port", host names; inproc and sim: the
 * string of any listener. A name is resolved without blocking the lane. */
MUST_USE paramo_err van_connect(struct van *van, struct lane *lane, const char *address,
                                const struct van_user *user_ops, void *user, struct van_conn **conn);
/* accept gets each new connection on the listener's lane. Before it returns it must call van_set_user or
 * van_close. tcp "host:0" picks a port. */
MUST_USE paramo_err van_listen(struct van *van, struct lane *lane, const char *address,
                               void (*accept)(void *arg, struct van_conn *conn), void *arg,
                               struct van_listener **listener);
void van_listener_close(struct van_listener *listener);
const char *van_listener_address(const struct van_listener *listener); /* with the real port */
void van_set_user(struct van_conn *conn, const struct van_user *user_ops, void *user);
/* The default is 4 KiB: an unauthenticated peer may send at most that. */
void van_set_frame_limit(struct van_conn *conn, uint64_t bytes);
/* OK: the van owns the frame. AGAIN: its class is full; writable() follows. DISCONNECTED: the connection
 * is gone. TOO_LARGE, INVALID. Frames of one round are sent together at its end. While a request or chain
 * frame is out and no frame has been received since, further frames of these classes gather across rounds, until
 * a frame arrives, a byte limit is reached, a control or answer frame is sent, van_flush is called, or a short
 * time has passed. Otherwise they gather only if the last request has `more` or further ones are expected
 * (van_expect). */
MUST_USE paramo_err van_send(struct van_conn *conn, struct van_frame *frame);
/* van_send of a frame whose last segment the caller changes after this call. Bytes that are not sent at once
 * are copied to spare, which has room for that segment and stays valid until done, and the segment then points
 * there. They are copied even if the frame is refused. */
MUST_USE paramo_err van_send_lent(struct van_conn *conn, struct van_frame *frame, void *spare);
/* Sends gathered frames at the end of this round. Call it before waiting for an answer. */
void van_flush(struct van_conn *conn);
/* On the lane. The user is likely to send one more request within a few microseconds: a callback is about to run,
 * and programs that keep a number of requests in flight issue the next one then. Requests wait until all expected
 * ones are there, so that they leave with one system call. The bounds of gathered requests (bytes, time) hold for
 * them, too. It is a hint: a van may ignore it, and a request that does not come is no error. */
void van_expect(struct van_conn *conn);
/* Takes a sent frame's memory back: done(CANCELLED) is called before this returns. A frame that is being
 * sent is completed from a copy. No effect if done was called already (the caller must know that the
 * frame still exists). */
void van_withdraw(struct van_conn *conn, struct van_frame *frame);
/* Redirects an incoming frame that is being received into [begin, begin+len) to the sink. Its frame() has
 * data NULL for that segment. */
void van_displace(struct van_conn *conn, const void *begin, size_t len);
/* Frees the connection. No callback follows. done for unsent frames is called before van_close returns. With
 * flush it is called later: when they have been sent, when no byte has left for ten seconds, or after a minute.
 * May be called from any callback of the connection. */
void van_close(struct van_conn *conn, bool flush);
/* Moves the connection to another lane; called in a callback of the current user. Nothing is received
 * until arrived() is called on that lane and sets the new user. No unsent frame may be queued. The caller
 * must not use the connection afterwards. */
void van_move(struct van_conn *conn, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
              void *arg);
/* The peer is authenticated, and the connection stays on this lane (no further van_move): the van may use
 * a faster way to the peer. The contract stays the same. */
void van_conn_stays(struct van_conn *conn);
/* Frees the van. Its listeners and connections must be closed, and none may be flushing (van_abandon). */
void van_destroy(struct van *van);
/* Any thread: how many connections of this lane that were closed with flush still flush. */
unsigned van_flushing(struct van *van, const struct lane *lane);
/* On a lane, before it is destroyed: ends its connections that still flush. */
void van_abandon(struct van *van, struct lane *lane);
/* Any thread: drops this share of received chain, request and answer frames from now on
 * (config.drop_percent, to test that requests survive lost frames). */
void van_set_drop(struct van *van, unsigned percent);

/* In frame(): the frame's note, if it came from this process; NULL: it has none. */
const void *van_note(const struct van_conn *conn);
/* In frame(): keeps this frame's pooled segments until van_release (any thread). It does not keep
 * segments that place() put elsewhere. After MEMORY nothing is kept. seg (nseg of them) is updated to
 * where the bytes are now. *hold is NULL if there was nothing to keep; van_release accepts that. */
MUST_USE paramo_err van_keep(struct van_conn *conn, struct van_seg *seg, unsigned nseg,
                             struct van_hold **hold);
void van_release(struct van_hold *hold);

#endif
