/*
 * What a worker knows of its clock (clock.h). It never knows how it changes. Tests: test/node/test_clock.c.
 */
#ifndef NODE_CLOCK_STATE_H
#define NODE_CLOCK_STATE_H

#include <stdatomic.h>

#include "cluster/member/member_calls.h"

/* told <= reached <= issued. demand: the lowest clock that requests of the client are held for; 0: none is held. */
struct worker_clock {
    /* control lane */
    uint64_t telling;
    bool calling; /* a CLOCK_TELL is in flight: of `telling` */
    struct member_call tell;
    struct lane_timer again; /* there was no memory, or no room, for the call */
    char text[ERR_TEXT_MAX]; /* why it does not count any more: whole before failure says so */
    bool waiting; /* a CLOCK_WAIT for `awaited` is in flight, on behalf of requests that are held */
    uint64_t awaited;
    struct member_call wait;
    /* posted: the demand to the control lane, and its result to the client's lane */
    struct lane_task demand_task, news_task;
    atomic_bool demand_posted, news_posted;
    _Atomic uint64_t demand; /* written on the client's lane */
    atomic_bool left;        /* the worker has left; this is posted to the client */
    /* written on the control lane, read anywhere */
    _Atomic uint64_t session; /* 0: it does not count */
    _Atomic uint64_t told, reached, minimum;
    _Atomic uint32_t workers;                        /* how many count at the minimum; 0: not known */
    _Atomic uint32_t awaited_node, awaited_customer; /* the worker that the minimum waited for last */
    atomic_int failure;
    /* any thread */
    _Atomic uint64_t issued;
    _Atomic uint64_t waits, waited_ns;
};

#endif
