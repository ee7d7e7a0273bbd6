/*
 * A node as the scheduler knows it: its place, its connection, and what each part keeps of it.
 * Must never know: what the parts do with it.
 * Tests: test/cluster/test_scheduler.c.
 */
#ifndef CLUSTER_SCHEDULER_SCHED_NODE_H
#define CLUSTER_SCHEDULER_SCHED_NODE_H

#include "cluster/view/view.h"
#include "env/lane.h"
#include "wire/calls.h"

struct scheduler;
struct sched_call;
struct sched_order;
struct sched_peer;
struct sched_reports;

enum { SCHED_LABEL = VIEW_LABEL_MAX };
enum sched_node_state { SNODE_WAITING, SNODE_JOINED, SNODE_ABSENT, SNODE_DEAD, SNODE_LEFT };

/* The calls of one node. */
struct sched_node_calls {
    uint64_t floor;
    struct sched_call **kept; /* at their places: number % CALL_PLACES */
    uint32_t kept_count;      /* 0 or a power of two */
};

/* The orders of one node. */
struct sched_node_orders {
    struct sched_order *first, *last; /* not answered, by id */
    uint64_t next_id;                 /* 0: none was given yet */
};

/* The reports of one server, and the place of any node in the status that is being built. */
struct sched_node_status {
    uint32_t place;
    struct sched_reports *reports; /* NULL: none, or they are in pauses_gone */
    bool asked;
    enum { GOODBYE_NONE, GOODBYE_ASKED, GOODBYE_REPORTED } goodbye; /* the last report of a drained server */
};

struct sched_node {
    struct scheduler *sched;
    enum sched_node_state state;
    struct view_node info; /* id 0 while it waits for a place */
    uint32_t rank;         /* in place */
    uint32_t arrival;      /* WAITING: order of arrival */
    int32_t wanted_rank;
    struct sched_peer *peer; /* NULL: no connection */
    uint64_t arrived_at, heard_at;
    bool chosen;    /* WAITING while the cluster gathers: it will have a place */
    bool former;    /* ABSENT: the member of the scheduler's own process before this one */
    uint64_t since; /* number of the first view that has it */
    uint64_t view_sent_at;
    bool view_due;                  /* its queue was full */
    struct lane_timer timer;        /* WAITING: for a place; ABSENT: may come back */
    struct sched_node *next, *prev; /* WAITING: in order of arrival */
    struct lane_progress {
        uint64_t steps, progressed_at;
        bool reported;
    } * lanes;
    uint32_t lanes_count;
    struct clock *clocks; /* sched_clock.c: those of its customers */
    uint32_t clocks_count;
    /* sched_clock.c: sessions that were left before their join came, if it ever does */
    uint64_t *left;
    uint32_t left_count, left_room;
    bool ckpt_untold; /* sched_ckpt_end.c: the last order of the present checkpoint could not be given */
    struct sched_node_calls calls;
    struct sched_node_orders orders;
    struct sched_node_status status;
};

#endif
