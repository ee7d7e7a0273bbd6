/*
 * The inside of a lane, for env/lane.c (what real and simulated lanes share), env/real/real_lane.c and
 * sim/env/sim.c only.
 */
#ifndef ENV_LANE_IMPL_H
#define ENV_LANE_IMPL_H

#include <pthread.h>
#include <stdatomic.h>

#include "env/lane.h"
#include "env/sim_event.h"

enum lane_state { LANE_IDLE, LANE_RUNNING, LANE_RUNNING_MAIL };

struct lane_ops {
    paramo_err (*start)(struct lane *lane);
    /* Joins the thread; afterwards the lane is still run by lane_destroy until it is empty. */
    void (*stop)(struct lane *lane);
    void (*fini)(struct lane *lane);
    /* Somebody must run the lane soon: it is idle and has mail. Any thread. */
    void (*wake)(struct lane *lane);
    /* On the lane: handle descriptors that are ready, without waiting. */
    void (*poll)(struct lane *lane);
    /* A caller from outside has taken the lane (lane_enter). May be NULL. */
    void (*entered)(struct lane *lane);
    /* The lane was just released; next is its earliest timer; notify: waiters should look again. */
    void (*released)(struct lane *lane, uint64_t next, bool notify);
    /* True if a thread in a step may run this lane after it (lane_post's summons). */
    bool borrow;
    paramo_err (*wait)(struct lane *lane, bool (*done)(void *arg), void *arg, uint64_t deadline);
};

struct spin {
    uint64_t budget;   /* ns to poll before sleeping */
    unsigned cooldown; /* sleeps until polling is tried again */
};

struct lane {
    struct env *env;
    const struct lane_ops *ops;
    unsigned flags;
    char name[32];

    _Atomic int state;           /* enum lane_state */
    struct mailbox inbox;        /* any thread posts */
    struct mailbox done_box;     /* completions: posted on the lane, taken by the completer */
    atomic_bool completing;      /* somebody is the completer */
    atomic_uint inside;          /* posters and borrowers that hold a pointer to the lane */
    _Atomic uint64_t next_timer; /* published at release; UINT64_MAX: none */
    atomic_int expects;          /* what is to come without being waited for (lane_expect) */
    atomic_uint expected;        /* ... ever */
    _Atomic uint64_t work;       /* tasks, timers and events handled: tells polling from idling */

    /* owned by the holder of the lane */
    struct queue at_end;
    bool notify;
    struct lane_hook *hook;
    struct lane_timer **timers; /* binary heap from 1 */
    size_t timers_count, timers_capacity;
    uint64_t timer_seq;

    union {
        struct {
            int epoll_fd, wake_fd, park_fd;
            pthread_t thread;
            atomic_bool stop;
            atomic_bool hooked;  /* the lane has a hook: it must be armed before anyone sleeps */
            atomic_int sleepers; /* threads inside epoll_wait */
            atomic_bool parked;  /* the lane's thread sleeps on park_fd */
            atomic_bool deep;    /* ... and no timeout will make it look for absent drivers */
            atomic_bool led;     /* some waiting thread is the leader */
            atomic_bool leader_asleep;
            atomic_uint drivers;    /* threads in lane_wait */
            atomic_uint sessions;   /* callers that took the lane or had to drive it, ever */
            atomic_uint generation; /* futex: raised by notify and when the lead is free */
            atomic_uint followers;
            _Atomic uint64_t sleep_until; /* the thread looks at the timers by then */
            _Atomic uint64_t roused_for;  /* it is being woken for this time already, or UINT64_MAX */
            struct spin thread_spin;      /* the thread's own */
            struct spin leader_spin;      /* the leader's */
        } real;
        struct {
            struct sim *sim;
            struct sim_host *host;
            struct lane *next; /* of the host */
            struct sim_event run;
            struct sim_event timer;
        } sim;
    };
};

/* Takes the lane if it is idle. */
bool lane_acquire(struct lane *lane);
/* On the lane: one round: inbox, timers, descriptors, what was left for the round's end. */
void lane_round(struct lane *lane);

#endif
