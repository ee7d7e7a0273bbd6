/*
 * The inside of the simulated van: packets on the simulated network (simwire.c) between the ends of its
 * connections (simvan.c). Only these two include it. Tests: test/van/test_simvan.c.
 */
#ifndef SIM_VAN_SIMWIRE_H
#define SIM_VAN_SIMWIRE_H

#include "sim/van/simnet.h"
#include "sim/van/simvan_rules.h"
#include "van/core.h"
#include "van/outq.h"

enum packet_kind { PACKET_CONNECT, PACKET_FRAME, PACKET_END };

struct sim_end;
struct sim_pipe;

/* The state that all vans of a net share. */
struct sim_world {
    struct sim *sim;
    struct simnet *net;
    struct sim_van *vans;
    struct packet *packets; /* all connections */
    struct packet *spare;   /* freed ones, for the next: most live for microseconds */
    struct simvan_watch watch;
    void (*arrive)(struct sim_event *event); /* simvan.c: the event of a packet */
    unsigned connections;                    /* connections made so far */
};

struct packet {
    struct qnode node; /* in an end's wire or incoming */
    struct packet *next, *prev;
    struct sim_world *world;
    struct sim_event event;
    struct sim_end *to;
    enum packet_kind kind;
    paramo_err why; /* reason of PACKET_END */
    uint64_t size;
    uint8_t head[VAN_HEAD];
    uint64_t len[VAN_SEGS];
    uint8_t nseg, class;
    bool datagram;
    struct van_hold *bytes; /* the segments, padded; NULL if there are none */
};

enum end_state { END_UNBORN, END_OPEN, END_BROKEN, END_FLUSHING, END_CLOSED, END_CRASHED };

struct sim_end {
    struct van_conn base;
    struct sim_pipe *pipe;
    struct sim_end *peer;
    enum end_state state;
    struct sim_end *van_next, *van_prev; /* in the van's list */

    /* sending */
    struct outq out;
    struct simnet_link *link;
    struct queue wire; /* the stream: its first packet is at the bottleneck or is being sent again */
    struct sim_event wire_event;
    uint64_t stalled_since; /* 0: the first packet was not lost yet */
    uint64_t last_arrival;  /* of the stream */
    uint64_t flying;        /* bytes on the wire */

    /* receiving */
    struct queue incoming;
    bool begun;         /* the first frame of the stream has arrived */
    struct queue early; /* datagrams that arrived before it */
    bool ended;         /* PACKET_END has come, or it broke: nothing comes after `incoming` */
    paramo_err ended_why;
    struct lane_task task;
    bool posted;

    struct lane_task hook, end, arrive;
    bool hooked, moving;
    struct lane_timer deadline;
    paramo_err broken_why;
    char broken_text[ERR_TEXT_MAX];
    void (*arrived)(void *arg, struct van_conn *conn);
    void *arrived_arg;
};

struct sim_pipe {
    struct sim_end end[2]; /* 0: the connecting end */
    struct sim_world *world;
    unsigned refs; /* open ends, packets, posted tasks */
    unsigned number;
    char address[72];
};

struct sim_listener {
    struct van_listener base;
    struct sim_listener *next;
    struct lane *lane;
    void (*accept)(void *arg, struct van_conn *conn);
    void *arg;
};

struct sim_van {
    struct van base;
    struct simnet *net;
    struct simnet_node *node;
    struct sim_world *world;
    struct sim_van *next;
    struct sim_listener *listeners;
    struct sim_end *ends;
    unsigned faulty;
    bool crashed;
};

/* Drops one reference. */
void sim_pipe_unref(struct sim_pipe *pipe);
/* A packet holds a reference to its pipe. NULL: out of memory. */
struct packet *sim_packet_make(struct sim_end *to, enum packet_kind kind);
struct packet *sim_packet_of_frame(struct sim_end *e, const struct van_frame *frame);
void sim_packet_free(struct packet *p);
void sim_packets_free(struct queue *q);
/* Frees all packets of the world, and their memory. */
void sim_packets_forget(struct sim_world *world);
/* Has e's lane look at the change. */
void sim_kick(struct sim_end *e);
/* Sends the packet and takes ownership. faulty: as a datagram that may be lost, repeated or late; otherwise
 * in the stream. */
void sim_transmit(struct sim_end *e, struct packet *p, bool faulty);
void sim_transmit_end(struct sim_end *e, paramo_err why);
/* These bytes of e are no longer on the wire. */
void sim_landed(struct sim_end *e, uint64_t size);
/* The event of the stream of an end. */
void sim_wire_fire(struct sim_event *event);

#endif
