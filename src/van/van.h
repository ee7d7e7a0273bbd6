/*
 * A van moves frames between two lanes: the transport contract, kept by inproc, tcp and sim (later ucx), and
 * held to by one conformance suite (test/van/conformance.h).
 *
 * A frame is a fixed header and up to VAN_SEGS segments of bytes. Of the header the van owns magic, version,
 * segment lengths and a checksum; VAN_HEAD bytes are the caller's (wire/) and opaque here. A connection
 * delivers whole frames in the order sent (among equal classes and priorities), or breaks: nothing is lost
 * silently. A van never knows what a frame means, who the peer is, or how to retry.
 *
 * Every function here is called on the connection's lane unless it says otherwise; every callback comes on
 * it, and never from inside a call into the van except where it says so (so callers need no re-entrance
 * care): place, frame, writable, closed come from the lane's rounds. Tests: test/van/test_van.c and the
 * conformance suite.
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
    VAN_HEADER_BYTES =
        128,      /* magic 4, version 1, nseg 1, class 1, zero 1, checksum 8, seg_len 4 x 8, head 80 */
    VAN_ALIGN = 8 /* on the wire each segment is followed by zero bytes up to a multiple of this */
};

struct van;
struct van_conn;
struct van_listener;

struct van_seg {
    void *data;
    uint64_t len;
};

/* Each class has its own bound of queued bytes, so that a flood of requests cannot keep an answer from
 * leaving. */
enum van_class { VAN_CONTROL = 0, VAN_ANSWER = 1, VAN_CHAIN = 2, VAN_REQUEST = 3, VAN_CLASSES = 4 };

/* One outgoing frame. From van_send (when it returns OK) until done, frame and segments belong to the van;
 * done is called exactly once, from a round of the lane or from van_close / van_withdraw, with OK when the
 * bytes are out of the segments (handed to the kernel or copied by the peer), else with why not. It may free
 * the frame. A frame that van_send refused is still the caller's, and done is not called. */
struct van_frame {
    struct qnode node; /* the van's */
    uint8_t head[VAN_HEAD];
    struct van_seg seg[VAN_SEGS];
    uint8_t nseg;
    uint8_t class;
    /* Higher first among the frames of its class that have not begun to leave; equal: in order. A waiting
     * frame ages: one step of priority is worth 1,024 frames. */
    int32_t priority;
    void (*done)(struct van_frame *frame, paramo_err status);
    uint64_t van_private[4];
};

/* Says where an incoming segment goes. */
#define VAN_POOL ((void *)0) /* the van finds memory: valid during frame(), or longer by van_keep */
#define VAN_SINK ((void *)(uintptr_t)1) /* read and thrown away; data is NULL in frame() */

/* A reference to received bytes that outlives frame(). */
struct van_hold;
/* Memory for received bytes (van/pool.h). */
struct pool;

struct van_user {
    /* After the header, before the segments: fills dst[i] for each (VAN_POOL, VAN_SINK or an address with
     * room for len[i] bytes that stays until frame(), van_displace or closed). An error closes the connection
     * with it. May be NULL: all VAN_POOL. May be skipped by the van when the whole frame is at hand and
     * small: frame() must cope with bytes that are not where it wanted them (seg[i].data tells where they
     * are). */
    paramo_err (*place)(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD], const uint64_t *len,
                        unsigned nseg, void *dst[]);
    /* A whole frame. An error closes the connection with it. Segments in the van's memory begin at multiples
     * of VAN_ALIGN (those of inproc are as aligned as the sender's). */
    paramo_err (*frame)(void *user, struct van_conn *conn, const uint8_t head[VAN_HEAD],
                        const struct van_seg *seg, unsigned nseg);
    /* A send was refused with AGAIN before, and there is room now. May be NULL. */
    void (*writable)(void *user, struct van_conn *conn);
    /* The connection is gone (peer died, protocol broken, connect failed ...), once; frames that were not
     * sent have been given back through done before. why: NOBODY if the address answered that nobody listens
     * there, CONNECT for what else keeps a connection from standing, ADDRESS, PROTOCOL, DISCONNECTED ...;
     * text names the peer. Not called after van_close. The user calls van_close in here or later. */
    void (*closed)(void *user, struct van_conn *conn, paramo_err why, const char *text);
};

struct van_ops {
    const char *name;
    paramo_err (*connect)(struct van *van, struct lane *lane, const char *address,
                          const struct van_user *user_ops, void *user, struct van_conn **conn);
    paramo_err (*listen)(struct van *van, struct lane *lane, const char *address,
                         void (*accept)(void *arg, struct van_conn *conn), void *arg,
                         struct van_listener **listener);
    void (*listener_close)(struct van_listener *listener);
    paramo_err (*send)(struct van_conn *conn, struct van_frame *frame);
    paramo_err (*send_lent)(struct van_conn *conn, struct van_frame *frame, void *spare); /* may be NULL */
    void (*withdraw)(struct van_conn *conn, struct van_frame *frame);
    void (*displace)(struct van_conn *conn, const void *begin, size_t len);
    void (*close)(struct van_conn *conn, bool flush);
    void (*flush)(struct van_conn *conn);
    void (*conn_stays)(struct van_conn *conn); /* may be NULL */
    void (*move)(struct van_conn *conn, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
                 void *arg);
    void (*abandon)(
        struct van_conn *conn); /* ends the flushing of a closed connection; its done callbacks come now */
    void (*destroy)(struct van *van);
};

