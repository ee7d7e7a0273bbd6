/*
 * A van whose other end is the fuzz target: it brings connections to a listener, plays the frames that a peer
 * might send, looks at those that are sent, and keeps the contract of van/van.h as strictly as it can (done
 * comes later and once, sent bytes are read again before done, received bytes lie in memory of exactly their
 * length and are gone after frame()). Everything on the lane of the connection.
 */
#ifndef FUZZ_FAKEVAN_H
#define FUZZ_FAKEVAN_H

#include "harness.h"
#include "sim/env/sim.h"
#include "van/core.h"
#include "wire/head.h"

struct fakevan;

struct fakeconn {
    struct van_conn conn; /* first */
    struct fakevan *van;
    struct fakeconn *next;
    bool closed; /* van_close was called: nothing is heard any more */
    bool broken; /* closed() was called */
    bool full;   /* van_send answers AGAIN */
    bool refused;
    struct queue out; /* sent, done is due */
    unsigned sent;
    void *arg; /* the target's */
    /* a frame on its way in */
    bool coming;
    uint8_t head[VAN_HEAD];
    uint8_t *bytes[VAN_SEGS]; /* as the peer sent them */
    uint64_t len[VAN_SEGS];
    void *dst[VAN_SEGS];
    unsigned nseg;
};

struct fakevan {
    struct van van; /* first */
    struct fakeconn *conns;
    struct van_listener listener;
    struct lane *listener_lane;
    void (*accept)(void *arg, struct van_conn *conn);
    void *accept_arg;
    bool refuse; /* van_connect fails */
    /* Each frame that was sent, in van_send; and each connection that was begun. May be NULL. */
    void (*sent)(void *arg, struct fakeconn *conn, const struct van_frame *frame);
    void (*connected)(void *arg, struct fakeconn *conn);
    void *arg;
};

void fakevan_init(struct fakevan *van, struct env *env);
/* All connections have been closed by their users, or the check fails. */
void fakevan_fini(struct fakevan *van);
/* An unauthenticated connection arrives at the listener; NULL if there is no listener. */
struct fakeconn *fakevan_unauth(struct fakevan *van);
struct fakeconn *fakevan_conn_new(struct fakevan *van, struct lane *lane);
/* Calls `done` of sent frames, and `writable` of connections that were refused and have room now. */
void fakevan_round(struct fakevan *van);

static inline bool fakeconn_alive(const struct fakeconn *c)
{
    return c && !c->closed && !c->broken;
}
/* The peer begins to send a frame (place() is asked), and ends it: its bytes are copied. False if that ended
 * the connection. */
bool fakeconn_begin(struct fakeconn *c, const uint8_t head[VAN_HEAD], const struct van_seg *seg,
                    unsigned nseg);
bool fakeconn_finish(struct fakeconn *c);
bool fakeconn_frame(struct fakeconn *c, const uint8_t head[VAN_HEAD], const struct van_seg *seg,
                    unsigned nseg);
/* A frame of which the input says everything; most of the time its head has the right kind of holes. */
bool fakeconn_raw(struct fakeconn *c, struct source *s);
/* A control message. */
bool fakeconn_control_message(struct fakeconn *c, const struct wire_head *head, const void *body, size_t len);
/* The connection breaks. */
void fakeconn_break(struct fakeconn *c, paramo_err why, const char *text);

/* One lane in a simulation, with such a van. */
struct fakeworld {
    struct sim *sim;
    struct lane *lane;
    struct fakevan van;
};
void fakeworld_open(struct fakeworld *w);
void fakeworld_close(struct fakeworld *w);
/* Not on the lane: a round of the van, and then this much time. */
void fakeworld_pass(struct fakeworld *w, uint64_t ms);
void fakeworld_enter(struct fakeworld *w);
void fakeworld_leave(struct fakeworld *w);
uint64_t fakeworld_now(struct fakeworld *w);

#endif
