/*
 * The workers' application: its calls to the scheduler, and when it makes them. It must never know what a
 * fault does. Tests: test/sim/test_play.c; scripts/mutants.
 */
#ifndef SIM_SCRIPT_H
#define SIM_SCRIPT_H

#include "cluster/member/member.h"
#include "cluster/member/member_calls.h"
#include "sim/env/sim.h"

struct machine;

enum script_step {
    SCRIPT_JOIN,
    SCRIPT_TABLES,
    SCRIPT_POOL,
    SCRIPT_ENTER,
    SCRIPT_WORK,
    SCRIPT_SUM,
    SCRIPT_BARRIER,
    SCRIPT_NEXT,  /* work unit of the pool */
    SCRIPT_DONE,  /* with it */
    SCRIPT_STALE, /* the same for a unit that has passed to another worker */
    SCRIPT_PUT,   /* a small value at the scheduler */
    SCRIPT_GET,
    SCRIPT_READ,
    SCRIPT_LEAVE,
    SCRIPT_GONE
};

/* The state of a worker's place at the barrier. */
struct at_barrier {
    bool inside;
    bool ghost;        /* the worker inside died or gave up, and may still be released */
    uint64_t released; /* number of the barrier that it was last released from */
};

struct script {
    enum script_step step;
    struct member_call call;
    bool calling;
    unsigned tables; /* opened */
    unsigned ops;    /* issued */
    unsigned calm_ops;
    uint64_t silent_until;
    uint64_t idle; /* ns until the next attempt to issue a request: the last one could not; 0: it could */
    bool lost;     /* the last request found a server dead: the next one is not urgent */
    double sum_at_least;
    uint32_t pool_round;
    bool holds; /* a part */
    bool none_now;
    struct work_unit unit;
    unsigned kv_of; /* the worker whose value is read */
    uint64_t kv_value, kv_from;
    struct sim_event tick;
};

void script_start(struct machine *m); /* the process is up */
void script_stop(
    struct machine *m); /* it is about to die: the results of its calls and requests no longer count */
void script_joined(struct machine *m);
/* A request has ended. */
void script_wake(struct machine *m);
/* It issues requests, perhaps while a call to the scheduler goes on. */
bool script_works(const struct machine *m);
bool script_over(const struct machine *m);

#endif