/* Implementations embed these as their first member. */
struct van {
    const struct van_ops *ops;
    struct env *env;
    struct pool *pool;
    atomic_uint drop_percent;
    pthread_mutex_t orphan_lock; /* guards the list of connections that are closed but still flushing */
    struct van_conn *orphans;
};
struct van_listener {
    struct van *van;
    char address[72];
};
struct van_limits {
    uint64_t
        frame_bytes; /* an incoming frame whose segments are longer closes the connection with TOO_LARGE */
    uint64_t queue_bytes[VAN_CLASSES]; /* send refuses with AGAIN when a class holds this much (one frame
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
    char peer[72]; /* for messages: "10.0.0.5:8000", "inproc:3" */
    /* van.c's: the frame inside frame(), for van_keep; the place among the van's orphans */
    struct van_hold *rx_hold;
    unsigned rx_borrowed;
    struct van_conn *orphan_next, *orphan_prev;
    bool orphan;
};

/* Transports of the real world; van_sim_create is in sim/van/simvan.h. One inproc van is one space of
 * addresses.
 */
MUST_USE paramo_err van_tcp_create(struct env *env, struct van **van);
MUST_USE paramo_err van_inproc_create(struct env *env, struct van **van);

/* tcp, and UCX where it may be (van/ucx/ucx.h): between processes of one host and user, or to any peer if the
 * fabric between is trusted. UNSUPPORTED where UCX is not there. */
struct van_ucx_config {
    bool required;       /* a connection that cannot use UCX is closed */
    bool trusted_fabric; /* the bytes may go to other hosts by UCX, which neither checks nor hides them */
    bool no_shm;         /* not through shared memory */
};
MUST_USE paramo_err van_ucx_create(struct env *env, const struct van_ucx_config *config, struct van **van);

/* Begins to connect: returns at once; frames may be sent meanwhile and leave when the connection stands; a
 * failure comes as closed(). Addresses: tcp "host:port", "[v6]:port", host names; inproc and sim: any string
 * that a listener has. A name is resolved without blocking the lane. */
MUST_USE paramo_err van_connect(struct van *van, struct lane *lane, const char *address,
                                const struct van_user *user_ops, void *user, struct van_conn **conn);
/* accept gets each new connection on the listener's lane and must set user_ops and user with van_set_user
 * before it returns (or van_close it). tcp "host:0" picks a port. */
MUST_USE paramo_err van_listen(struct van *van, struct lane *lane, const char *address,
                               void (*accept)(void *arg, struct van_conn *conn), void *arg,
                               struct van_listener **listener);
void van_listener_close(struct van_listener *listener);
const char *van_listener_address(const struct van_listener *listener); /* with the real port */
void van_set_user(struct van_conn *conn, const struct van_user *user_ops, void *user);
/* Default: 4 KiB frames until raised (a peer that has not proved who it is may send no more). */
void van_set_frame_limit(struct van_conn *conn, uint64_t bytes);
/* OK: the frame is the van's. AGAIN: its class is full; writable() will come. DISCONNECTED: gone, TOO_LARGE,
 * INVALID. Frames of one round leave together at its end. While a request or chain frame is out and nothing
 * has been heard since, further requests gather across rounds, until a frame arrives, a byte limit is
 * reached, a control or answer frame is sent, van_flush is called, or a short time has passed. */
MUST_USE paramo_err van_send(struct van_conn *conn, struct van_frame *frame);
/* van_send of a frame whose last segment changes after this call: what does not leave at once is copied to
 * spare, which has room for that segment and stays until done. So it is, too, when the frame is refused. */
MUST_USE paramo_err van_send_lent(struct van_conn *conn, struct van_frame *frame, void *spare);
/* What has gathered leaves at the end of this round: who begins to wait for an answer calls this first. */
void van_flush(struct van_conn *conn);
/* Takes a sent frame's memory back: done(CANCELLED) is called before this returns; what had begun to leave is
 * completed from a copy. Nothing happens if done was called already (the caller must know the frame still
 * exists). */
void van_withdraw(struct van_conn *conn, struct van_frame *frame);
/* An incoming frame that is being received into [begin, begin+len) goes to the sink instead from now on; its
 * frame() comes with data NULL for that segment. */
void van_displace(struct van_conn *conn, const void *begin, size_t len);
/* Frees the connection; no callback comes after it, but done for unsent frames comes before it returns (with
 * flush: later, when they have left or a few seconds have passed). May be called from any callback of the
 * connection. */
void van_close(struct van_conn *conn, bool flush);
/* Hands the connection to another lane, in the present user's callback; nothing is received until arrived()
 * is called there, which sets the new user. No frame may be queued unsent. The caller forgets the connection.
 */
void van_move(struct van_conn *conn, struct lane *lane, void (*arrived)(void *arg, struct van_conn *conn),
              void *arg);
/* The peer has proved who it is, and the connection stays on this lane (no van_move any more): the van may
 * take a faster way to it. Nothing changes in what the van promises. */
void van_conn_stays(struct van_conn *conn);
/* Frees the van: its listeners and connections are closed, and none is flushing (van_abandon). */
void van_destroy(struct van *van);
/* Any thread: how many connections of this lane that were closed with flush have not gone yet. */
unsigned van_flushing(struct van *van, const struct lane *lane);
/* Before a lane is destroyed, on it: ends at once what is still flushing there. */
void van_abandon(struct van *van, struct lane *lane);
/* Any thread: from now on this share of the received chain, request and answer frames is thrown away
 * (config.drop_percent: a test of those who promise to survive it). */
void van_set_drop(struct van *van, unsigned percent);

/* In frame(): keeps this frame's pooled segments until van_release (any thread). Segments placed elsewhere
 * are not its concern. On MEMORY nothing is kept. *seg (nseg of them) is updated to where the bytes are now.
 * *hold may become NULL, which van_release takes: there was nothing to keep. */
MUST_USE paramo_err van_keep(struct van_conn *conn, struct van_seg *seg, unsigned nseg,
                             struct van_hold **hold);
void van_release(struct van_hold *hold);

#endif
